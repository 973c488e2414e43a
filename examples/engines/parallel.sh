#!/bin/sh
# parallel.sh - a sweep in parts under GNU parallel. A part that dies is made again, and goes on where it was; so does
# this script when it is started again with the same words.
#   examples/engines/parallel.sh 8 results traces/decomfl.vct --vary gpu=t4,l4 --vary torch=2.0..2.15
[ $# -ge 3 ] || { echo "usage: parallel.sh PARTS FOLDER TRACE... --vary KEY=VALUES" >&2; exit 2; }
parts=$1 folder=$2; shift 2
mkdir -p "$folder"
seq "$parts" | parallel -q --jobs "${JOBS:-100%}" --retries "${RETRIES:-5}" \
	vramcast sweep -q -j 1 "$@" --shard "{}/$parts" --resume -o "$folder/part-{}.jsonl" || exit
vramcast reduce "$folder"/part-*.jsonl -o "$folder/all.jsonl"
