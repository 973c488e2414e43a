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
# The Trainer shrinks the batch after each failure, nine tenths of it at a time, in one process. It must end where
# fit says: at the largest that fits where its ladder holds that, else at the largest of its ladder.
largest() { "$py" -c 'import json, sys; d = json.load(sys.stdin); print(max(d["largest"] or 0, d["largest_flushing"] or 0))' 2> /dev/null; }
check_autofind() {
	auto=$here/autofind.py
	"$VRAMCAST" fit --find batch -g rtx4090 --json -- "$py" $auto '{batch}' > "$TMP/fit.json" 2> "$TMP/err"
	most=$(largest < "$TMP/fit.json")
	for batch in 4 8; do "$VRAMCAST" dryrun -q -g rtx4090 --param batch=$batch -o "$TMP/$batch.vct" -- "$py" $auto $batch > "$TMP/out" 2> "$TMP/err"; done
	for start in 64 24 16; do
		ladder=$("$py" -c "
n = $start
while n: print(n, end=' '); n = int(n * 0.9)")
		"$VRAMCAST" dryrun -g rtx4090 --no-record -- "$py" $auto auto:$start > "$TMP/out" 2> "$TMP/err"
		ended=$(sed -n 's/^ended at //p' "$TMP/out"); tried=$(sed -n 's/^tried //p' "$TMP/out")
		"$VRAMCAST" fit "$TMP/4.vct" "$TMP/8.vct" -g rtx4090 --among "$(echo $ladder | tr ' ' ,)" --json > "$TMP/fit.json" 2>> "$TMP/err"
		among=$(largest < "$TMP/fit.json")
		case " $ladder " in *" $most "*) named=$most;; *) named=$among;; esac
		name="$version: auto_find_batch_size from $start ends at ${ended:-nothing} (${tried:-nothing}); fit names ${most:-nothing}, of that ladder ${among:-nothing}"
		case "$ladder" in "$tried "*) ;; *) ended="${ended:-nothing}, by another ladder";; esac
		if [ "$ended" = "$among" ] && [ "$ended" = "$named" ]; then pass "$name"
		else fail "$name" "ended at $ended" "$(tail -5 "$TMP/err")" "$(cat "$TMP/out")"; fi
	done
}
for version in ${TORCH:-2.6.0 2.9.1 2.11.0 newest}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	prepare > "$TMP/pip.log" 2>&1 || { skip "$version: models" "$(tail -1 "$TMP/pip.log")"; continue; }
	timeout 3600 "$VRAMCAST" dryrun -g rtx4090 -o "$TMP/m.vct" -- "$py" $here/models.py > "$TMP/out" 2> "$TMP/err"
	relay "$version: " "$TMP/out"
	check "$version: every case said something" test "$(grep -c '^ok -\|^not ok -' "$TMP/out")" -ge 23
	check "$version: the verdict counts what forked processes used" grep -q 'peak of device memory' "$TMP/err"
	timeout 1800 "$VRAMCAST" dryrun -g rtx4090 -o "$TMP/u.vct" -- "$py" $here/users.py > "$TMP/out" 2> "$TMP/err"
	relay "$version: a user's program: " "$TMP/out"
	check "$version: every program said something" test "$(grep -c '^ok -\|^not ok -' "$TMP/out")" = 15
	if "$py" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("triton"))'; then
		timeout 1800 "$VRAMCAST" dryrun -g rtx4090 -o "$TMP/c.vct" -- "$py" $here/compile.py default reduce-overhead dynamic masked > "$TMP/out" 2> "$TMP/err"
		relay "$version: " "$TMP/out"
		check "$version: four ways to compile said something" test "$(grep -c '^ok -\|^not ok -' "$TMP/out")" = 4
		check "$version: it says that values are not computed inside" grep -q 'not computed inside torch.compile' "$TMP/err"
	else
		skip "$version: torch.compile" "no triton in this environment"
	fi
	check_autofind
done
finish
