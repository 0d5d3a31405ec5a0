# shellcheck shell=sh disable=SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The cache: made once, made again when broken, never half-made.

cache_sh=$root/scripts/cache.sh
entry=$ERDMA_CACHE/a/thing

cat >"$work/maker" <<'END'
#!/bin/sh
# Counts its runs; leaves a file and a directory.
echo run >>"$1"
echo data >file
mkdir sub
echo more >sub/file
END
chmod +x "$work/maker"

alive() {
    kill -s 0 "$1" 2>/dev/null
}

make_thing() {
    try sh "$cache_sh" make a/thing "making a thing" "$work/maker" "$work/runs"
}

runs() {
    [ "$(wc -l <"$work/runs")" -eq "$1" ]
}

# No temporary directory, no stamp of an entry that is not there.
clean() {
    [ -z "$(find "$ERDMA_CACHE" -name '.tmp.*' -print -quit)" ]
}

make_thing
ok "an entry is made" test -f "$entry/sub/file"
ok "an entry has a stamp" test -f "$entry/.complete"
make_thing
ok "an entry is made once" runs 1
ok "nothing is said about an entry that is there" test ! -s "$out"

echo tail >>"$entry/sub/file"
make_thing
ok "an entry with a file of a wrong size is made again" runs 2
ok "... and the user is told" errs "damaged"
printf 'dAta\n' >"$entry/file"
make_thing
ok "an entry with changed content is made again" runs 3
rm "$entry/sub/file"
make_thing
ok "an entry with a missing file is made again" runs 4
rm "$entry/.complete"
make_thing
ok "an entry without its stamp is made again" runs 5
ok "no temporary directory is left" clean

try sh "$cache_sh" make b "making b" sh -c 'echo part >part; echo boom; exit 7'
ok "a maker's failure is passed on" exits 7
ok "a failure shows the log's tail" errs boom
ok "a failure shows the log's path" errs "$ERDMA_CACHE/logs/b.log"
ok "a failed entry is not there" test ! -e "$ERDMA_CACHE/b"
ok "a failed entry leaves nothing" clean

try timeout -s TERM 1 sh "$cache_sh" make c "making c" \
    sh -c 'echo part >part; echo $$ >"$1"; sleep 300; :' maker "$work/pid"
ok "an interrupted entry is not there" test ! -e "$ERDMA_CACHE/c"
ok "an interrupted entry leaves nothing" clean
ok "an interrupted maker is gone" not alive "$(cat "$work/pid")"

mkdir "$ERDMA_CACHE/.tmp.d"
echo old >"$ERDMA_CACHE/.tmp.d/old"
try sh "$cache_sh" make d "making d" sh -c 'echo new >new'
ok "what a killed run has left is swept away" test ! -e "$ERDMA_CACHE/d/old"
ok "... by the next run" clean

for _ in 1 2 3; do
    sh "$cache_sh" make e "making e" \
        sh -c 'echo run >>"$1"; sleep 1; echo x >x' maker "$work/e-runs" \
        >/dev/null 2>&1 &
done
wait
ok "runs at the same time make an entry once" \
    test "$(wc -l <"$work/e-runs")" -eq 1
ok "... which is whole" sh "$cache_sh" valid e

try sh "$cache_sh" make f "making f" \
    sh -c 'mkdir d; echo x >d/big; echo y >other; echo d/big >.verify'
echo z >>"$ERDMA_CACHE/f/other"
ok "a maker may say what counts" sh "$cache_sh" valid f
echo z >>"$ERDMA_CACHE/f/d/big"
ok "... and that is looked at" not sh "$cache_sh" valid f

mkdir "$work/readonly"
: >"$work/readonly/file"
try ERDMA_CACHE="$work/readonly/file/x" sh "$cache_sh" make g "making g" true
ok "a cache that cannot be written is refused" refuses 3 "cannot write"
