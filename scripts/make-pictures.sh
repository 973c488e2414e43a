#!/bin/sh
# make-pictures.sh - the pictures of README.md and docs/howto/pictures.md, from the recordings in traces/.
set -e
v=${VRAMCAST:-build/vramcast}
t=traces/lm-train-ctx128.vct
to=${1:-docs/img}
mkdir -p "$to"
"$v" plot $t -g a100-40g-sxm -o "$to/oom.svg"
"$v" plot $t -g a100-40g-sxm --width 600 -o "$to/oom-narrow.svg"
"$v" plot $t -g a100-40g-sxm -t blocks -o "$to/blocks.svg"
"$v" plot $t -g a100-40g-sxm -t segments -o "$to/segments.svg"
"$v" plot $t -t unused -o "$to/unused.svg"
"$v" plot traces/lm-medium-ctx1024.vct -g rtx4090 -t owners -o "$to/owners.svg"
"$v" plot $t --capacity 60GiB --conf '' --conf expandable_segments:True --conf max_split_size_mb:128 -o "$to/compare.svg"
"$v" plot traces/lm-*.vct traces/attention.vct traces/decomfl.vct -m all -t allocators -o "$to/allocators.svg"
runs=$(mktemp); trap 'rm -f "$runs" "$runs.jsonl"' EXIT
"$v" sweep $t --vary capacity=40G,44G,48G,52G,56G,60G,64G,68G,72G,76G,80G --vary 'conf=|expandable_segments:True' -o "$runs.jsonl" 2>/dev/null
"$v" plot "$runs.jsonl" --title 'lm-train-ctx128: peak memory by capacity of the card (GiB)' -o "$to/sweep.svg"
