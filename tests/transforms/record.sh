#!/bin/bash
# record.sh - make the recordings of pairs.txt that are not in the cache: VRAMCAST, PYTHON, CACHE.
# Prints, for each pair: model, ranks, transform, base recording, changed recording, the change.
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/transforms.XXXXXX"); trap 'rm -rf "$work"' EXIT
mkdir -p "$CACHE"
# Models beside our own come from packages that PYTHON may lack: into the cache, once.
export PYTHONPATH="$CACHE/site${PYTHONPATH:+:$PYTHONPATH}"
has='import sys, importlib.util as u; sys.exit(any(not u.find_spec(m) for m in ("torchvision", "transformers", "peft")))'
if ! "$PYTHON" -c "$has"; then
	"$PYTHON" -m pip install -q --no-deps --target "$CACHE/site" torchvision==0.26.0 transformers==4.57.1 peft==0.21.2 \
		accelerate==1.15.0 huggingface_hub==0.36.2 hf-xet tokenizers==0.22.2 safetensors regex requests urllib3 idna certifi \
		charset-normalizer tqdm packaging psutil PyYAML numpy pillow filelock fsspec typing_extensions sympy mpmath \
		networkx jinja2 MarkupSafe 1>&2 || echo "# no packages: models beside gpt, mlp and tables cannot run" >&2
fi
"$PYTHON" -c 'import lion_pytorch' 2> /dev/null ||
	"$PYTHON" -m pip install -q --no-deps --target "$CACHE/site" lion-pytorch==0.2.5 1>&2 || echo "# no lion-pytorch" >&2
how=(-q -g a100-80g-sxm --stacks "${STACKS:-py}" --values off)
trim() { local a=($*); echo "${a[*]}"; }
name() { printf '%s' "$*" | tr ' ,' '_+' ; }
pairs() { # model|ranks|transform|base arguments|changed arguments
	local models base change ranks transform m
	grep -v '^#' "${PAIRS:-$here/pairs.txt}" | while IFS='|' read -r models base change ranks transform; do
		for m in $models; do
			case " ${MODELS:-gpt llama conv vit mlp tables bert gpt2 convnext pairs efficient mixer swin t5 unet qwen neox distil wav mobile dense shuffle encoder dlrm} " in *" $m "*) ;; *) continue ;; esac
			echo "$m|$(trim $ranks)|$(trim $transform)|$(trim $m $base)|$(trim $m $base $change)"
		done
	done
}
pairs > "$work/pairs"
# One card: all of them as children of one process.
while IFS='|' read -r _ ranks _ base changed; do
	echo "$base"; [ "$ranks" != 1 ] || echo "$changed"
done < "$work/pairs" | sort -u | while read -r args; do
	[ -s "$CACHE/$(name "$args").vct" ] || echo "$(name "$args") $args"
done > "$work/list"
if [ -s "$work/list" ]; then
	"$VRAMCAST" dryrun "${how[@]}" -o "$work/r.vct" -- "$PYTHON" "$here/many.py" "$work/list" \
		> "$work/done" 2> "$CACHE/many.log" < /dev/null
	grep '^many\.py:' "$CACHE/many.log" >&2 && exit 2
	while read -r pid n; do # the first child that used the card has the name that was asked for
		f="$work/r.$pid.vct"; [ -s "$f" ] || f="$work/r.vct"
		[ -s "$f" ] && mv "$f" "$CACHE/$n.vct"
	done < "$work/done"
fi
while IFS='|' read -r _ ranks _ _ changed; do
	[ "$ranks" != 1 ] && echo "$ranks $changed"
done < "$work/pairs" | sort -u | while read -r ranks args; do
	f="$CACHE/$(name "$args")_ranks$ranks"; [ -s "$f.vct" ] && continue
	mkdir "$work/run"
	"$VRAMCAST" dryrun "${how[@]}" --ranks "$ranks" -o "$work/run/r.vct" -- "$PYTHON" "$here/train.py" $args \
		> "$f.log" 2>&1 < /dev/null && mv "$work/run/r.rank0.vct" "$f.vct" && rm "$f.log"
	rm -rf "$work/run"
done
while IFS='|' read -r m ranks transform base changed; do
	c="$CACHE/$(name "$changed")$([ "$ranks" = 1 ] || echo "_ranks$ranks").vct"
	echo "$m|$ranks|$transform|$CACHE/$(name "$base").vct|$c|${changed#$m}"
done < "$work/pairs"
