# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A machine that lacks something: programs in front of the real ones pretend.

fake() { # NAME BODY: a program NAME in $work/bin
    mkdir -p "$work/bin"
    printf '#!/bin/sh\n%s\n' "$2" >"$work/bin/$1"
    chmod +x "$work/bin/$1"
}

fakes() {
    rm -rf "${work:?}/bin"
    mkdir "$work/bin"
}

# A repository of our own, with a sub-command that calls lib.sh's functions.
mkdir -p "$work/repo"
cp -r "$root/scripts" "$root/erdma" "$root/overlay" "$work/repo/"
mkdir -p "$work/repo/tests/qtest/libqos" "$work/repo/hw/erdma"
cp "$root/tests/qtest/meson.build" "$work/repo/tests/qtest/"

cat >"$work/repo/scripts/cmd-try.sh" <<'END'
. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"
"$@"
END

try "$work/repo/erdma" try need_tools sh no-such-tool
ok "a missing tool is named" refuses 3 no-such-tool
try "$work/repo/erdma" try need_space "$work/not/yet/there" 1
ok "a little space is there" exits 0
try "$work/repo/erdma" try need_space "$work" 999999999
ok "a full disk is refused" refuses 3 "not enough disk space"

try QEMU_SRC="$work/nowhere" "$work/repo/erdma" build
ok "QEMU_SRC must be a directory" refuses 1 "is not a directory"
try QEMU_SRC="$work" "$work/repo/erdma" build
ok "QEMU_SRC must be a QEMU tree" refuses 1 "is not a QEMU source tree"
ok "... and nothing is written" test ! -e "$work/repo/build"

fakes
fake df 'echo head; echo "x 1 1 1024 1% /"'
try PATH="$work/bin:$PATH" "$work/repo/erdma" build
ok "a build on a full disk is refused" exits 3
ok "... for lack of space" errs "not enough disk space"
ok "... leaving nothing in the cache" \
    test -z "$(find "$ERDMA_CACHE" -name 'qemu-*' -not -name '*.log' \
        -not -path '*/.locks/*' -print -quit)"

fakes
fake dpkg-query 'echo "ii  gcc"'
fake id 'echo 1000'
try PATH="$work/bin:$PATH" "$work/repo/erdma" deps
ok "without root, deps says what to install" \
    refuses 3 "apt-get install --no-install-recommends clang"

# A new machine: no Python, and what is to run is written in it.
fakes
for tool in sh readlink dirname sed awk grep cat mkdir tail rm mktemp; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done
fake id 'echo 0'
wanted=$(awk '!/^#/ && NF { print "ii  " $1 }' "$root/scripts/packages.txt")
fake dpkg-query "echo '$wanted' | if [ -e '$work/bin/python3' ]; then cat
    else grep -v 'python3\$'; fi"
fake apt-get "printf '#!%s\necho Python has \"\$@\"\n' '$(command -v sh)' \
    >'$work/bin/python3'; /bin/chmod +x '$work/bin/python3'"
try PATH="$work/bin" sh "$work/repo/erdma" demo --n
ok "without Python it is installed first" says "cmd-demo.py --n"
rm "$work/bin/python3"
fake apt-get 'exit 100'
try PATH="$work/bin" sh "$work/repo/erdma" demo
ok "... and if that fails, the package is named" exits 3
ok "... in the complaint" errs "could not install python3"

fakes
fake dpkg-query 'echo "ii  gcc"'
fake id 'echo 0'
fake apt-get 'echo "E: no network"; exit 100'
try PATH="$work/bin:$PATH" "$work/repo/erdma" deps
ok "deps without a network fails" exits 3
ok "... naming the packages" errs "could not install clang"
ok "... and the log" errs "$ERDMA_CACHE/logs/deps.log"

try "$work/repo/erdma" deps
ok "deps finds everything there" exits 0

try DEBIAN_MIRROR="file:$work/no-mirror" "$work/repo/erdma" build
ok "no network, nothing cached: refused" exits 3
ok "... saying why" errs "cannot reach the Debian mirror"
ok "... leaving nothing half-made" \
    test -z "$(find "$ERDMA_CACHE" -maxdepth 1 -name '*qemu*' -print -quit)"

# A download that is interrupted half-way.
fakes
real_apt=$(command -v apt-get)
fake apt-get "case \"\$*\" in
*source*) echo half >qemu_1.dsc; sleep 300 ;;
*update*) exit 0 ;;
*) exec $real_apt \"\$@\" ;;
esac"
try PATH="$work/bin:$PATH" timeout -s TERM 4 "$work/repo/erdma" build
ok "an interrupted download ends the build" not exits 0
ok "... leaving nothing half-made" \
    test -z "$(find "$ERDMA_CACHE" -maxdepth 1 -name '*qemu*' -print -quit)"
