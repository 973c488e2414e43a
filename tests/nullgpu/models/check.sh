#!/bin/sh
# check.sh - make check-models: training scripts as people write them, with transformers, PEFT, Accelerate
# and torchvision, on the null GPU under the tracer. TORCH="2.9.1" chooses. Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=tests/nullgpu/models
# What the scripts import, added to the environment once; PyTorch stays as it is.
prepare() {
	"$py" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("transformers", "peft", "accelerate", "torchvision"))))' 2> /dev/null && return
	# of its own release, or the newest there is before that
	release=$("$py" -c 'import importlib.metadata as m; print(int(m.version("torch").split(".")[1]) + 16)')
	"$py" -m pip install -q numpy pyyaml regex requests tqdm packaging psutil safetensors pillow 'tokenizers<0.23' 'huggingface_hub<1' &&
		"$py" -m pip install -q --no-deps 'transformers<5' peft accelerate "torchvision<0.$release"
}
for version in ${TORCH:-2.6.0 2.9.1 2.11.0 newest}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	prepare > "$TMP/pip.log" 2>&1 || { skip "$version: models" "$(tail -1 "$TMP/pip.log")"; continue; }
	timeout 3600 "$VRAMCAST" dryrun -g rtx4090 -o "$TMP/m.vct" -- "$py" $here/models.py > "$TMP/out" 2> "$TMP/err"
	relay "$version: " "$TMP/out"
	check "$version: every case said something" test "$(grep -c '^ok -\|^not ok -' "$TMP/out")" -ge 23
	check "$version: the verdict counts what forked processes used" grep -q 'peak of device memory' "$TMP/err"
	if "$py" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("triton"))'; then
		timeout 1800 "$VRAMCAST" dryrun -g rtx4090 -o "$TMP/c.vct" -- "$py" $here/compile.py default reduce-overhead dynamic masked > "$TMP/out" 2> "$TMP/err"
		relay "$version: " "$TMP/out"
		check "$version: four ways to compile said something" test "$(grep -c '^ok -\|^not ok -' "$TMP/out")" = 4
		check "$version: it says that values are not computed inside" grep -q 'not computed inside torch.compile' "$TMP/err"
	else
		skip "$version: torch.compile" "no triton in this environment"
	fi
	# The Trainer starts at 64 and takes nine tenths after each failure, so of all sizes it can end only at
	# those of its ladder: at the largest that is not above what fit names.
	"$VRAMCAST" dryrun -g rtx4090 --no-record -- "$py" $here/autofind.py auto > "$TMP/out" 2> "$TMP/err"
	ended=$(sed -n 's/^ended at //p' "$TMP/out"); tried=$(sed -n 's/^tried //p' "$TMP/out")
	"$VRAMCAST" fit --find batch -g rtx4090 --json -- "$py" $here/autofind.py '{batch}' > "$TMP/fit.json" 2> "$TMP/err"
	largest=$("$py" -c "import json, sys; print(json.load(sys.stdin)[\"largest\"])" < "$TMP/fit.json" 2> /dev/null)
	expected=$("$py" -c "
n = 64
while n > ${largest:-0} and n: n = int(n * 0.9)
print(n)")
	name="$version: auto_find_batch_size ends at ${ended:-nothing}, the largest of its ladder (${tried:-nothing}) below the ${largest:-nothing} that fit names"
	if [ -n "$ended" ] && [ "$ended" = "$expected" ]; then pass "$name"
	else fail "$name" "expected $expected" "$(tail -5 "$TMP/err")" "$(cat "$TMP/out")"; fi
done
finish
