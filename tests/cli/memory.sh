#!/bin/bash
# memory.sh - what a file costs to read: at most a stated multiple of its size, whatever is in it. The multiples
# are those of simulator/replay/source.h; 24 MiB are the program itself.
. tests/support/tap.sh
if sanitized || ! own true; then skip "the memory of the readers" "a sanitized program has no limit, and qemu is none of it"; finish; fi
LC_ALL=C; export LC_ALL
twice() { # OCTAL TIMES: the bytes 2^TIMES times
	printf "$1" > "$TMP/one"
	for _ in $(seq "$2"); do cat "$TMP/one" "$TMP/one" > "$TMP/two"; mv "$TMP/two" "$TMP/one"; done
	cat "$TMP/one"
}
bounded() { # NAME MULTIPLE FILE [COMMAND...]
	local name=$1 most=$2 file=$3 size rc
	shift 3; [ $# -gt 0 ] || set -- dump
	size=$(stat -c %s "$file")
	(ulimit -v $((24576 + size * most / 1024)); timeout 20 "$VRAMCAST" "$@" "$file" > "$TMP/out" 2> "$TMP/err"); rc=$?
	if [ $rc -le 4 ] && ! grep -q 'no memory left\|cannot allocate' "$TMP/err"; then
		pass "$name: within $most times its size"
	else
		fail "$name: within $most times its size" "rc $rc" "$(head -c 300 "$TMP/err")"
	fi
}
p=$TMP/f.pickle
{ printf '\200\002)'; twice '\205' 20; printf .; } > "$p"; bounded "tuples in tuples" 96 "$p"
{ printf '\200\002('; twice ')\205\205\205\205\205\205\205\205\205\205\205\205\205\205\205' 16; printf l.; } > "$p"; bounded "small towers of tuples" 96 "$p"
{ printf '\200\002('; twice 'N\205' 19; printf l.; } > "$p"; bounded "tuples of one" 96 "$p"
{ printf '\200\002('; twice ')' 20; printf l.; } > "$p"; bounded "empty tuples" 96 "$p"
{ printf '\200\002('; twice '}K\000Ns' 18; printf l.; } > "$p"; bounded "dictionaries" 96 "$p"
{ printf '\200\004N'; twice '\224' 20; printf .; } > "$p"; bounded "memos" 96 "$p"
{ printf '\200\002('; twice 'X\004\000\000\000text' 17; printf l.; } > "$p"; bounded "texts" 96 "$p"
head='\200\002}X\010\000\000\000segments]sX\015\000\000\000device_traces](](X\006\000\000\000actionq\001X\004\000\000\000sizeq\002'
{ printf "$head"; twice '}h\001Ns' 18; printf 'ees.'; } > "$p"; bounded "events" 96 "$p"
{ printf "$head"; printf '}(h\001X\005\000\000\000alloch\002K\001uq\003'; twice 'h\003' 19; printf 'ees.'; } > "$p"; bounded "one event listed again and again" 96 "$p"
{ printf '\200\002}X\015\000\000\000device_traces]sX\010\000\000\000segments](}(X\007\000\000\000addressK\000X\012\000\000\000total_sizeK\000X\006\000\000\000blocks](}(X\004\000\000\000sizeK\000uq\001'
	twice 'h\001' 15; printf 'euq\002'; twice 'h\002' 15; printf 'es.'; } > "$p"; bounded "one list of blocks in many segments" 96 "$p"
grep -q 'those of another' "$TMP/err" && pass "and it is refused by name" || fail "and it is refused by name" "$(cat "$TMP/err")"
{ printf '\200\002}X\010\000\000\000segments]sX\015\000\000\000device_traces](](}X\006\000\000\000actionNsN'; twice '0N' 10; printf 'eq\002'; twice 'h\002' 14; printf 'es.'; } > "$p"
bounded "one list of events on many devices" 96 "$p"
{ printf '\200\002)'; twice '\205' 25; printf .; } | gzip -9 > "$p"; bounded "32 MiB of tuples in $(stat -c %s "$p") bytes" 512 "$p"
head -c 64M /dev/zero | gzip -9 > "$p"; bounded "64 MiB of nothing in $(stat -c %s "$p") bytes" 512 "$p"
{ printf '{"traceEvents":[{"name":"'; head -c 64M /dev/zero | tr '\0' a; } | gzip -9 > "$p"; bounded "64 MiB of name" 512 "$p"
grep -q 'more than 256 times' "$TMP/err" && pass "and it is refused by name" || fail "and it is refused by name" "$(cat "$TMP/err")"

j=$TMP/f.json
{ printf '{"traceEvents":['; twice '{"ph":"X","cat":"kernel"},' 15; printf '{}]}'; } > "$j"; bounded "kernels of a profile" 32 "$j"
{ printf '{"traceEvents":['; seq 30000 | sed 's/.*/{"ph":"X","cat":"user_annotation","name":"&"},/'; printf '{}]}'; } > "$j"; bounded "annotations" 32 "$j"
{ printf '{"traceEvents":['; seq 20000 | sed 's/.*/{"name":"[memory]","args":{"Device Type":1,"Device Id":0,"Bytes":1,"Addr":&}},/'; printf '{}]}'; } > "$j"; bounded "allocations of a profile" 32 "$j"
{ printf '{"traceEvents":[{"name":"'; twice a 20; printf '"}]}'; } > "$j"; bounded "a long text" 32 "$j"
{ printf '{"traceEvents":['; printf '],"deviceProperties":['; seq 60000 | sed 's/.*/{"id":&,"name":"x"},/'; printf '{}]}'; } > "$j"; bounded "devices" 32 "$j"

o=$TMP/f.ops
script() { { echo vramcast-golden 1; "$@"; } > "$o"; }
script sh -c "seq 80000 | sed 's/.*/m & 1 0/'"; bounded "operations" 64 "$o"
script sh -c "seq 80000 | sed 's/.*/m 1 1 &/'"; bounded "streams" 64 "$o"
script sh -c "seq 80000 | sed 's/^/s /'"; bounded "settings" 64 "$o"
script sh -c "seq 80000 | sed 's/^/about /'"; bounded "remarks" 64 "$o"

bounded "a trace" 96 traces/lm-train-ctx128.vct
"$VRAMCAST" sim traces/attention.vct --json > "$TMP/one" 2> "$TMP/err"
for _ in 1 2 3 4 5 6; do cat "$TMP/one" "$TMP/one" > "$TMP/two"; mv "$TMP/two" "$TMP/one"; done
bounded "results" 64 "$TMP/one" plot -o "$TMP/x.svg"
{ printf 'CUDA out of memory. Tried to allocate 1.00 GiB. '; twice 'GPU 0 has a total capacity of 1.00 GiB of which ' 14; } > "$TMP/m"; bounded "a message" 32 "$TMP/m" explain
finish
