#!/bin/sh
# recordings.sh - make check-torch-recordings: scripts whose memory was recorded on real GPUs, run again
# on the null GPU. The recordings and the scripts that were rewritten from them lie in ../shared.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=tests/nullgpu/torch
scripts=../shared/nullgpu/tests; data=../shared/data/snapshots
[ -d $scripts ] && [ -d $data ] || { skip "reruns of public recordings" "../shared is not here"; finish; }
new=$(torch_env 2.11.0) || { skip "reruns of public recordings" "no PyTorch 2.11.0"; finish; }
old=$(torch_env 2.6.0) || { skip "reruns of public recordings" "no PyTorch 2.6.0"; finish; }
for p in "$new" "$old"; do
	"$p" -c 'import einops' 2> /dev/null || "${p%python}pip" install -q einops > /dev/null 2>&1
done

rerun() { # NAME RECORDING SETTINGS... PYTHON SCRIPT
	name=$1; recording=$data/$2; shift 2
	env OUT="$TMP/mine.pickle" "$@" > "$TMP/out" 2>&1 || { fail "$name" "$(tail -3 "$TMP/out")"; return; }
	if said=$("$new" $here/compare.py rerun "$recording" "$TMP/mine.pickle" 2>&1); then
		pass "$name: $said"
	else
		fail "$name" "$said"
	fi
}
card="$VRAMCAST dryrun -g rtx4090 --capacity 49000M --no-record --"
medium=Wedsonlin+assignment2-systems__results_medium
for tokens in 128 256; do
	for mode in training inference; do
		rerun "transformer of 24 layers, $tokens tokens, $mode" "${medium}_${tokens}_${mode}_memory_snapshot.pickle" \
			CTX=$tokens MODE=$mode WARM=3 $card "$new" $scripts/cs336.py
	done
done
rerun "the same, 1024 tokens, training, bf16 autocast" "${medium}_1024_training_memory_snapshot.pickle" \
	AMP=1 CTX=1024 $card "$new" $scripts/cs336.py
rerun "the same, 1024 tokens, inference" "${medium}_1024_inference_memory_snapshot.pickle" \
	MODE=inference CTX=1024 $card "$new" $scripts/cs336.py
rerun "transformer of 12 layers, batch 32, forward and backward (Windows)" \
	"MAGMA27+assignment2-systems__memory_snapshot@15883f2.pickle" \
	MODE=fwdbwd B=32 CTX=256 D=768 L=12 H=12 FF=3072 $card "$new" $scripts/cs336.py
rerun "attention script, from an empty device" "silmont2000+assignment2-systems__mem_snapshot.pickle" \
	A=1 $card "$old" $scripts/silmont_attn.py
finish
