#!/bin/sh
# check.sh - make check-models: training scripts as people write them, with transformers, PEFT, Accelerate
# and torchvision, on the null GPU under the tracer. TORCH="2.9.1" chooses. Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=tests/nullgpu/models
# What the scripts import, added to the environment once; PyTorch stays as it is.
prepare() {
	"$py" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("transformers", "peft", "accelerate", "torchvision"))))' 2> /dev/null && return
	release=$("$py" -c 'import importlib.metadata as m; print(int(m.version("torch").split(".")[1]) + 15)')
	"$py" -m pip install -q numpy pyyaml regex requests tqdm packaging psutil safetensors pillow 'tokenizers<0.23' 'huggingface_hub<1' &&
		"$py" -m pip install -q --no-deps 'transformers<5' peft accelerate "torchvision==0.$release.*"
}
for version in ${TORCH:-2.6.0 2.9.1}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	prepare > "$TMP/pip.log" 2>&1 || { skip "$version: models" "$(tail -1 "$TMP/pip.log")"; continue; }
	timeout 1800 "$VRAMCAST" dryrun -g rtx4090 -o "$TMP/m.vct" -- "$py" $here/models.py > "$TMP/out" 2> "$TMP/err"
	while IFS= read -r line; do
		case $line in
		"ok - "*) pass "$version: ${line#ok - }" ;;
		"not ok - "*) fail "$version: ${line#not ok - }" "$(grep -A 12 -F -- "$line" "$TMP/out")" ;;
		esac
	done < "$TMP/out"
	check "$version: every case said something" test "$(grep -c '^ok -\|^not ok -' "$TMP/out")" -ge 24
	check "$version: the verdict counts what forked processes used" grep -q 'peak of device memory' "$TMP/err"
done
finish
