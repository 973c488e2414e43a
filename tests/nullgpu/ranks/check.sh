#!/bin/sh
# check.sh - make check-ranks: jobs of several ranks with real PyTorch on the null GPU. TORCH="2.9.1" and
# RANKS="2 4" choose; DeepSpeed is part of it where it is installed. Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
for version in ${TORCH:-2.6.0 2.9.1 newest}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	WITH_DEEPSPEED=$("$py" -c 'import importlib.util as u; print("1" if u.find_spec("deepspeed") else "")')
	export WITH_DEEPSPEED
	for ranks in ${RANKS:-1 2 4}; do
		rm -f "$TMP"/r.*vct
		timeout 900 "$VRAMCAST" dryrun -g a100-80g-sxm --ranks "$ranks" -o "$TMP/r.vct" -- "$py" tests/nullgpu/ranks/ranks.py > "$TMP/out" 2> "$TMP/err"
		said=$(grep '^not ok' "$TMP/out"; [ "$(grep -c '^ok - the process group ends' "$TMP/out")" = 1 ] || tail -20 "$TMP/err")
		if [ -z "$said" ]; then pass "$version, $ranks ranks: $(grep -c '^ok' "$TMP/out") checks"
		else fail "$version, $ranks ranks" "$said" "$(grep '^# rank' "$TMP/out")"; fi
		check "$version, $ranks ranks: one recording a rank" test "$(find "$TMP" -name 'r*.vct' | wc -l)" = "$ranks"
		[ "$ranks" = 1 ] || check "$version, $ranks ranks: NCCL's own buffers are named with their bytes" \
			grep -q "NCCL's own buffers (at most [0-9.]* GiB)" "$TMP/err"
	done
done
finish
