#!/bin/bash
# h100.sh - recordings of a real card (tests/recordings/h100): each replays exactly, what lies beside PyTorch's memory
# adds up to what the driver said, and what is predicted from two of them is what the card did.
. tests/support/tap.sh
R=tests/recordings/h100
value() { printf '%s\n' "$out" | sed -n "s/^ *\"$1\": \"\{0,1\}\([a-z0-9]*\)\"\{0,1\},*\$/\1/p" | head -n 1; }

for f in $R/*.vct; do
	run sim --json --no-advice "$f"
	check "$(basename "$f") replays exactly" test "$rc $(value exact)" = "0 true"
done

# The program printed what cudaMemGetInfo said at its end: 83,894,665,216 of 85,017,493,504 bytes were free.
run sim --json --no-advice $R/compiled.vct
check "context, libraries and segments are what was not free" test "$(value used)" = $((85017493504 - 83894665216))
check "two handles of cuBLAS are the libraries" test "$(value libraries)" = $((2 * (1024 + 131072 + 67108864)))

# The same requests at other addresses took 886 MiB where the card took 1,004: transformer_xl.
for p in gpt llama t5 transformer_xl; do
	run sim --json --no-advice $R/$p-24.vct
	want=$(value peak_reserved)
	run sim --json --no-advice $R/$p-4.vct@batch=4 $R/$p-12.vct@batch=12 --set batch=24
	check "$p: batch 24 from 4 and 12, to the byte ($want)" test "$(value peak_reserved)" = "$want"
done

# cuDNN takes another plan at another size: its workspace follows no law (style: 3,440,656 bytes at 4, 9,732,112 at 12,
# 6,586,384 at 24), and where a plan needs none, none is asked for. What the card did lies inside all the same.
ends() { printf '%s\n' "$out" | tr -d ' \n' | sed -n 's/.*"interval":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p'; }
for p in unet style lstm_packed superres vit; do
	run sim --json --no-advice $R/$p-24.vct
	want=$(value peak_reserved)
	run sim --json --no-advice $R/$p-4.vct@batch=4 $R/$p-12.vct@batch=12 --set batch=24
	check "$p: predicted, not refused" test "$rc" = 0
	read -r low high <<<"$(ends)"
	check "$p: batch 24 lies between the ends ($low $want $high)" test "${low:-1}" -le "$want" -a "$want" -le "${high:-0}"
done
# Where a seventh of the bytes match nothing there is no number; the program itself, run again, has one.
run sim $R/resnet-4.vct@batch=4 $R/resnet-12.vct@batch=12 --set batch=24
expect "resnet: refused, and why" 2 '' '15 % of the bytes of .* match nothing'
finish
