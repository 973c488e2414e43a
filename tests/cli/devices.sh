#!/bin/sh
# devices.sh - recordings and cards of other makers than NVIDIA: whose allocator is taken, its words, and what it lacks.
# That the rules are right is the subject of tests/oracle-xpu/xpu.sh (XPU) and of the torch model's own tests.
. tests/support/tap.sh
t=traces/decomfl.vct
words() { run sim $t --no-verify --no-advice "$@"; }
words -g mi210 --torch 2.9 --used 62GiB; expect "the card decides: AMD" 3 'HIP out of memory.*PYTORCH_HIP_ALLOC_CONF=expandable'
words -g mi210 --torch 2.12 --used 62GiB; expect "the variable that 2.12 names" 3 'HIP out of memory.*PYTORCH_CUDA_ALLOC_CONF=expandable'
words -g b580 --torch 2.9 --used 10GiB; expect "Intel, before it said what is free" 3 'XPU out of memory.*capacity of 11.33 GiB. Of the allocated.*Please use .empty_cache'
words -g b580 --torch 2.10 --used 10GiB; expect "and after" 3 'XPU out of memory.*capacity of 11.33 GiB of which .* is free. Of'
words -g 910b --torch 2.6 --used 59GiB; expect "Ascend" 3 'NPU out of memory.*[(]NPU 0; 60.97 GiB total capacity; .* current active; '
words -g t4 --torch 2.9 -m torch:device=xpu --capacity 1GiB; expect "a parameter overrides the card" 3 'XPU out of memory'
words -g mi210 --torch 2.9 -m torch:device=cuda --used 62GiB; expect "in both directions" 3 'CUDA out of memory'
words -g b580 --torch 2.2; expect "a version that has no such device" 2 '' 'PyTorch 2.2 has no allocator for XPU yet'
reserved() { "$VRAMCAST" sim $t --no-verify --no-advice --json --start cold "$@" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1; }
c=$(reserved --torch 2.11 -g mi210); e=$(reserved --torch 2.11 -g mi210 --conf expandable_segments:True)
[ "$c" = "$e" ] && pass "ROCm ignores expandable segments up to 2.11" || fail "ROCm 2.11" "$c $e"
e=$(reserved --torch 2.12 -g mi210 --conf expandable_segments:True)
[ "$e" -lt "$c" ] && pass "and has them from 2.12 on" || fail "ROCm 2.12" "$c $e"
c=$(reserved --torch 2.9 -g b60); e=$(reserved --torch 2.9 -g b60 --conf expandable_segments:True)
[ "$c" = "$e" ] && pass "XPU reads no settings up to 2.9" || fail "XPU 2.9" "$c $e"
c=$(reserved --torch 2.10 -g b60); e=$(reserved --torch 2.10 -g b60 --conf max_split_size_mb:20,expandable_segments:False)
[ "$c" = "$e" ] && pass "from 2.10 on only expandable segments count" || fail "XPU 2.10" "$c $e"
e=$(reserved --torch 2.10 -g b60 --conf expandable_segments:True)
[ "$e" -lt "$c" ] && pass "and they do" || fail "XPU 2.10 expandable" "$c $e"
a=$(reserved --torch 2.9 -g mi210); b=$(reserved --torch 2.9 -g a100-80g-sxm)
[ "$a" = "$b" ] && pass "ROCm reserves what CUDA does: it is the same source" || fail "ROCm and CUDA" "$a $b"

# A snapshot names its device only by the names in its stacks.
if command -v python3 > /dev/null; then
	cat > "$TMP/make.py" <<'END'
import pickle, sys
stack = [{"filename": "??", "line": 0, "name": sys.argv[2]}, {"filename": "train.py", "line": 7, "name": "forward"}]
base = 0x7f0000000000
block = {"address": base, "size": 3 << 20, "requested_size": 3 << 20, "state": "active_allocated", "frames": stack}
rest = {"address": base + (3 << 20), "size": 17 << 20, "requested_size": 0, "state": "inactive", "frames": []}
segment = {"device": 0, "address": base, "total_size": 20 << 20, "allocated_size": 3 << 20, "active_size": 3 << 20, "requested_size": 3 << 20,
           "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": stack, "blocks": [block, rest]}
trace = [{"action": a, "addr": base, "size": n << 20, "stream": 0, "frames": stack} for a, n in (("segment_alloc", 20), ("alloc", 3))]
pickle.dump({"segments": [segment], "device_traces": [trace]}, open(sys.argv[1], "wb"), protocol=4)
END
	while IFS='|' read -r gpu text frame; do
		python3 "$TMP/make.py" "$TMP/s.pickle" "$frame"
		run info "$TMP/s.pickle"; expect "a snapshot of $gpu is recognised" 0 "gpu +$gpu"
		run sim "$TMP/s.pickle" --start cold --context 0 --capacity 4MiB; expect "and replayed as such" 3 "$text out of memory"
	done <<'END'
AMD .ROCm.|HIP|c10::hip::HIPCachingAllocator::Native::NativeCachingAllocator::malloc(void**, signed char)
Intel .XPU.|XPU|c10::xpu::XPUCachingAllocator::NativeCachingAllocator::malloc(void**, signed char)
Ascend .NPU.|NPU|c10_npu::NPUCachingAllocator::THNCachingAllocator::malloc(void**, int)
END
else
	skip "snapshots of other devices" "python3 is not here"
fi
finish
