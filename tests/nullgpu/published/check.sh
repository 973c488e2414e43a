#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh - make check-published: one rank of jobs of many cards, and nets of one, whose peaks others published
# (published.tsv), held against their figure. F=megatron chooses rows by name. SEGMENTARY: where arianizadi/segmentary is
# checked out; MEGATRON_LM, LITGPT, SPEEDRUN, MAE, TRAINING: git directories of NVIDIA/Megatron-LM, Lightning-AI/litgpt,
# KellerJordan/modded-nanogpt, facebookresearch/mae and mlcommons/training; TRANSFORMER_ENGINE: folders, set apart by colons, with that package. Environments lie
# outside the tree. TABLE=FILE: rows of it are written anew (table.py). Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=$PWD/tests/nullgpu/published
SITES=$ENVS/published

fetch() { # NAME PACKAGE...: into a folder of its own
	site=$SITES/$1; shift
	[ -d "$site" ] || { "$py" -m pip install -q --no-deps --target "$site.new" "$@" > "$TMP/pip.log" 2>&1 &&
		mv "$site.new" "$site"; } || return 1
	echo "$site"
}

helpers() { # FOLDER: what Megatron-LM would compile for the python3 that comes first
	# shellcheck disable=SC2046
	c++ -O1 -shared -std=c++17 -fPIC $("$py" -c 'import importlib.util as u, sysconfig as s
print("-I" + s.get_paths()["include"], "-I" + u.find_spec("torch").submodule_search_locations[0] + "/include",
	"-o", "'"$1"'/helpers_cpp" + s.get_config_var("EXT_SUFFIX"))') "$1/helpers.cpp"
}

# what runs, and the packages beside PyTorch (triton is of its release); printed: PYTHONPATH
packages() { # PROGRAM VERSION TORCH
	case $3 in 2.5*) triton=3.1.0 ;; 2.6*) triton=3.2.0 ;; 2.8*) triton=3.4.0 ;; *) triton=3.5.1 ;; esac
	net="requests urllib3 certifi idna charset-normalizer packaging pyyaml tqdm"
	# shellcheck disable=SC2086 # a list of words
	case $1 in
	clips) echo "setuptools<81" > "$TMP/constraint"; export PIP_CONSTRAINT="$TMP/constraint" # mmcv's set-up wants pkg_resources
		fetch "mmaction-$2" "mmaction2==$2" mmcv==1.7.0 torchvision==0.24.1 addict==2.4.0 yapf==0.40.2 platformdirs tomli \
			importlib_metadata==8.5.0 zipp==3.20.2 packaging pyyaml pillow==11.3.0 opencv-python-headless==4.10.0.84 \
			einops scipy==1.15.3 decord==0.6.0
		return ;;
	ultra) case $2 in 8.0.*) more="thop==0.1.1.post2209072238 sentry-sdk py-cpuinfo pandas seaborn tzdata pytz" ;;
		*) more="ultralytics-thop==2.1.6 polars polars-runtime-32 nvidia-ml-py" ;; esac
		case $2 in *.166) more=${more#* } ;; esac # its log has no GFLOPs: there was no thop
		case $3 in 2.11*) vision=0.26.0 ;; *) vision=0.24.1 ;; esac
		fetch "ultralytics-$2" "ultralytics==$2" torchvision==$vision $more opencv-python-headless==4.10.0.84 matplotlib==3.10.3 \
			contourpy cycler fonttools kiwisolver pillow==11.3.0 pyparsing python-dateutil six scipy==1.15.3 psutil $net
		return ;;
	mae|ssd) own=$SITES/$1-$2 # a commit of the repository, beside packages
		case $1 in mae) from=$MAE what="$2 models_vit.py engine_finetune.py util" beside="timm==0.4.12" ;;
		*) from=$TRAINING what="$2:retired_benchmarks/retinanet/ssd" beside= ;; esac
		# shellcheck disable=SC2086 # lists of words
		[ -d "$own" ] || { fetch "$1-$2.new" torchvision==0.24.1 pillow==11.3.0 $beside > /dev/null &&
			git -C "$from" archive $what 2> "$TMP/pip.log" | tar -x -C "$own.new" && mv "$own.new" "$own"; } || return 1
		echo "$own"; return ;;
	rev) fetch "torch-geometric-$2" "torch_geometric==$2" aiohttp aiosignal attrs frozenlist multidict propcache yarl \
			aiohappyeyeballs pyparsing psutil xxhash $net
		return ;;
	rec) fetch "torchrec-$2" "torchrec==$2" fbgemm-gpu==1.4.0 tensordict==0.10.0 torchmetrics==1.0.3 lightning-utilities==0.15.3 \
			pyre-extensions iopath==0.1.10 typing-inspect mypy-extensions portalocker cloudpickle importlib_metadata==8.5.0 \
			zipp==3.20.2 orjson pyvers psutil "triton==$triton" $net
		return ;;
	titan) package=torchtitan ;;
	mcore) package=megatron-core ;;
	lit) fetch "lightning-$2" "lightning==$2" lightning-utilities==0.15.3 torchmetrics==1.9.0 packaging pyyaml tqdm \
		requests urllib3 certifi idna charset-normalizer; return ;;
	conv3d|zero) return ;;
	litgpt) site=$SITES/lit-gpt-$2
		[ -d "$site" ] || { mkdir -p "$site.new" && git -C "$LITGPT" archive "$2" lit_gpt 2> "$TMP/pip.log" |
			tar -x -C "$site.new" && mv "$site.new" "$site"; } || return 1
		light=$(fetch lightning-2.2.5 lightning==2.2.5 lightning-utilities==0.15.3 torchmetrics==1.9.0 $net) &&
			bits=$(fetch bitsandbytes-0.41.0 bitsandbytes==0.41.0 scipy==1.17.1) && echo "$site:$light:$bits"
		return ;;
	ao) fetch "torchao-$2" "torchao==$2" "triton==$triton"; return ;;
	speedrun|parts) fetch "triton-$triton" "triton==$triton"; return ;;
	cogvideox|cogtext) fetch "cogvideo-$2" "diffusers==$2" transformers==4.46.3 tokenizers==0.20.3 accelerate==1.0.1 peft==0.13.2 \
		huggingface_hub==0.26.5 safetensors==0.4.5 psutil regex pillow importlib_metadata zipp $net; return ;;
	flux2) fetch "flux2-$2" "diffusers==$2" transformers==5.10.2 tokenizers==0.22.2 accelerate==1.15.0 peft==0.20.0 \
		huggingface_hub==1.27.0 safetensors==0.8.0 psutil regex pillow importlib_metadata zipp httpx httpcore h11 anyio \
		sniffio hf-xet typer click shellingham rich $net; return ;;
	lowbit) fetch lowbit timm==1.0.31 torchvision==0.24.1 bitsandbytes==0.50.2 "triton==$triton" huggingface_hub==0.34.4 \
		safetensors==0.6.2 pyyaml pillow packaging requests urllib3 certifi idna charset-normalizer tqdm; return ;;
	liger) fetch "liger-$2" "liger-kernel==$2" "triton==$triton" packaging; return ;;
	golden) site=$SITES/megatron-lm-$2
		[ -d "$site" ] || { mkdir -p "$site.new" && git -C "$MEGATRON_LM" archive "$2" 2> "$TMP/pip.log" |
			tar -x -C "$site.new" && helpers "$site.new/megatron/core/datasets" && mv "$site.new" "$site"; } || return 1
		echo "$site:$TRANSFORMER_ENGINE"; return ;;
	sd3|ltx|octocoder|flux1) fetch pipelines diffusers==0.35.1 transformers==4.57.6 tokenizers==0.22.2 accelerate==1.15.0 peft==0.17.1 \
		huggingface_hub==0.36.0 safetensors==0.6.2 hf-xet psutil regex requests pillow importlib_metadata zipp urllib3 \
		certifi idna charset-normalizer packaging pyyaml tqdm; return ;;
	vae) fetch "diffusers-$2" "diffusers==$2" huggingface_hub==0.34.4 safetensors==0.6.2 regex requests pillow \
		importlib_metadata zipp urllib3 certifi idna charset-normalizer packaging pyyaml tqdm; return ;;
	segmentary) [ -d "$SEGMENTARY/src" ] && fetch "segmentary" transformers==5.15.0 tokenizers==0.22.2 \
		huggingface-hub==1.27.0 safetensors==0.8.0 timm==1.0.28 segmentation-models-pytorch==0.5.0 peft==0.20.0 \
		accelerate==1.14.0 lightning==2.6.5 lightning-utilities==0.15.3 torchmetrics==1.9.0 albumentations==2.0.8 \
		albucore==0.0.24 opencv-python-headless==4.14.0.94 scipy==1.17.1 pillow==12.2.0 pyyaml==6.0.3 tqdm==4.70.0 \
		torchvision==0.26.0 packaging regex requests httpx httpcore h11 anyio sniffio idna certifi urllib3 \
		charset-normalizer simsimd stringzilla pydantic pydantic-core annotated-types typing-inspection psutil hf-xet
		return ;;
	esac
	main=$(fetch "$package-$2" "$package==$2") && beside=$(fetch "beside-$triton" "triton==$triton" tyro docstring-parser \
		typeguard shtab rich pygments markdown-it-py mdurl tomli einops tqdm pyyaml requests urllib3 certifi idna \
		charset-normalizer packaging) && echo "$main:$beside"
}

kind() {
	case $program in
	titan|mcore|golden|lit|speedrun|zero) echo "many cards" ;;
	vae|sd3|ltx|cogvideox|cogtext|flux1) echo diffusion ;;
	litgpt|flux2) case $words in generate*) echo inference ;; all) echo diffusion ;; *) echo adapters ;; esac ;;
	conv3d|parts) echo "parts of PyTorch" ;;
	liger) echo kernels ;;
	lowbit) echo "low-bit optimizers" ;;
	octocoder|ao) echo inference ;;
	segmentary) echo segmentation ;;
	rec) echo recommenders ;;
	mae) echo inference ;;
	ssd) echo detection ;;
	rev) echo graphs ;;
	ultra) case $words in *-seg*) echo "instance segmentation" ;; *) echo detection ;; esac ;;
	clips) case $words in recognition_audio/*) echo audio ;; *) echo video ;; esac ;;
	esac
}

row() {
	py=$(torch_env "$torch") || { skip "$name" "PyTorch $torch cannot be installed"; return; }
	path=$(packages "$program" "$version" "$torch") || { skip "$name" "$version cannot be installed"; return; }
	[ "$settings" = - ] && settings=
	place="--world $world --rank $rank" of=$torch
	[ "$world" != - ] || place=
	[ "$program" != rec ] || place="--devices 2"
	case $settings in CUDNN_OF=*) of=${settings#CUDNN_OF=} settings= ;; esac
	case $world/$program in
	-/litgpt|-/ao|-/flux2|-/parts|-/cogvideox|-/cogtext|-/rec|-/rev) ;; # no convolutions, or (9.1) a cuDNN that cannot be asked
	-/*|*/clips) lib=$(cudnn_wheel "$(torch_env "$of")") || { skip "$name" "its cuDNN cannot be installed"; return; }
		settings="$settings VRAMCAST_NULL_CUDNN_LIBRARY=$lib" ;;
	esac
	values=off
	case $program in
	segmentary) values=on ;; # it looks at its labels
	clips|ultra|rec|mae|ssd|rev) values=on ;; # as at first sight
	sd3|ltx|octocoder|lowbit|liger|parts|litgpt|cogvideox|cogtext|flux1|flux2|speedrun|zero) values=on ;; # as at first sight
	golden) values=on settings="VRAMCAST_NULL_VALUES_MAX=16384" ;; # at what other ranks say, and that is small
	esac
	# all three are lists of words
	# shellcheck disable=SC2086
	[ "$last" = "$program $torch $card $place $settings $words" ] ||
	(cd "$TMP" && env -u CC PYTHONPATH="$path" $settings timeout 1800 nice "$VRAMCAST" dryrun -q --stacks off -o "$TMP/run.vct" --values $values \
		--host-weights untouched --report "$TMP/report" -g "$card" --capacity 200GiB $place -- \
		"$py" "$here/$program.py" $words) > "$TMP/out" 2> "$TMP/err"
	last="$program $torch $card $place $settings $words" # rows of one process stand together
	got=$(sed -n "s/^published.* $field \([0-9]*\).*/\1/p" "$TMP/out" | tail -n 1) # of a rank that is played again
	[ -n "$got" ] || { fail "$name" "$(tail -3 "$TMP/err")"; return; }
	error=$(awk -v a="$got" -v b="$bytes" 'BEGIN { printf "%+.3f", 100 * (a - b) / b }')
	echo "# $name: published $bytes bytes, predicted $got, $error %"
	echo "$error" >> "$TMP/errors"
	case $field/$program in reserved/*|*/segmentary|*/ao|*/ultra|before/cogvideox) of=reserved ;; *) of=allocated ;; esac
	ends=$(python3 -c 'import json, sys
p = [r[sys.argv[2]] for r in json.load(open(sys.argv[1]))["runs"] if r[sys.argv[2]]][-1]
print(*("%+.2f" % (100 * (p[end] / p["peak"] - 1)) for end in ("low", "high")))' "$TMP/report" "$of" 2> /dev/null)
	echo "$(kind)$tab$name$tab$card$tab$torch$tab$bytes$tab$got$tab${ends:--}$tab$seen$tab$source" | awk -F "$tab" -v OFS="$tab" -v CONVFMT=%.4f \
		'{ for (i = 5; i <= 6; i++) $i /= 1048576; print }' >> "$TMP/rows"
	check "$name: within $limit % of what was published" \
		awk -v e="$error" -v l="$limit" 'BEGIN { exit !(e <= l && -e <= l) }'
}

case $VRAMCAST in /*) ;; *) VRAMCAST=$PWD/$VRAMCAST ;; esac
tab=$(printf '\t')
while IFS=$tab read -r name program version torch card world rank settings words field bytes limit seen source; do
	case $name in '#'*|'') continue ;; *"$F"*) row < /dev/null ;; esac
done < "$here/published.tsv"
[ -s "$TMP/errors" ] && tr -d '+-' < "$TMP/errors" | sort -n | awk '{ e[NR] = $1 }
	END { printf "# %d rows: median %s %%, worst %s %%\n", NR, e[int((NR + 1) / 2)], e[NR] }'
[ -z "$TABLE" ] || [ ! -s "$TMP/rows" ] || python3 "$here/table.py" "$TABLE" - < "$TMP/rows"
finish
