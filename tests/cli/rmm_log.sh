#!/bin/sh
# rmm_log.sh - logs of RMM's logging_resource_adaptor: what is in them, and what its own pools make of it.
. tests/support/tap.sh
log=tests/fuzz/corpus/rmm.csv
run info $log --json; expect "four requests, of which three succeeded" 0 '"allocs": 3,'
check "a free of what was there before is counted, not fatal" sh -c 'grep -q "1 frees are of blocks from before" "$1" && grep -q "\"time_ns\": 1158039000" "$1"' - "$TMP/out"
run dump $log; expect "a request has its size and its stream" 0 'alloc .*size=3000000 stream=140231621742624'
check "times go on after midnight" sh -c '[ "$(awk "/ free /{t=\$2} END{print t}" "$1")" = 1158039000 ]' - "$TMP/out"
printf 'Thread,Time,Action,Pointer,Size,Stream\n%s' '1,23:59:59.5,allocate,0x10,512,0
1,00:00:00.25,allocate,0x20,512,0
1,13:00:00,allocate,0x30,512,0
1,00:00:01,allocate,0x40,512,0
1,00:00:02,allocate,0x50,512,0
' > "$TMP/days.csv"
check "over two midnights" test "$("$VRAMCAST" dump "$TMP/days.csv" | awk '/ alloc /{ printf "%s ", $2 }')" = "0 750000000 46800500000000 86401500000000 86402500000000 "
check "what was refused is evidence" grep -q 'oom' "$TMP/out"
run sim $log -m rmm_pool --capacity 1GiB --no-advice --json; expect "RMM's pool serves them, and refuses what RMM refused" 3 '"peak_requested": 3000512,'
run sim $log -m all --capacity 1GiB --no-advice; expect "and so do the others" 3 'cupy'
bad() { printf "Thread,Time,Action,Pointer,Size,Stream\n$2\n" > "$TMP/bad.csv"; run dump "$TMP/bad.csv"; expect "$1" 1 '' "$3"; }
bad "a line that lacks a field" '1,00:00:00.0,allocate,0x10,512' 'line 2: wants Thread,Time'
bad "an action that nobody knows" '1,00:00:00.0,swap,0x10,512,0' "line 2: no action is called 'swap'"
bad "a size that is none" '1,00:00:00.0,allocate,0x10,many,0' 'line 2: wants'
bad "a line without end" "$(head -c 600 /dev/zero | tr '\0' x)" 'line 2: longer than'
gzip -c $log > "$TMP/log.gz"; run info "$TMP/log.gz" --json; expect "packed by gzip" 0 '"source": "rmm_log"'
if command -v zstd > /dev/null; then zstd -q -c $log > "$TMP/log.zst"; run info "$TMP/log.zst" --json; expect "and by zstd" 0 '"source": "rmm_log"'; fi
finish
