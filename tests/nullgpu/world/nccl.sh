#!/bin/sh
# nccl.sh - libnccl's stand-in with equal ranks, and what the options of dryrun --world refuse.
. tests/support/tap.sh
mkdir -p "$TMP/lib" "$TMP/private"
for f in "$PWD/$BUILD"/nullgpu/vcnull-*; do
	case $f in *.map|*.py|*.so.13) continue ;; esac
	ln -sf "$f" "$TMP/lib/${f##*/vcnull-}"
done
env LD_LIBRARY_PATH="$TMP/lib" VRAMCAST_NULL_TOTAL=1073741824 VRAMCAST_NULL_REPORT="$TMP/private" \
	"$BUILD/tests/nullgpu/nccl" > "$TMP/out" 2> "$TMP/err"
[ "$(grep -c '^ok' "$TMP/out")" = 11 ] || fail "libnccl plays equal ranks" "$(cat "$TMP/err")"
while read -r line; do
	case $line in "ok - "*) pass "${line#ok - }" ;; "not ok - "*) fail "${line#not ok - }" ;; esac
done < "$TMP/out"

run dryrun -g rtx4090 --rank 3 -- true
expect "a rank needs a job" 2 '' 'need --world N'
run dryrun -g rtx4090 --world 8 --ranks 2 -- true
expect "all ranks or one of them" 2 '' 'leave one out'
run dryrun -g rtx4090 --world 8 --rank 8 -- true
expect "a rank beyond the last" 2 '' 'a job of 8 ranks has 0 to 7'
run dryrun -g rtx4090 --world 1 -- true
expect "a job of one rank is none" 2 '' 'goes from 2 to 1048576'
run dryrun -g rtx4090 --world 8 --rank 3 --roles -- true
expect "roles are found, not named" 2 '' 'finds the ranks itself'
finish
