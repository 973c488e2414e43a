#!/bin/sh
# check_ci.sh - CI, the pytest plugin and the trainers with a real PyTorch on the null GPU (TORCH_PYTHON=python).
. tests/support/tap.sh
. tests/python/tools.sh
TORCH_PYTHON=${TORCH_PYTHON:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast/torch-2.9.1/bin/python}
[ -x "$TORCH_PYTHON" ] || { skip "a real PyTorch" "TORCH_PYTHON names no python"; finish; }
export PYTHONDONTWRITEBYTECODE=1 TORCH_PYTHON VRAMCAST="$(realpath "$VRAMCAST")" PYTHONPATH="$PWD/python"
check "the steps of the action, with dry runs of the sample" python3 tests/python/ci.py

# pytest from the folder of tools, PyTorch from its own
"$TOOLS/bin/python" -m pip install -q --target "$TMP/site" pytest > "$TMP/pip.log" 2>&1 || { fail "pytest is installed" "$(cat "$TMP/pip.log")"; finish; }
export PYTHONPATH="$PWD/python:$TMP/site"
cat > "$TMP/test_memory.py" <<'P'
import pytest

@pytest.fixture
def megabytes():
    return 1000

def take(n):
    import torch
    return torch.empty(n << 20, dtype=torch.uint8, device="cuda")

@pytest.mark.vram(gpu="t4", limit="2GiB")
def test_fits(megabytes):
    assert take(megabytes).numel() == 1000 << 20

@pytest.mark.vram(gpu="t4", limit="500MiB")
def test_over(megabytes):
    take(megabytes)

@pytest.mark.vram(gpu="t4")
def test_oom(megabytes):
    take(20 * megabytes)

@pytest.mark.vram(gpu="t4")
def test_wrong():
    assert take(1).numel() == 2
P
(cd "$TMP" && PYTEST_PLUGINS=vramcast.pytest_plugin "$TORCH_PYTHON" -m pytest -p no:cacheprovider -q --strict-markers test_memory.py) > "$TMP/pytest.log" 2>&1
check "pytest: one fits, three fail" grep -q '^3 failed, 1 passed' "$TMP/pytest.log"
check "over its limit, in one sentence" grep -q '^test_over needs 1.10 GiB on t4, and its limit is 500.00 MiB$' "$TMP/pytest.log"
check "out of memory, with the line" grep -q '^test_oom does not fit: .* (test_memory.py:9)' "$TMP/pytest.log"
check "a mistake of another kind is told as one" grep -q 'test_wrong: the program ended with code 1, and not for lack of memory' "$TMP/pytest.log"

# The trainers: what the callbacks tell, in its order
site=$TOOLS/trainers
[ -d "$site/lightning" ] || "$TOOLS/bin/python" -m pip install -q --no-deps --target "$site" 'transformers<5' accelerate 'tokenizers<0.23' 'huggingface_hub<1' \
	safetensors regex pyyaml requests tqdm packaging psutil lightning lightning-utilities torchmetrics urllib3 certifi idna charset-normalizer > "$TMP/pip.log" 2>&1
export PYTHONPATH="$PWD/python:$site"
# told SCRIPT MARKS: the marks of a dry run of it, begin and end of a phase as ( and )
told() {
	"$VRAMCAST" dryrun -q -g t4 -o "$TMP/$1.vct" -- "$TORCH_PYTHON" "tests/python/$1.py" "$TMP/out" > "$TMP/$1.log" 2>&1
	got=$("$VRAMCAST" dump "$TMP/$1.vct" | sed -n 's/.* mark device=0//; t m; d; :m
		s/^ flags=2 label=\(.*\)/\1(/; s/^ flags=3.*/)/; s/^ flags=1 label=step/step/; s/^ label=//; p' | tr '\n' ' ')
	if [ "$got" = "$2" ]; then pass "$1: phases, steps and parameters are told"; else fail "$1: phases, steps and parameters are told" "$got" "$(tail -n 5 "$TMP/$1.log")"; fi
}
told train_transformers 'parameters batch=8,accumulate=1,eval_batch=8 train( step step ) evaluate( ) train( step step ) evaluate( ) '
told train_lightning 'evaluate( ) parameters batch=16,accumulate=1 train( step step step step ) evaluate( ) train( step step step step ) evaluate( ) '
told train_accelerate 'parameters batch=8,seq=512 train( step step ) '
echo '{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 2816, "num_attention_heads": 16, "num_hidden_layers": 12, "num_key_value_heads": 4, "vocab_size": 32000, "tie_word_embeddings": false}' > "$TMP/config.json"
# banded OPTION-OF-MODEL... -- OPTION-OF-ESTIMATE... : the peak of the dry run lies in the band of the estimate
banded() {
	ours=''; while [ "$1" != -- ]; do ours="$ours $1"; shift; done; shift
	"$VRAMCAST" dryrun -q -g a100-80g-sxm --no-record --report "$TMP/r.json" -- "$TORCH_PYTHON" -m vramcast.model "$TMP/config.json" --batch 4 --seq 1024 $ours > "$TMP/model.log" 2>&1
	"$VRAMCAST" estimate -q --model "$TMP/config.json" -g a100-80g-sxm --batch 4 --seq 1024 "$@" --json > "$TMP/e.json"
	peak=$(sed -n 's/^ *"peak_used": \([0-9]*\),*/\1/p' "$TMP/r.json" | head -n 1)
	set -- $(sed -n 's/^  "\(low\|high\)": \([0-9]*\),*/\2/p' "$TMP/e.json")
	name="a model from its configuration:$ours: $((peak >> 20)) MiB in $(($1 >> 20)) .. $(($2 >> 20))"
	if [ "$peak" -ge "$1" ] && [ "$peak" -le "$2" ]; then pass "$name"; else fail "$name" "$(tail -n 5 "$TMP/model.log")"; fi
}
banded -- --precision fp32
banded --autocast -- --precision amp
banded --checkpoint -- --precision fp32 --recompute full
banded --optimizer SGD -- --precision fp32 --optimizer sgd
cat > "$TMP/careful.py" <<'P'
import vramcast
vramcast.check("t4", steps=1)
print("training")
import torch
torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
P
"$TORCH_PYTHON" "$TMP/careful.py" > "$TMP/careful.log" 2>&1
check "a script that asks first does not begin what will die" sh -c '! grep -q "^training" "$1" && grep -q "DoesNotFit: oom on t4" "$1"' - "$TMP/careful.log"
[ -z "$V" ] || cat "$TMP/pytest.log"
finish
