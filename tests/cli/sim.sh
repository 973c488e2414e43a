#!/bin/sh
# sim.sh - the road from a recording to a verdict and a picture, on the recordings in traces/.
. tests/support/tap.sh
t=traces/lm-train-ctx128.vct

for f in traces/decomfl.vct traces/lm-*.vct traces/attention.vct; do
	run sim --strict "$f"; expect "$f is reproduced exactly" 0 'reproduces this recording exactly'
done
run info $t; expect "info says what is in it" 0 '62\.46 GiB'
run info --json $t; expect "info as JSON" 0 '"schema": "vramcast.info/1"'
run sim $t -g h100-80g-pcie; expect "it fits on a card that is large enough" 0 'fits: 62\.96 GiB of 79\.11 GiB'
run sim $t -g a100-40g-sxm; expect "it runs out on a smaller one, code 3" 3 'runs out of memory at event 14116'
expect "and says what PyTorch would say" 3 'CUDA out of memory\. Tried to allocate 100\.00 MiB\. GPU 0 has a total capacity of 39\.39 GiB'
run sim $t -g h100-80g-pcie --fail-above 70%; expect "over a budget, code 4" 4
run sim $t -g h100-80g-pcie --fail-above 95%; expect "within it, code 0" 0
run sim $t --capacity 50GiB --json; expect "JSON names the verdict" 3 '"verdict": "oom"'
run sim $t -g h100-80g-pcie --used 30GiB@4711 --json; expect "another process takes its share" 3 'Process 4711 has 30\.00 GiB memory in use'
run sim tests/recordings/oom.vct --no-advice; expect "as it was recorded, too" 3 'CUDA out of memory\. Tried to allocate'
run sim tests/recordings/fraction.vct -g t4; expect "a fraction that the program sets is the cause" 3 'cause +the limit of this process: 2\.46 GiB'
run sim tests/recordings/fraction.vct -g t4; expect "the whole card is the first advice" 3 '1\. let the process have the whole card, which it limits itself: fits, 3\.15 GiB reserved'
run sim tests/recordings/fraction.vct -g t4 -x fraction:f=1,instead=true; expect "the limit of the program is gone" 0 'fits: 3\.27 GiB of 14\.57'
run sim traces/decomfl.vct -g t4 --fraction 0 --no-advice; expect "a fraction of nothing is one, too" 3 'cause +the limit of this process: '
run sim $t --torch 2.2 --torch 2.9 -m direct -m torch --json; expect "all combinations are runs" 0 '"model": "direct"'
[ "$(printf '%s\n' "$out" | grep -c '"verdict"')" = 4 ] && pass "four of them" || fail "four of them" "$out"
run sim $t -m bfc:growth=true; expect "another allocator is named" 0 '= reserved by TensorFlow.s BFC +64\.00 GiB'
expect "in the table of holders, too" 0 '64\.00 GiB  -       = reserved by TensorFlow.s BFC'
run sim $t -m bfc:framework=jax --capacity 40GiB; expect "JAX takes three quarters of the card" 3 '= reserved by TensorFlow.s BFC +30\.00 GiB'
expect "and says what it would say" 3 'RESOURCE_EXHAUSTED: Out of memory while trying to allocate'
run sim $t -m bfc; expect "trust is in the torch model only" 0 "that is the torch model; no recording of PyTorch"
run sim $t --conf backend:cudaMallocAsync; expect "the driver's pools lie between two bounds" 0 'reserved lies between 51\.34 GiB and 61\.78 GiB'
expect "and are held against PyTorch's allocator" 0 'backend:cudaMallocAsync +62\.46 GiB -> 61\.78 GiB'
run sim $t --conf backend:cudaMallocAsync --capacity 30GiB; expect "with the words of that backend" 3 'Allocation on device 0 would exceed allowed memory'
run sim $t --conf backend:cudaMallocAsync -m torch:segment=64MiB; expect "which has none of the torch model's parameters" 1 '' 'take -m cuda_async'
run sim $t -m rmm_pool -g h100-80g-pcie; expect "RMM's pool begins with half of the card, and doubles" 0 '= reserved by RMM.s pool'
models=$(grep -c '^VC_MODEL' simulator/models/models.def)
run sim $t -m all; expect "every allocator stands in one table" 0 'live at the peak: 51\.32 GiB'
[ "$(printf '%s\n' "$out" | grep -cE '^  [a-z_]+( 2\.6)? +(fits|flushes|oom) ')" = "$models" ] && pass "each on its line" || fail "each on its line" "$out"
run sim $t -m all -m bfc:framework=jax --csv; expect "also as CSV" 0 '^bfc:framework=jax,'
[ "$(printf '%s\n' "$out" | wc -l)" = $((models + 2)) ] && pass "with one line each" || fail "with one line each" "$out"
run sim $t -m all -g a100-40g-sxm --no-advice --json; expect "and in JSON, where each runs out" 3 '"oom_event": 14116'
run sim $t -m all --json --csv; expect "not as both" 2 '' 'both want standard output'
run sweep $t --vary model=all --vary capacity=64G,80G; expect "a sweep takes all of them, too" 0 '"model":"cupy"'
[ "$(printf '%s\n' "$out" | wc -l)" = $((2 * models)) ] && pass "times what else it varies" || fail "times what else it varies" "$out"
run sim $t; case $out in *"that is the torch model"*) fail "no such note for PyTorch itself" "$out" ;; *) pass "no such note for PyTorch itself" ;; esac
run sim $t --torch 1.9; expect "an unknown version is refused with the known ones" 2 '' '2\.0'
run sweep traces/attention.vct --vary torch=2.0..2.15; expect "a range of versions is every version in it" 0 '"torch":"2.12"'
[ "$(printf '%s\n' "$out" | wc -l)" = 16 ] && pass "sixteen of them" || fail "sixteen of them" "$out"
run sweep traces/attention.vct --vary torch=2.9..2.1; expect "a range that runs backwards is refused" 2 '' 'no such range'
run sim $t --torch 2.0 --conf expandable_segments:True; expect "a setting the version does not know is refused as it does" 2 '' 'Unrecognized CachingAllocator option'
run sim $t -g rtx9999; expect "an unknown card" 2 '' "no gpu 'rtx9999'"
run sim $t -m torsh; expect "an unknown model" 2 '' 'did you mean torch'
run sim $t -x nothing; expect "an unknown transform" 2 '' 'no transform'
run sim $t -o "$TMP/x.doc"; expect "an unknown extension" 2 '' 'extension'
[ ! -e "$TMP/x.doc" ] && pass "leaves no file" || fail "leaves no file"
run sim $t -o "$TMP/no/such/folder.svg"; expect "a folder that is not there" 1 '' 'folder\.svg'
run dump $t --from 3000 --to 3001; expect "dump prints events" 0 'device=0'

# The same bytes every time, and through every way in.
"$VRAMCAST" sim $t -g a100-40g-sxm --json -o "$TMP/a.svg" > "$TMP/a.json"
"$VRAMCAST" sim $t -g a100-40g-sxm --json -o "$TMP/b.svg" > "$TMP/b.json"
check "no key comes twice in an object of the JSON" python3 -c '
import json, sys
def once(pairs):
    assert len({k for k, _ in pairs}) == len(pairs), pairs
    return dict(pairs)
json.load(open(sys.argv[1]), object_pairs_hook=once)' "$TMP/a.json"
check "two runs give the same JSON" cmp "$TMP/a.json" "$TMP/b.json"
check "and the same picture" cmp "$TMP/a.svg" "$TMP/b.svg"
check "the picture is well-formed" xmllint --noout "$TMP/a.svg"
[ "$(wc -c < "$TMP/a.svg")" -lt 1000000 ] && pass "and smaller than 1 MB" || fail "and smaller than 1 MB"
"$VRAMCAST" sim - --json < $t > "$TMP/pipe.json"; rc=$?; out=$(cat "$TMP/pipe.json"); err=
expect "a trace from a pipe" 0 '"peak_reserved": 67071115264'
"$VRAMCAST" export $t --to vct -o "$TMP/copy.vct" && "$VRAMCAST" export "$TMP/copy.vct" --to vct -o "$TMP/copy2.vct"
check "export is stable" cmp "$TMP/copy.vct" "$TMP/copy2.vct"
"$VRAMCAST" dump $t > "$TMP/d1"; "$VRAMCAST" dump "$TMP/copy.vct" > "$TMP/d2"
check "and loses nothing" cmp "$TMP/d1" "$TMP/d2"
zstd -dc $t > /dev/null 2>&1 && pass "plain zstd reads a .vct" || fail "plain zstd reads a .vct"

# Damage: what is left is read, what is missing is said, nothing half-written stays.
head -c 45000 $t > "$TMP/cut.vct"
run info "$TMP/cut.vct"; expect "a cut trace is read as far as it goes" 0 'complete +no'
dd if=/dev/zero of="$TMP/copy.vct" bs=1 seek=20000 count=64 conv=notrunc 2> /dev/null
run info "$TMP/copy.vct"; [ $rc -le 1 ] && pass "a damaged trace is no crash" || fail "a damaged trace is no crash" "$rc $err"
# Reserved reaches its peak by a small segment, when the tensors that filled the rest are gone.
printf 'vramcast-golden 1\ntotal 85899345920\nother 0\nconf\nevents\nm 1 1073741824 0\nf 1\nm 2 512 0\n' > "$TMP/late.ops"
run sim "$TMP/late.ops" -g t4 --no-advice; expect "what tensors took at most is said" 0 'at most, at another moment +1\.00 GiB'
run sim "$TMP/late.ops" --capacity 2GiB --context 0 --no-advice; expect "a context that is not known is said in its place" 0 '\+ CUDA context +not known, not counted'
check "... once, and nowhere else" [ "$(printf '%s\n' "$out" | grep -c 'not known, not counted')" = 1 ]
finish
