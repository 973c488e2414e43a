#!/bin/sh
# hooks.sh - the hook on PyTorch's CUDA allocator, event by event: flags of pools, frees that wait, expandable segments,
# what libraries do beside it, an allocator that is another. torch_cuda.sh counts, this reads.
. tests/tracer/lib.sh
cp -r "$bin/torch" "$TMP/torch"
ln -s libcudart.so.12 "$TMP/torch/lib/libcuda.so.1" # the driver, of whose functions 2.6 keeps a table
export LD_LIBRARY_PATH="$TMP/torch/lib"
# hooks MINOR WORD: what was recorded, without numbers, times and the first sample
hooks() {
	printf "__version__ = '2.%d.0+cu000'\n" "$1" > "$TMP/torch/version.py"
	rm -f "$TMP/a.vct"
	STANDIN_TORCH=$1 run record -q -o "$TMP/a.vct" -- "$TMP/torch/lib/hooks" "$2"
	"$VRAMCAST" dump "$TMP/a.vct" 2> /dev/null | sed 's/^[0-9]* [0-9]* //; s/device=0 //; /^device_sample /d; /^mark .*label=resident memory$/d' > "$TMP/said"
}
# says NAME [PATTERN]: the program's own output is nothing, and the events (that match) are those on the standard input
says() {
	cat > "$TMP/wanted"
	[ -z "$2" ] || { grep -E "$2" "$TMP/said" > "$TMP/some"; mv "$TMP/some" "$TMP/said"; }
	if [ "$rc$out" != 0 ]; then fail "$1" "exit code $rc" "$out"
	elif cmp -s "$TMP/said" "$TMP/wanted"; then pass "$1"; else fail "$1" "$(diff "$TMP/wanted" "$TMP/said")"; fi
}
note() { "$VRAMCAST" info --no-verify "$TMP/a.vct" 2> /dev/null | grep -cE "^note: .*$1"; }

hooks 12 pools; says "pools: who serves them, what they are good for" pool << 'END'
pool_create id=1 stream=all flags=32
pool_create id=2 stream=all
pool_create device=1 id=3 stream=all
pool_create id=1 stream=all flags=64
pool_release id=1 stream=all
pool_create device=1 id=3 stream=all flags=128
pool_release device=1 id=3 stream=all
END
equal "the end of a scope that nobody saw begin is said" "$(note 'a memory pool was in use when the recording began')" 1
hooks 9 fresh; says "the null GPU is told of memory that nobody has written" ' id=1 ' << 'END'
alloc id=1 size=1000 addr=200000000000
free id=1 addr=200000000000
END
for minor in 9 15; do
	hooks $minor deferred; says "2.$minor: freed in a scope, each block waits for the events that the next request records" << 'END'
segment_alloc size=20971520 addr=200000000000
alloc id=1 size=1000 addr=200000000000
alloc id=2 size=2000 addr=200000000400
alloc id=3 size=3000 addr=200000000c00
use id=1 addr=200000000000 stream=11255812
use id=1 addr=200000000000 stream=11255813
use id=2 addr=200000000400 stream=11255812
pool_begin id=1 stream=all
free id=1 addr=200000000000 flags=8
free id=2 addr=200000000400 flags=8
free id=3 addr=200000000c00
alloc id=4 size=4000 addr=200000001800
pool_end id=1 stream=all
pool_release id=1 stream=all
alloc id=5 size=5000 addr=200000002800
free_done id=1 addr=200000000000
free_done id=2 addr=200000000400
alloc id=6 size=6000 addr=200000003c00
alloc id=7 size=7000 addr=200000005400
END
	hooks $minor waits; says "2.$minor: of many events the allocator's own count, asked for or waited for" ' (id|dev)|trim' << 'END'
alloc id=1 size=1000 addr=200000000000
use id=1 addr=200000000000 stream=11255812
use id=1 addr=200000000000 stream=11255813
use id=1 addr=200000000000 stream=11255812
free id=1 addr=200000000000 flags=8
alloc id=2 size=5000 addr=200000000400
free_done id=1 addr=200000000000
alloc id=3 size=6000 addr=200000001800
alloc id=4 size=7000 addr=200000003000
use id=4 addr=200000003000 stream=11255814
free id=4 addr=200000003000 flags=8
free_done id=4 addr=200000003000
trim device=0
END
done
while read -r minor how; do
	export STANDIN_EXPANDABLE="$how"
	hooks "$minor" expandable; says "2.$minor, functions of the driver by $how: what is mapped and unmapped, and a refusal" << 'END'
segment_map size=31457280 addr=400000000000
alloc id=1 size=31457280 addr=400000000000
segment_map size=20971520 addr=400001e00000
alloc id=2 size=1000 addr=400001e00000
mark label=device allocation of 1099511627776 bytes refused
oom size=1099511627776 addr=200000000
free id=1 addr=400000000000
free id=2 addr=400001e00000
segment_unmap size=31457280 addr=400001400000
segment_unmap size=20971520 addr=400000000000
trim device=0
segment_map size=20971520 addr=400000000000
alloc id=3 size=2000 addr=400000000000
END
	equal "2.$minor, by $how: that there are segments is said" "$("$VRAMCAST" info --json "$TMP/a.vct" | grep -c '"segments": *"recorded"')" 1
done << 'LIST'
5 table
9 name
12 version
LIST
unset STANDIN_EXPANDABLE
hooks 9 beside; says "libraries beside PyTorch: what they hold, and what they are refused" << 'END'
segment_alloc size=20971520 addr=200000000000
alloc id=1 size=1000 addr=200000000000
outside_alloc size=4096 addr=200001400000 label=hooks
outside_free size=4096 addr=200001400000 label=hooks
mark label=device allocation of 2199023255553 bytes refused
mark label=device allocation of 2199023255554 bytes refused
mark label=pinned host allocation of 18446744073709547520 bytes refused
mark label=managed allocation of 2199023255556 bytes refused
mark label=device allocation of 2199023255557 bytes refused
END
hooks 9 told; says "steps of optimizers, until the program tells its own" 'alloc id|mark' << 'END'
alloc id=1 size=1000 addr=200000000000
mark flags=1 label=step
mark flags=1 label=step
alloc id=2 size=2000 addr=200000000400
alloc id=3 size=3000 addr=200000000c00
mark flags=1 label=step
END
export CUDA_VISIBLE_DEVICES
for CUDA_VISIBLE_DEVICES in "" -1; do
	hooks 9 shared; sed 's/addr=[0-9a-f]*/addr/' "$TMP/said" > "$TMP/some"; mv "$TMP/some" "$TMP/said"
	says "host memory, devices '$CUDA_VISIBLE_DEVICES': what the allocator reports, too, is recorded once" << 'END'
outside_alloc size=4096 addr label=shared host memory
outside_free size=4096 addr label=shared host memory
alloc id=1 size=1000 addr
free id=1 addr
END
done
CUDA_VISIBLE_DEVICES=1; hooks 9 shared; equal "... where a card can be expected, nothing" "$rc $(cat "$TMP/said")" "0 "
unset CUDA_VISIBLE_DEVICES
STANDIN_SHIFT=1 hooks 9 shifted; says "a pointer that was not reported, the second time: the table is put back, sizes are blocks'" 'alloc id' << 'END'
alloc id=1 size=1000 addr=200000000000
alloc id=2 size=1001 addr=200000000400
alloc id=3 size=1002 addr=200000000800
alloc id=4 size=1024 addr=200000000c00
alloc id=5 size=1024 addr=200000001000
END
equal "... and that is said" "$(note 'has another layout than expected') $("$VRAMCAST" info --json --no-verify "$TMP/a.vct" | grep -c '"requests": *"partial"')" "1 1"
hooks 9 foreign; sed 's/addr=[0-9a-f]*/addr/' "$TMP/said" > "$TMP/some"; mv "$TMP/some" "$TMP/said"
says "another allocator is left alone: what it reports" << 'END'
alloc id=1 size=1000 addr
free id=1 addr
END
equal "... and that is said" "$(note 'the allocator of this process is none that the tracer knows')" 1

# What `record --pid` has a program do: twice, and each window has all that lived before.
if [ "${ARCH:-$(uname -m)}" = x86_64 ]; then
	printf "__version__ = '2.9.0+cu000'\n" > "$TMP/torch/version.py"; mkdir "$TMP/first" "$TMP/second"
	out=$(STANDIN_TRACER="$PWD/${BUILD:-build}/libvramcast_trace.so" VC_CUPTI="$PWD/$bin/libcupti_standin.so" \
		STANDIN_FIRST="$TMP/first" STANDIN_SECOND="$TMP/second" "$TMP/torch/lib/hooks" attached); rc=$?
	for window in first second; do
		"$VRAMCAST" dump "$TMP/$window"/*.vcj | sed 's/^[0-9]* [0-9]* //; s/device=0 //; /^device_sample /d; /^mark .*label=resident memory$/d' > "$TMP/said"
		says "attached, the $window window: the heap, who used it before, kernels; nothing stays" << 'END'
heap_segment id=1 size=20971520 addr=200000000000 flags=1
heap_block id=1 size=1000 addr=200000000000 flags=4
heap_block id=2 size=2000 addr=200000000400 flags=4
heap_block id=3 size=3000 addr=200000000c00 flags=4
heap_block id=4 size=4000 addr=200000001800 stream=11255814 flags=4
heap_block id=5 size=5000 addr=200000002800 flags=4
heap_block addr=200000003c00
configure label=max_split_size_mb:32
use id=3 addr=200000000c00 stream=11255813
use id=1 addr=200000000000 stream=11255812
free id=1 addr=200000000000 flags=8
free id=2 addr=200000000400
use id=3 addr=200000000c00 stream=11255812
free id=3 addr=200000000c00 flags=8
free id=4 addr=200000001800
pool_begin id=1 stream=all
alloc id=6 size=6000 addr=200000003c00
free_done id=1 addr=200000000000
free_done id=3 addr=200000000c00
alloc id=7 size=7000 addr=200000005400
alloc id=8 size=8000 addr=200000007000
free id=6 addr=200000003c00
free id=7 addr=200000005400
free id=8 addr=200000007000
alloc id=9 size=1000 addr=200000000000
pool_end id=1
free id=9 addr=200000000000
free id=5 addr=200000002800
kernel id=5 size=1000 label=a kernel
END
	done
else skip "attached" "that is for x86-64 alone"; fi

for again in 1 2 3 4; do # it ends at once: whoever seals must have taken the names by then
	run record -q -o "$TMP/d.vct" --keep 10m -- "$TMP/torch/lib/hooks" told
	equal "the program has what is kept sealed, time $again" "$("$VRAMCAST" dump "$TMP/d.dump.vct" | grep -cE ' alloc | mark .*label=step') $("$VRAMCAST" dump "$TMP/d.vct" | grep -cE ' alloc | mark .*label=step')" "4 6"
	rm "$TMP"/d.*vct
done
run record -o "$TMP/g.vct" --guard 100 -- "$TMP/torch/lib/hooks" grows
equal "--guard: said once, before it happens" "$rc $(echo "$err" | grep -cE '^vramcast: process [0-9]* runs out in about [0-9]* steps .* keeps 64.00 MiB a step$')" "0 1"
STANDIN_LINGERS=1 run record -q -o "$TMP/g.vct" --guard 100 --guard-signal TERM -- "$TMP/torch/lib/hooks" grows
equal "--guard-signal: the process gets it" "$rc" 143
run record -q -o "$TMP/g.vct" --guard 20 --guard-signal TERM -- "$TMP/torch/lib/hooks" grows
equal "--guard: not as long as there are more steps left" "$rc" 0
for when in "reserved>2GiB 33" "reserved>25% 33" "allocated>2GiB 33" "free<6GiB 33"; do
	run record -q -o "$TMP/w.vct" --keep 10m --when "${when% *}" -- "$TMP/torch/lib/hooks" grows
	equal "--when ${when% *}: sealed when it is so" "$rc $("$VRAMCAST" dump "$TMP/w.when.vct" 2> /dev/null | grep -c ' alloc ')" "0 ${when#* }"
done
finish
