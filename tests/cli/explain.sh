#!/bin/sh
# explain.sh - what `vramcast sim` says when memory runs out is understood by `vramcast explain`, for
# every PyTorch version, with the same numbers.
. tests/support/tap.sh

value() { sed -n "s/^ *\"$1\": \"\\{0,1\\}\\([^\",]*\\)\"\\{0,1\\},\\{0,1\\}\$/\\1/p" "$2" | sed "s/^null\$//" | head -n 1; }
figure() { # bytes and plus_minus of a figure in $TMP/x.json
	sed -n "/^ *\"$1\": {/,/}/p" "$TMP/x.json" | sed -n 's/^ *"\(bytes\|plus_minus\)": \([0-9]*\),*$/\2/p' | tr '\n' ' '
}
near() { # NAME EXACT: is the exact number within the figure's bounds?
	# shellcheck disable=SC2046
	set -- "$1" "$2" $(figure "$1")
	[ $# = 4 ] && [ "$2" -ge $(($3 - $4)) ] && [ "$2" -le $(($3 + $4)) ]
}
before() { [ -z "$1" ] || [ -z "$2" ] || [ "$1" = "$2" ] || [ "$(printf '%s\n%s\n' "$1" "$2" | sort -t. -k1,1n -k2,2n | head -n 1)" = "$1" ]; }

for v in 2.0 2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 2.11 2.12 2.13 2.14 2.15; do
	for conf in '' expandable_segments:True; do
		[ "$v$conf" != 2.0expandable_segments:True ] || continue
		"$VRAMCAST" sim traces/decomfl.vct --no-verify --torch $v --conf "$conf" --capacity 1200MiB --used 20MiB@4711 --context 100MiB --json > "$TMP/sim.json"
		sed -n 's/^ *"message": "\(.*\)",$/\1/p' "$TMP/sim.json" > "$TMP/message"
		"$VRAMCAST" explain "$TMP/message" --json > "$TMP/x.json" 2> "$TMP/err"
		if before "$(value first_version "$TMP/x.json")" $v && before $v "$(value last_version "$TMP/x.json")"; then
			pass "torch $v ${conf:-default}: between $(value first_version "$TMP/x.json") and $(value last_version "$TMP/x.json")"
		else
			fail "torch $v ${conf:-default}: wrong versions" "$(cat "$TMP/message" "$TMP/x.json")"
		fi
		for pair in request:alloc_size free:device_free; do
			[ "$v" != 2.3 ] || [ $pair != free:device_free ] || continue
			exact=$(value ${pair#*:} "$TMP/sim.json")
			if near ${pair%:*} "$exact"; then pass "torch $v ${conf:-default}: ${pair%:*} is the simulated $exact"
			else fail "torch $v ${conf:-default}: ${pair%:*} is not $exact" "$(cat "$TMP/message" "$TMP/x.json" "$TMP/err")"; fi
		done
	done
done

# The same for other devices: whose message it is, and since when.
for d in hip:2.0:H-hip-old hip:2.4:H-hip hip:2.9:H-hip hip:2.12:H-hip xpu:2.4:I-xpu-short xpu:2.6:I-xpu-held xpu:2.9:I-xpu-held xpu:2.10:I-xpu xpu:2.15:I-xpu npu:2.1:N-npu npu:2.9:N-npu; do
	v=${d#*:}; want=${v#*:}; v=${v%:*}; d=${d%%:*}
	"$VRAMCAST" sim traces/decomfl.vct --no-verify -m torch:device=$d --torch $v --capacity 1200MiB --used 20MiB@4711 --context 100MiB --json > "$TMP/sim.json"
	sed -n 's/^ *"message": "\(.*\)",$/\1/p' "$TMP/sim.json" > "$TMP/message"
	"$VRAMCAST" explain "$TMP/message" --json > "$TMP/x.json" 2> "$TMP/err"
	first=$(value first_version "$TMP/x.json"); last=$(value last_version "$TMP/x.json")
	[ "$(value format "$TMP/x.json")" = "$want" ] && before "$first" $v && before $v "$last" &&
		{ [ $want = I-xpu-short ] || { grep -q '"complete": true' "$TMP/x.json" && near request "$(value alloc_size "$TMP/sim.json")"; }; } &&
		pass "torch $v on $d: $want" || fail "torch $v on $d: not $want" "$(cat "$TMP/message" "$TMP/x.json" "$TMP/err")"
done
sed -n 's/^N-npu.*\t//p' tests/oom/messages.tsv | head -n 1 > "$TMP/message"
run explain --json "$TMP/message"; expect "the variable of that device" 0 'PYTORCH_NPU_ALLOC_CONF='

m="CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total capacity; 8.77 GiB already allocated; 19.75 MiB free; 13.71 GiB reserved in total by PyTorch)"
printf '%s\n' "$m" > "$TMP/m"
run explain "$TMP/m"; expect "from a file" 0 'Cause: fragmentation: 4\.96 GiB are free, but not in one piece of 2\.87 GiB'
printf '%s\n' "$m" | "$VRAMCAST" explain > "$TMP/out" 2> "$TMP/err"; rc=$?; out=$(cat "$TMP/out"); err=$(cat "$TMP/err")
expect "from standard input" 0 '2.87 GiB'
gzip -c "$TMP/m" > "$TMP/m.gz"; run explain "$TMP/m.gz"; expect "from a compressed log" 0 '2.87 GiB'
run explain --json "$TMP/m"; expect "as JSON" 0 '"schema": "vramcast.explain/1"'
expect "with a cause" 0 '"cause": "fragmentation"'
# The card of the next step: the one of that memory, a driver's difference away, one that is only named, the maker's
while read -r of total card; do
	echo "$of out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of $total GiB of which 1.00 GiB is free." > "$TMP/m"
	run explain "$TMP/m"; expect "$of, $total GiB: $card" 0 '' "dryrun -g $(echo "$card" | sed "s/+/[+]/") -- "
done <<-'END'
	CUDA 79.26 a100-80g-sxm
	CUDA 14.75 t4
	CUDA 23.65 rtx4090
	CUDA 23.62 rtx4090
	CUDA 10.74 rtx2080ti
	CUDA 11.17 k80
	CUDA 7.91 gtx1080
	CUDA 4.75 a100-40g-sxm+1g.5gb
	HIP 19.92 rx7900xt-20g
	HIP 15.98 rx7800xt-16g
	XPU 15.56 arc-a770-16g
END
echo "all went well" > "$TMP/m"; run explain "$TMP/m"; expect "a text without such a message" 1 '' 'no out-of-memory message'
run explain a b; expect "two files" 2 '' 'one file'
run explain "$TMP/none"; expect "a file that is not there" 1 '' 'none'
tensor="ResourceExhaustedError: OOM when allocating tensor with shape[256,64,56,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc"
printf '%s\n' "$tensor" > "$TMP/tensor"
run explain "$TMP/tensor"; expect "the shape of a tensor is a figure" 0 'asked for +196\.00 MiB'
check "of such a message it is not said that it has none, and no other framework's functions are named" sh -c '! grep -qE "no figures|torch" "$1"' sh "$TMP/out"
printf '%s\n' "$tensor" | sed 's/256,64/99999999999,99999999999/' > "$TMP/tensor"
run explain "$TMP/tensor"; expect "a shape that no memory holds is none" 0 'no figures'
# What a pool says of itself is TensorFlow's; a limit of another program's message is no pool.
pool() { printf 'I bfc_allocator.cc:702] Stats:\nLimit: 12049707828\nInUse: 11984328960\nW bfc_allocator.cc:275] Ran out of memory trying to allocate %s. See logs.\nOOM when allocating tensor with shape[256,832,7,7]\n' "$1" > "$TMP/pool"; run explain "$TMP/pool"; }
pool 39.81MiB; expect "a pool with room in pieces" 0 '12049707828 bytes and has 11984328960 bytes in use: what is left would do, but lies in pieces'
pool 139.81MiB; expect "a pool without room" 0 'too little is left, whatever its pieces'
printf '%s\n' "CUDA out of memory. GPU 0 has a total capacity of 31.47 GiB. 30.00 GiB allowed; Of the allocated memory 9.08 GiB is allocated by PyTorch" > "$TMP/cut"
run explain "$TMP/cut"; check "a damaged message with a limit is not taken for one of a pool" sh -c 'grep -q "cut off or damaged" "$1" && ! grep -q TensorFlow "$1"' sh "$TMP/out"
finish
