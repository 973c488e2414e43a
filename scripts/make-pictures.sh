#!/bin/sh
# make-pictures.sh - the pictures of README.md and docs/howto/pictures.md, from the recordings in traces/.
set -e
v=${VRAMCAST:-build/vramcast}
t=traces/lm-train-ctx128.vct
to=${1:-docs/img}
mkdir -p "$to"
"$v" plot $t -g a100-40g-sxm -o "$to/oom.svg"
"$v" plot $t -g a100-40g-sxm --width 600 -o "$to/oom-narrow.svg"
"$v" plot $t -g a100-40g-sxm -t segments -o "$to/segments.svg"
"$v" plot $t -t unused -o "$to/unused.svg"
"$v" plot $t -g a100-40g-sxm -t ledger -o "$to/ledger.svg"
"$v" plot traces/lm-medium-ctx1024.vct -g rtx4090 -t flame -o "$to/flame.svg"
"$v" plot tests/recordings/leak-graph.vct -t lives -o "$to/lives.svg"
"$v" plot $t --capacity 60GiB --conf '' --conf expandable_segments:True --conf max_split_size_mb:128 -o "$to/compare.svg"
"$v" plot tests/recordings/h100/gpt-24.vct --capacity 700MiB -t advice -o "$to/advice.svg"
"$v" diff tests/python/recordings/base.vct tests/python/recordings/head.vct -o "$to/diff.svg" > /dev/null
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT # a picture shows the name of its file
"$v" sweep $t --vary capacity=40G,44G,48G,52G,56G,60G,64G,68G,72G,76G,80G -o "$tmp/lm-train-ctx128.jsonl" 2>/dev/null
"$v" plot "$tmp/lm-train-ctx128.jsonl" -o "$to/sweep.svg"
g=tests/ladders/recordings/gpt-amp_batch
"$v" sweep ${g}0001_torch2.9.1.vct@batch=1 ${g}0002_torch2.9.1.vct@batch=2 \
	--vary batch=4,8,16,24,32,48 --vary gpu=t4,rtx3090,a100-40g-sxm,h100-80g-sxm -o "$tmp/gpt-amp.jsonl" 2>/dev/null
"$v" plot "$tmp/gpt-amp.jsonl" -o "$to/heatmap.svg"
