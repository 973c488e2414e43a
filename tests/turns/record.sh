#!/bin/sh
# record.sh VLLM_PYTHON SAVER_PYTHON - makes the recordings of this folder again, on the null GPU. As they are: 27 November
# 2026, vLLM 0.33.0, TRL 1.16.0, transformers 5.20.2, PyTorch 2.14.0; torch_memory_saver 0.0.10, PyTorch 2.9.1; two: 28 November.
vllm=$1; saver=$2; here=$(dirname "$0"); tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
export HF_HUB_OFFLINE=1 VLLM_USE_FLASHINFER_SAMPLER=0
make_one() { # NAME SETTINGS PYTHON PROGRAM...
	name=$1; export PYTORCH_CUDA_ALLOC_CONF="$2"; shift 2
	build/vramcast dryrun -q -g rtx4090 -o "$tmp/$name.vct" -- "$@" > "$tmp/$name.log" 2>&1
	build/vramcast export "$tmp/$name.vct" --no-stacks --redact --level 19 -o "$here/$name.vct"
}
"$vllm" "$here/model.py" "$tmp/model"
for s in awake:0: level1:1: level2:2: level1-split:1:max_split_size_mb:64 level1-expandable:1:expandable_segments:True; do
	rest=${s#*:}; make_one "${s%%:*}" "${rest#*:}" "$vllm" "$here/loop.py" "$tmp/model" "${rest%%:*}"
done
# The server in a process of its own; the trainer's recording is the one with a number.
TWO=1 make_one two "" "$vllm" "$here/loop.py" "$tmp/model" 1
build/vramcast export "$tmp"/two.[0-9]*.vct --no-stacks --redact --level 19 -o "$here/two-trainer.vct"
make_one grpo "" "$vllm" "$here/grpo.py" "$tmp/model" 1
make_one grpo-awake "" "$vllm" "$here/grpo.py" "$tmp/model" 0
make_one grpo-split max_split_size_mb:64 "$vllm" "$here/grpo.py" "$tmp/model" 1
make_one grpo-expandable expandable_segments:True "$vllm" "$here/grpo.py" "$tmp/model" 1
make_one saver "" "$saver" "$here/saver.py" torch
make_one saver-preload "" "$saver" "$here/saver.py" preload
make_one saver-awake "" "$saver" "$here/saver.py" none
make_one saver-round roundup_power2_divisions:4 "$saver" "$here/saver.py" torch
make_one saver-split max_split_size_mb:64 "$saver" "$here/saver.py" torch
