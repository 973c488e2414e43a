#!/bin/sh
# nccl.sh - libnccl's stand-in with equal ranks, and what the options of dryrun --world refuse.
. tests/support/tap.sh
mkdir -p "$TMP/lib" "$TMP/private"
for f in "$PWD/$BUILD"/nullgpu/vcnull-*; do
	case $f in *.map|*.py|*.so.13) continue ;; esac
	ln -sf "$f" "$TMP/lib/${f##*/vcnull-}"
done
env LD_LIBRARY_PATH="$TMP/lib" VRAMCAST_NULL_TOTAL=1073741824 VRAMCAST_NULL_REPORT="$TMP/private" VRAMCAST_NULL_LOG=3 LOCAL_WORLD_SIZE=8 \
	"$BUILD/tests/nullgpu/nccl" > "$TMP/out" 2> "$TMP/err"
[ "$(grep -c '^ok' "$TMP/out")" = 11 ] || fail "libnccl plays equal ranks" "$(cat "$TMP/err")"
while read -r line; do
	case $line in "ok - "*) pass "${line#ok - }" ;; "not ok - "*) fail "${line#not ok - }" ;; esac
done < "$TMP/out"
sed -n '/^null gpu: nccl/!d; / 1024 7 /{ /ncclSend/d; /ncclRecv/d; }; s/^null gpu: //p' "$TMP/err" > "$TMP/works"
check "what each moves is told, with the ranks of its node" diff tests/nullgpu/world/nccl.txt "$TMP/works"

# Ranks that are played one after another hear each other, and who would hear something else now is marked.
mkdir -p "$TMP/played"
plays() { # RANK VALUE LINES
	rm -f "$TMP/played/world/stale.$1"
	got=$(env LD_LIBRARY_PATH="$TMP/lib" VRAMCAST_NULL_TOTAL=1073741824 VRAMCAST_NULL_REPORT="$TMP/played" RANK="$1" \
		"$BUILD/tests/nullgpu/nccl" "$1" "$2" | tr '\n' ';'); [ "$got" = "$3" ] || { echo "got $got"; false; }; }
again() { [ "$(ls "$TMP/played/world" 2> /dev/null | grep stale)" = "$1" ]; }
check "the first rank is told what it holds itself, and that others decide it" plays 0 10 \
	'read all-reduce;largest 10;of rank 0 10;read a message of another rank;sent 10;'
check "... and nobody is to be played again" again ''
check "another hears the first, and that they hold different things" plays 1 30 'read all-reduce;largest 30;of rank 0 10;sent 10;'
check "... which the first is told when it is played again" again stale.0
check "... where it hears the other" plays 0 10 'read all-reduce;largest 30;of rank 0 10;read a message of another rank;sent 10;'
check "... and then nobody hears anything new" again ''
rm -rf "$TMP/played"/*
plays 0 10 '' > /dev/null
check "what several hold alike is known" plays 1 10 'largest 10;of rank 0 10;sent 10;'
check "... and no reason to play the first again" again ''

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
