#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh - dry runs held against peaks that others measured on real cards (measured.tsv).
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=tests/nullgpu/measured
py=$(torch_env 2.6.0)
site=$ENVS/measured
if [ -n "$py" ] && [ ! -d "$site/transformers" ]; then
	"$py" -m pip install -q --no-deps --target "$site" torchvision==0.21.0 pillow \
		transformers==4.51.3 tokenizers==0.21.1 huggingface_hub==0.30.2 safetensors regex requests \
		pyyaml tqdm packaging charset-normalizer idna urllib3 certifi > "$TMP/pip.log" 2>&1 || py=
fi
if [ -z "$py" ]; then
	echo "ok 1 - dry runs against measured peaks # SKIP no PyTorch 2.6.0 and no way to fetch it"
	exit 0
fi
for card in 3060 4060; do
	PYTHONPATH=$site HF_HUB_OFFLINE=1 VRAMCAST_NULL_CUDNN=90100 nice "$VRAMCAST" dryrun -q --no-record \
		--values off -g "rtx$card" -- "$py" $here/train.py $here/measured.tsv "$card" \
		2> "$TMP/err.$card" | grep -E '^(run|near) ' >> "$TMP/runs"
done
if [ ! -d "$ENVS/popular/litgpt" ]; then
	"$py" -m pip install -q --no-deps --target "$ENVS/popular" litgpt==0.5.13 lightning==2.6.6 \
		lightning-utilities==0.15.3 torchmetrics==1.9.0 accelerate==1.15.0 psutil jsonargparse==4.53.0 \
		transformers==4.48.3 > "$TMP/pip.log" 2>&1 || cat "$TMP/pip.log" >&2
fi
popular() { # PROGRAM CARD
	PYTHONPATH=$ENVS/popular:$site HF_HUB_OFFLINE=1 nice "$VRAMCAST" dryrun -q --no-record --values off \
		-g "$2" -- "$py" $here/popular.py $here/popular.tsv "$1" 2> "$TMP/err.$1" | grep '^popular' >> "$TMP/popular"
}
popular litgpt a100-40g-sxm
popular trainer v100-16g-sxm
popular mmseg v100-32g-sxm
popular mmyolo a100-80g-sxm
python3 $here/report.py "$TMP/runs" "$TMP/popular"
