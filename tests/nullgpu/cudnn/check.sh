#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh - make check-cudnn: the workspace that a dry run takes is that of the plan which PyTorch would take of the installed
# cuDNN's own list. TORCH="2.9.1 2.11.0", CARDS="rtx3060 h100-80g-sxm" choose. TRUTH=FILE: a table that was recorded on the first
# of CARDS (make check-gpu) is compared as well. Not part of make check: the first run downloads PyTorch and cuDNN.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=tests/nullgpu/cudnn

for version in ${TORCH:-2.9.1 2.11.0}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	lib=$(cudnn_wheel "$py") || { skip "$version" "its cuDNN cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	export VRAMCAST_NULL_CUDNN_LIBRARY="$lib" XDG_CACHE_HOME="$TMP/cache-$version"
	dry() { timeout 1500 "$VRAMCAST" dryrun "$@" > "$TMP/out" 2> "$TMP/err"; }
	VRAMCAST_NULL_WORKSPACE_LOG=$TMP/shapes dry -g rtx4090 --no-record -- "$py" $here/nets.py
	check "$version: twelve nets run" grep -qx wave "$TMP/out"
	grep -v /fallback "$TMP/shapes" > "$TMP/plain"
	for card in ${CARDS:-rtx3060 rtx4090 a100-40g-sxm h100-80g-sxm b200-180g}; do
		"$VRAMCAST" gpus "$card" --export-properties "$TMP/card.json"
		for mode in "" /fallback; do
			awk -v m="$mode" '{ $3 = $3 m; print }' "$TMP/plain" |
				"$BUILD/nullgpu/vcnull-cudnn-plans" rows "$lib" "$TMP/card.json" > "$TMP/list${mode#/}" 2> "$TMP/err"
		done
		# 9.10.2 dies at its first question about a B200; the rules answer then
		grep -q '^[^#]' "$TMP/list" || { skip "$version, $card" "this cuDNN ends when it is asked for such a card"; continue; }
		dry -g "$card" --no-record -- "$py" python/probe_workspaces.py "$TMP/measured" "$TMP/plain"
		if grep -q 'cuDNN ended the process that asked it' "$TMP/err"; then
			skip "$version, $card" "this cuDNN ends when it is asked some of this"; continue
		fi
		if said=$("$py" $here/compare.py "$TMP/list" "$TMP/measured" "$TMP/listfallback" 2>&1); then pass "$version, $card: $said"
		else fail "$version, $card: the plan that PyTorch takes is the list's" "$said" "$(tail -3 "$TMP/err")"; fi
	done
done
finish
