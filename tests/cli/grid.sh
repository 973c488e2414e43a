#!/bin/bash
# grid.sh - dryrun with several values, versions and settings: each is run once and kept, and what grew is told; history and
# diff of what is kept. The program is one in C on a stand-in for PyTorch's allocator (tests/tracer/torch_standin/train.c).
. tests/support/tap.sh
. tests/support/standin.sh
cd "$TMP/own" || exit 1
grid() { run dryrun -g rtx3060-12g "$@"; }
json() { printf '%s' "$out" | "$py" -c "import json, sys; d = json.load(sys.stdin); print($1)"; }

grid --vary batch=2,4,6 -- "$train" --batch {batch}
expect "a dry run a value" 0 '^ *6 +[0-9.]+ [MG]iB +[0-9.]+ [MG]iB +[0-9.]+ [MG]iB .* fits +[0-9a-f]{8}'
expect "what is the most that fits, and what takes the least" 0 'the largest that fits: batch=6; the least memory: batch=2 '
expect "what grew from one to the next" 0 'from batch=2 to batch=4: [0-9.]+ [MG]iB -> '
ran "each is run once" 3
first=$out; grid --vary batch=2,4,6 -- "$train" --batch {batch}; ran "and not again" 0
check "with the same answer" test "$out" = "$first"
grid --vary batch=2,4,6 --again -- "$train" --batch {batch}; ran "unless --again says so" 3
grid --vary batch=2..8*2 --json -- "$train" --batch {batch}; ran "a range: what is known is not run" 1
check "peaks are those of a dry run" test "$(json "d['runs'][0]['peak_requested'] / 2 ** 20")" = "$(((32 + 34 + 36 + 38) + 2 * (22 + 24 + 26 + 28))).0"
check "runs, changes and what is best" test "$(json "len(d['runs']), len(d['changes']), d['largest_that_fits'], d['schema']")" = "3 2 8 vramcast.grid/1"
grid --vary batch=4,500 --json -- "$train" --batch {batch}
check "what does not fit is run with more memory" test "$(json "d['runs'][1]['verdict'], d['runs'][1]['peak_reserved'] > 12 << 30")" = "oom True"
grid --exit-code verdict --vary batch=4,500 -- "$train" --batch {batch}; expect "--exit-code verdict" 3 ' oom '
rm -f "$RUNS"; run dryrun -g a100-40g-sxm -g a100-80g-sxm -o several.vct -- "$train" --batch 4
expect "a run that is recorded answers for all cards of its class" 0 '' 'a100-40g-sxm .* fits +a100-80g-sxm$'; ran "it is run once" 1

echo 'import os; os.environ["LOCAL_RANK"]' > rank.py; echo old > vramcast.vct
run dryrun -g t4 rank.py; expect "a script that cannot be started is python3's; one of several ranks is told how" 1 '' "'vramcast dryrun --world N' plays one"
check "... and a recording of an earlier run is not what comes next" test -z "$(grep '^next' <<< "$err")"
{ echo "#!$py"; echo 'import os; print(os.environ["VRAMCAST_NULL_DEVICES"], "devices")'; } > torchrun; chmod +x torchrun
for line in "3 --nproc-per-node 3 x.py" "2 --nproc_per_node=2 x.py" "1 --nproc-per-node gpu x.py" "1 --nproc-per-node 17 x.py" "1 x.py --num_gpus 4" "1 --num_gpus"; do
	run dryrun -g t4 -- ./torchrun ${line#* }; expect "launched: ${line#* }" 0 "^${line%% *} devices"
done

mkdir .pyenv; cp torchrun .pyenv
run dryrun -g t4 -- .pyenv/torchrun --nproc-per-node 2 x.py; expect "launched: out of a folder that sounds like a script" 0 "^2 devices"

rm -f "$RUNS"
grid --env WORKSPACE=0,64 --conf '' --conf max_split_size_mb:64 -- "$train" --batch 2
expect "variables and settings are a grid" 0 '^ *max_split_size_mb:64 +64 .* fits'; ran "of four runs" 4
grid --env WORKSPACE=0,300 --json -- "$train" --batch 2
check "the first request that differs" test "$(json "d['changes'][0]['first_difference']['kind'], d['changes'][0]['first_difference']['b']['size']")" = "only_in_b $((300 << 20))"

# what may take the growth back is tried before it is said; the stand-in's allocator knows no such setting (tests/bisect does)
rm -f "$RUNS"; grid --env EARLY=0,30 -- "$train" --batch 2; expect "advice is tried before" 0 'cache, not in use: 30.00 MiB more' 'tried PYTORCH_CUDA_ALLOC_CONF'
ran "... by one more run" 3; check "... and not given where that proves nothing" test -z "$(grep 'What helps' <<< "$out")"
grid --env EARLY=0,30 --json -- "$train" --batch 2; ran "... which is remembered" 0; printf '%s' "$out" > "$TMP/advice.json"
check "... is in the JSON" test "$(json "[(t['setting'][-24:], t['helps'], len(t['run'])) for t in d['changes'][0]['tried']]")" = "[('expandable_segments:True', False, 16)]"
check "... as the schema says" "$py" "$OLDPWD/tests/python/schema.py" dryrun "$TMP/advice.json"
grid --env WORKSPACE=0,300 -- "$train" --batch 2; check "what nothing helps against gets no advice" test -z "$(grep 'What helps' <<< "$out")"; rm -f "$RUNS"
grid --vary batch=2,4 -- "$train" --batch {batch}; check "nor does a larger value" test -z "$(grep 'What helps' <<< "$out")"; rm -f "$RUNS"
grid --vary word=a,b -- "$train" --batch 2 {word}; expect "words, too" 0 '^ *b .* fits'; rm -f "$RUNS"
grid --vary batch=0,2 -- "$train" --batch {batch}; expect "one that does not run is a row, and says why" 1 'did not run.*'
expect "with what it said" 1 'ended with code 5 and left no recording; what it said is in '; rm -f "$RUNS"

# killed, and gone on with
cat > slow.sh << E2
#!/bin/sh
sleep 0.2; exec $train --batch "\$1"
E2
setsid "$VRAMCAST" dryrun -q -g rtx3060-12g -j 1 --vary batch=11,12,13,14,15,16 -- sh slow.sh {batch} > /dev/null 2>&1 & pid=$!
for _ in $(seq 100); do [ "$(runs)" -ge 3 ] && break; sleep 0.1; done
kill -9 -- "-$pid" 2> /dev/null; wait "$pid" 2> /dev/null; had=$(runs); rm -f "$RUNS"
run history --json; kept=$(json "sum('slow.sh' in r['command'] for r in d['runs'])")
grid --vary batch=11,12,13,14,15,16 -- sh slow.sh {batch}; expect "after a SIGKILL it goes on" 0 '^ *16 .* fits'
check "some runs were there ($kept of $had)" test "$kept" -ge 1
ran "the others were made" $((6 - kept))
check "nothing half-written is left" test -z "$(ls "$XDG_CACHE_HOME/vramcast/runs" | grep '\.vct\.[0-9]*\.vct$')"

run history; expect "what is kept is listed" 0 'run +when +card +torch'
run history batch=16 --json; check "or what has these words" test "$(json "len(d['runs']), d['runs'][0]['with'], d['runs'][0]['card']")" = "1 batch=16 rtx3060-12g"
a=$(json "d['runs'][0]['run'][:8]"); run history batch=11 --json; b=$(json "d['runs'][0]['run']")
run diff "$b" "$a"; expect "any two are held against each other" 0 'B needs more than A'
run diff "$b" "$a" --json; check "by kind" test "$(json "[k['kind'] for k in d['kinds']]")" = "['tensors']"
# how much they take together
touch -d '2 days ago' "$XDG_CACHE_HOME"/vramcast/runs/$b.vct; touch -d '3 days ago' "$XDG_CACHE_HOME"/vramcast/runs/$a*.vct; rm -f "$RUNS"
grid --vary batch=11 -- sh slow.sh {batch}; ran "what is used stays used" 0; rm -f "$RUNS"
run history --json; all=$(json "sum(r['bytes'] for r in d['runs'])"); many=$(json "len(d['runs'])"); check "what they take is told" test "$(json "d['bytes'], d['limit']")" = "$all $((4 << 30))"
run history --limit $((all - 1)) --json; check "beyond the limit the one goes that was used least recently" test "$(json "len(d['runs']), d['limit']") $(ls "$XDG_CACHE_HOME"/vramcast/runs/$a* 2> /dev/null | wc -l)" = "$((many - 1)) $((all - 1)) 0"
run history --limit 4GiB; expect "how many there are, and of how much" 0 "^$((many - 1)) runs take .* of 4.00 GiB"; run diff "$b" "$b"; expect "the other is there" 0
run history --limit x; expect "what is no size" 2 '' 'limit'
grid --vary batch=2,4 --json -- "$train" --batch {batch}; printf '%s' "$out" > "$TMP/grid.json"
check "a grid and its changes are what the schema says" "$py" "$OLDPWD/tests/python/schema.py" dryrun "$TMP/grid.json"
run diff 00000000 "$a"; expect "a number that no run has is a file that is not there" 1 '' 'cannot open 00000000'

rm -f "$RUNS"; run fit -g rtx3060-12g -- "$train" --batch {batch}; expect "fit finds the largest by such runs, too" 0 'proved by trial runs'
check "some of them ($(runs))" test "$(runs)" -ge 3; first=$out; rm -f "$RUNS"
run fit -g rtx3060-12g -- "$train" --batch {batch}; ran "and remembers them" 0; check "with the same answer" test "$out" = "$first"

echo 'n = 2' > mine.py; printf 'import os, mine\nos.execv("%s", ["train", "--batch", str(mine.n)])\n' "$train" > script.py
grid --vary x=1 -- "$py" script.py {x}; grid --vary x=1 -- "$py" script.py {x}; ran "a script in Python is run once, too" 1

# other versions, from wheels that are made up and a folder in place of an index
if "$py" -c 'import venv, ensurepip' 2> /dev/null; then
	export PIP_NO_INDEX=1 PIP_FIND_LINKS=$TMP/wheels PIP_DISABLE_PIP_VERSION_CHECK=1 UV_NO_INDEX=1 UV_FIND_LINKS=$TMP/wheels UV_CACHE_DIR=$TMP/uv
	unset PYTHONPATH
	mkdir "$TMP/wheels"; PYTHONPATH=$OLDPWD/tests/support "$py" - "$TMP/wheels" "$TMP/site/torch/lib/libtorch_cuda.so" << 'P'
from wheels import wheel
init = "import types\n__version__ = '%s'\n_C = types.SimpleNamespace()\nbackends = types.SimpleNamespace(cuda=types.SimpleNamespace(is_built=lambda: False))\n"
for version, vision in ("2.8.0", "0.23.0"), ("2.9.1", "0.24.1"):
    wheel("torch", version, {"torch/__init__.py": init % version})
    wheel("torchvision", vision, {"torchvision/__init__.py": ""}, ["torch==" + version])
for version in ("1.0", "2.0"):
    wheel("layers", version, {"layers.py": f"wide = {version}\n"}, ["helper==" + version, "torch", "nvidia-big==1"])
    wheel("helper", version, {"helper.py": f"version = '{version}'\n"})
wheel("numpy", "1.0", {"numpy/__init__.py": ""}); wheel("pillow", "1.0", {"PIL/__init__.py": ""}); wheel("nvidia_big", "1", {"nvidia_big.py": ""})
P
	printf 'import os, sys\nimport torch, layers, helper\nassert float(helper.version) == layers.wide\nbatch = int(2 * layers.wide) + (torch.__version__ == "2.9.1")\nos.environ["LD_LIBRARY_PATH"] += ":%s"\nos.execv("%s", ["train", "--batch", str(batch)])\n' "$LD_LIBRARY_PATH" "$train" > versions.py
	"$py" -m venv --without-pip "$TMP/u"
	run dryrun -g rtx3060-12g --torch 2.8,2.9.1 --package layers=1.0,2.0 -- "$TMP/u/bin/python" versions.py
	expect "releases of PyTorch and of a package" 0 '^ *2\.9\.1 +2\.0 .* fits' 'layers==2\.0 helper==2\.0: nobody says how much|layers==2\.0 helper==2\.0: 0 MB to fetch'
	check "their cost is said before" grep -q 'MB in all' <<< "$err"; ran "in four runs" 4
	run dryrun -g rtx3060-12g --torch 2.8,2.9.1 --package layers=1.0,2.0 --json -- "$TMP/u/bin/python" versions.py; ran "once" 0
	check "each with its version" test "$(json "[(r['peak_requested'] >> 20) - 140 for r in d['runs']]")" = "[200, 400, 300, 500]"
	check "what it needs comes along, PyTorch and CUDA do not" test -z "$(ls "$XDG_CACHE_HOME"/vramcast/env/layers*/ | grep -i 'torch\|nvidia')"
	run env --list; expect "they are listed" 0 'layers==2\.0-[0-9a-f]{8} '
	run dryrun -g rtx3060-12g --torch 2.8,"$TMP/wheels/torch-2.9.1-py3-none-any.whl" --package layers=1.0 -- "$TMP/u/bin/python" versions.py
	expect "a wheel is a version, too" 0 'torch-2.9.1-py3-none-any.whl +1.0 .* fits'
	run dryrun -g rtx3060-12g --torch 2.8,2.7x --package layers=1.0 -- "$TMP/u/bin/python" versions.py; expect "what is no version" 2 '' "'2.7x' is no version of PyTorch"
	run dryrun -g rtx3060-12g --torch 2.8,2.7 -- "$TMP/u/bin/python" versions.py; expect "what there is not" 125 '' 'PyTorch 2.7 could not be installed'
else
	skip "other versions" "no venv"
fi
for bad in "--vary batch" "--vary =2" "--env X=" "--vary a=1 --vary a=2" "--package x"; do
	grid $bad -- "$train" --batch 2; expect "dryrun $bad" 2 '' 'write NAME=A,B|given twice'
done
grid --vary other=2 -- "$train" --batch 2; expect "a value that stands nowhere" 2 '' '\{other\} stands nowhere in the command line'
run dryrun -g t4 -g l4 --vary batch=2 -- "$train" --batch {batch}; expect "one card" 2 '' 'several runs play one card'
# What a dry run can be off by (docs/reference/null-gpu.md): contexts, and a hundredth of the peak, or a twentieth where convolutions ran.
margin() { # NAME SHARE PROGRAM
	PYTHONPATH=$TMP/site run dryrun -q -g rtx3060-12g --no-record --report "$TMP/margin.json" -- sh -c "$3"; expect "$1: it runs" 0
	check "$1" "$py" -c "import json; r = json.load(open('$TMP/margin.json'))['runs'][0]
assert r['margin'] == (150 << 20) + (r['peak_used'] - r['context']) // $2 and r['peak_used'] > 2 << 30, r"
}
PYTHONPATH=$TMP/site run dryrun -q -g rtx3060-12g -o "$TMP/clock.vct" -- "$train" --batch 2; expect "a dry run that is recorded" 0
run info --json "$TMP/clock.vct"; expect "what is in it" 0 '"allocs": 16'
check "it has no time of day, which would make each another one" test "${out#*start_unix_ns}" = "$out"
margin "the margin of a program" 100 "exec \"$train\" --batch 20"
margin "the margin of one with convolutions" 20 "\"$train\" --batch 20 && exec \"$B/tests/nullgpu/cudnn\" 16 16 3"
finish
