#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# summary: install the Debian packages that the rest needs
#: usage: ./erdma deps [--list] [--quiet]
#:
#: Installs what is missing of scripts/packages.txt with apt-get. Without root
#: it says what to install and exits with 3. Nothing happens, and the network
#: is not used, when everything is there.
#:
#:   --list     print the packages and what each is for
#:   --quiet    no message when everything is there

. "$(dirname -- "$(readlink -f -- "$0")")/lib.sh"

list=$root/scripts/packages.txt
quiet=
for arg; do
    case $arg in
    -h | --help) show_help ;;
    --list)
        grep -v '^#' "$list"
        exit 0
        ;;
    --quiet) quiet=1 ;;
    *) die_usage "deps: unknown option '$arg' (see ./erdma deps -h)" ;;
    esac
done

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    die_env "this is not a Debian system: install by hand what" \
        "scripts/packages.txt lists"

wanted=$(awk '!/^#/ && NF { print $1 }' "$list")

find_missing() {
    # shellcheck disable=SC2086 # a list of words
    dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' $wanted 2>/dev/null |
        awk -v wanted="$wanted" '
            $1 == "ii" || $1 == "hi" { have[$2] = 1 }
            END {
                n = split(wanted, name)
                for (i = 1; i <= n; i++) {
                    if (!(name[i] in have)) {
                        printf "%s ", name[i]
                    }
                }
            }'
}

missing=$(find_missing)
if [ -z "$missing" ]; then
    [ -n "$quiet" ] || say "all packages are there"
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    die_env "packages are missing: sudo apt-get install" \
        "--no-install-recommends $missing"
fi

DEBIAN_FRONTEND=noninteractive
export DEBIAN_FRONTEND
# shellcheck disable=SC2086 # a list of words
install() {
    apt-get -q -y -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 \
        install --no-install-recommends $missing
}

mkdir -p -- "$cache/logs" || die_env "cannot write to the cache $cache"
log=$cache/logs/deps.log
say "installing $missing(log: $log)"
# A new machine has no package lists, an old one outdated ones.
if ! install >"$log" 2>&1 </dev/null; then
    say "updating the package lists"
    if ! apt-get -q -o Acquire::Retries=3 update >>"$log" 2>&1 </dev/null ||
        ! install >>"$log" 2>&1 </dev/null; then
        tail -n 5 "$log" | sed 's/^/  | /' >&2
        die_env "could not install $missing(whole log: $log)"
    fi
fi
missing=$(find_missing)
[ -z "$missing" ] || die_env "still missing after installing: $missing"
say "packages installed"
