#!/bin/sh
# torch_cuda.sh - the hook on PyTorch's CUDA allocator against a stand-in of its libraries, of several
# versions: four threads, deferred frees, scopes, pinned memory, out of memory, a fork.
. tests/tracer/lib.sh
cp -r "$bin/torch" "$TMP/torch"
lines() { grep -cE "$1" "$TMP/dump"; }

for minor in 0 1 2 4 5 7 8 9 12 15; do
	printf "__all__ = ['__version__']\n__version__ = '2.%d.0+cu000'\n" "$minor" > "$TMP/torch/version.py"
	[ "$minor" -lt 2 ] && sed -i 1d "$TMP/torch/version.py" # their files begin with it
	STANDIN_TORCH=$minor run record -o "$TMP/a.vct" -- "$TMP/torch/lib/client" 4 2000
	expect "2.$minor: recorded" 0 "allocs" "PyTorch 2.$minor.0.*, [0-9]* allocations"
	"$VRAMCAST" dump "$TMP/a.vct" > "$TMP/dump"
	got=$(awk '$3 == "alloc" { n++; split($0, a, "size="); split(a[2], b, " "); s += b[1] } $3 == "free" { f++ } $3 == "use" { u++ } END { printf "allocs %d frees %d uses %d bytes %d", n, f, u, s }' "$TMP/dump")
	equal "2.$minor: every request, of the size that was asked for" "$got" "$out"
	equal "2.$minor: 0 dropped, each free is of an allocation" "$(field "$TMP/a.vct" dropped) $(field "$TMP/a.vct" unmatched_frees) $(field "$TMP/a.vct" double_allocs)" "0 0 0"
	waits=$(lines ' free device=0 .*flags=8'); done=$(lines ' free_done ')
	[ "$waits" -gt 100 ] && [ "$done" -gt 100 ] && [ "$done" -le "$waits" ] && pass "2.$minor: frees that wait for other streams, and their end" || fail "2.$minor: frees that wait for other streams" "$waits $done"
	equal "2.$minor: a library's memory, managed memory and the host's" "$(lines ' outside_(alloc|free) .*label=client$') $(lines ' outside_alloc .*size=5242880 .*label=managed memory') $(lines ' outside_(alloc|free) .*pinned host') $(lines ' outside_(alloc|free) .*registered host')" "3 1 4 2"
	equal "2.$minor: out of memory, with what the device and the host hold" "$(grep --no-group-separator -A2 ' oom ' "$TMP/dump" | sed 's/.*\(oom\|device_sample\|label=resident memory\).*/\1/' | tr '\n' ' ')" "oom device_sample label=resident memory oom device_sample label=resident memory "
	equal "2.$minor: what the host registered is no library's device memory" "$("$VRAMCAST" sim --no-verify --json -g rtx4090 "$TMP/a.vct" | sed -n 's/.*"libraries": *\([0-9]*\),*/\1/p')" $((7 << 20))
	equal "2.$minor: and managed memory is in an account of its own" "$("$VRAMCAST" sim --no-verify --json -g rtx4090 "$TMP/a.vct" | grep -c '"managed": 5242880')" 2
	scope=$(sed -n '/ pool_begin /,/ pool_release .*/p' "$TMP/dump" | awk '{ print $3 }' | grep -E 'pool|alloc$' | tr '\n' ' ')
	if [ "$minor" -ge 3 ]; then equal "2.$minor: a scope whose filter refuses an allocation" "$scope" "pool_begin pool_end alloc pool_begin pool_release "
	else equal "2.$minor: a scope, which has no filter yet" "$scope" "pool_begin alloc pool_end pool_release "; fi
	equal "2.$minor: the cache is emptied, a fraction is set" "$(lines ' trim device=0') $(lines " fraction device=0 size=$((0x3fe8000000000000))")" "1 1"
	[ "$minor" -lt 10 ] || equal "2.$minor: those of the environment are known, however late they are read" "$(PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64 STANDIN_TORCH=$minor "$VRAMCAST" record -q -o "$TMP/e.vct" -- "$TMP/torch/lib/client" 1 10 > "$TMP/out" && "$VRAMCAST" dump "$TMP/e.vct" | grep -c ' configure ')" 0
	equal "2.$minor: the new name of the settings, from 2.10 on" "$(PYTORCH_ALLOC_CONF=max_split_size_mb:64 STANDIN_TORCH=$minor "$VRAMCAST" record -q -o "$TMP/e.vct" -- "$TMP/torch/lib/client" 1 10 > "$TMP/out" && "$VRAMCAST" info "$TMP/e.vct" | grep -cE 'settings  *max_split_size_mb:64|PYTORCH_ALLOC_CONF is set, which' | tr '\n' ' '; "$VRAMCAST" info "$TMP/e.vct" | grep -c 'take PYTORCH_CUDA_ALLOC_CONF')" "1 $([ "$minor" -lt 10 ] && echo 1 || echo 0)"
	equal "2.$minor: settings at run time reach PyTorch and the recording" "$(lines ' configure .*label=max_split_size_mb:64') $(echo "$out" | grep -c arrive)" "1 0"
	refused=$(grep -n "label=device allocation of $((1 << 40)) bytes refused" "$TMP/dump" | cut -d: -f1 | tr '\n' ' '); oom=$(grep -n ' oom ' "$TMP/dump" | head -n 1 | cut -d: -f1)
	equal "2.$minor: the driver's refusal, before the allocator gave up; the other backend asks once or, from 2.14 on, twice" "${refused%% *} $(echo "$refused" | wc -w)" "$((oom - 1)) $([ "$minor" -lt 14 ] && echo 2 || echo 3)"
	equal "2.$minor: capture" "$(lines ' capture_(begin|end) ')" 2
	child=$(ls "$TMP"/a.*.vct); equal "2.$minor: the forked child's own trace" "$("$VRAMCAST" dump "$child" | awk '{ print $3 }' | grep -E 'alloc$|free$' | tr '\n' ' ')" "alloc free "
	rm -f "$TMP"/[ae].*vct
done
# A segment that a library maps for the allocator, gives back and maps again; its other mappings are none of PyTorch's.
printf "__version__ = '2.9.0+cu000'\n" > "$TMP/torch/version.py"
for how in "" "--keep 1000steps"; do
	# shellcheck disable=SC2086
	run record -q $how -o "$TMP/a.vct" -- "$TMP/torch/lib/client" sleep 67108864
	"$VRAMCAST" dump "$TMP/a.vct" > "$TMP/dump"
	equal "memory given back beneath the allocator${how:+, $how}" "$(awk '$3 ~ /segment|pages|outside|^alloc|^free/ { print $3, $4, $5, $6 }' "$TMP/dump" | sed 's/ addr.*//' | tr '\n' ';')" \
		"segment_alloc device=0 size=67108864;alloc device=0 id=1 size=67108864;pages_out device=0 id=1 size=67108864;pages_in device=0 id=1 size=67108864;free device=0 id=1;"
	equal "by whom${how:+, $how}" "$(lines 'segment_alloc .*label=client$') $(lines 'pages_(in|out) .*label=client$')" "1 2"
done
# Samples of the device: with the first segment, then at steps, when more than 200 ms have gone by.
printf "__version__ = '2.9.0+cu000'\n" > "$TMP/torch/version.py"
while read -r ms want; do
	VRAMCAST_NULL_CLOCK=device run record -q -o "$TMP/a.vct" -- "$TMP/torch/lib/client" steps "$ms"
	"$VRAMCAST" dump "$TMP/a.vct" > "$TMP/dump"
	equal "100 steps of $ms ms: $want samples" "$(lines ' device_sample ') $(lines ' mark .*label=step')" "$want 100"
	gaps=$(awk '$3 == "device_sample" { if (last && $2 - last <= 200000000) n++; last = $2 } END { print n + 0 }' "$TMP/dump")
	equal "100 steps of $ms ms: never two within 200 ms" "$gaps" 0
done << 'LIST'
1 1
30 15
100 34
250 101
LIST
STANDIN_CURRENT=3 run record -q -o "$TMP/a.vct" -- "$TMP/torch/lib/client" steps 1
"$VRAMCAST" dump "$TMP/a.vct" > "$TMP/dump"
equal "steps of a rank are its own card's" "$(lines ' mark device=3 .*label=step')" 100
STANDIN_NEXT=1 run record -q -o "$TMP/a.vct" -- "$TMP/torch/lib/client" steps 1
equal "each card of a process is sampled when it is first used" "$("$VRAMCAST" dump "$TMP/a.vct" | sed -n 's/.* device_sample \(device=[0-9]*\) .*/\1/p' | tr '\n' ' ')" "device=0 device=1 "
# 2.16 does not exist yet: what cannot be known is off, what is recorded is right.
printf "__version__ = '2.16.0'\n" > "$TMP/torch/version.py"
STANDIN_TORCH=15 run record -o "$TMP/a.vct" -- "$TMP/torch/lib/client" 4 2000
expect "a version nobody knows: recorded" 0 "" "recorded: requests"
equal "a version nobody knows: uses, trims, pools are absent" "$(echo "$err" | grep -cE 'recorded:.*(uses|trims|pools|completion)')" 0
"$VRAMCAST" dump "$TMP/a.vct" > "$TMP/dump"
equal "a version nobody knows: no wrong record" "$(lines ' (use|pool_begin|trim) ') $(awk '$3 == "alloc" { n++ } $3 == "free" { f++ } END { print n, f }' "$TMP/dump")" "0 8002 8002"
rm -f "$TMP"/a.*vct
finish
