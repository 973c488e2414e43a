#!/bin/sh
# check.sh - make check-ranks: jobs of several ranks with real PyTorch on the null GPU. TORCH="2.9.1" and
# RANKS="2 4" choose (8 runs the ways to shard alone). DeepSpeed is part of it where it is installed:
# DS_BUILD_OPS=0 vramcast dryrun -g rtx4090 --no-record -- PIP install --no-build-isolation deepspeed
# (its set-up imports PyTorch). Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
for version in ${TORCH:-2.6.0 2.9.1 newest}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	for ranks in ${RANKS:-1 2 4 $([ "$version" = 2.9.1 ] && echo 8)}; do
		rm -f "$TMP"/r.*vct
		set --
		[ "$ranks" -lt 8 ] || set -- DDP "FSDP2 holds a share" "tensor parallel holds a share"
		timeout 900 "$VRAMCAST" dryrun -g a100-80g-sxm --ranks "$ranks" -o "$TMP/r.vct" -- "$py" tests/nullgpu/ranks/ranks.py "$@" > "$TMP/out" 2> "$TMP/err"
		said=$(grep '^not ok' "$TMP/out"; [ "$(grep -c '^ok - the process group ends' "$TMP/out")" = 1 ] || tail -20 "$TMP/err")
		if [ -z "$said" ]; then pass "$version, $ranks ranks: $(grep -c '^ok' "$TMP/out") checks"
		else fail "$version, $ranks ranks" "$said" "$(grep '^# rank' "$TMP/out")"; fi
		check "$version, $ranks ranks: one recording a rank" test "$(find "$TMP" -name 'r*.vct' | wc -l)" = "$ranks"
		[ "$ranks" = 1 ] || check "$version, $ranks ranks: NCCL's own buffers are named with their bytes" \
			grep -q "NCCL's own buffers (at most [0-9.]* [GM]iB, not counted)" "$TMP/err"
	done
	# ZeRO's stages by DeepSpeed itself
	name="$version: DeepSpeed"
	"$VRAMCAST" dryrun -q -g a100-80g-sxm --no-record -- "$py" -c 'import deepspeed' > "$TMP/out" 2>&1 ||
		{ skip "$name" "does not import: $(grep Error "$TMP/out" | tail -1)"; continue; }
	timeout 900 "$VRAMCAST" dryrun -q -g a100-80g-sxm --ranks 2 --no-record -- "$py" tests/nullgpu/ranks/zero.py check > "$TMP/out" 2> "$TMP/err"
	check "$name: every stage said something" test "$(grep -c '^ok\|^not ok' "$TMP/out")" = 8
	relay "$version, 2 ranks: " "$TMP/out"
done
finish
