#!/bin/bash
# choose.sh - `vramcast X`: what X is decides what is done. Each row is an argument of some kind, and the command that it must become or
# what the one sentence must say that refuses it.
. tests/support/tap.sh
case $VRAMCAST in /*) ;; *) VRAMCAST=$PWD/$VRAMCAST ;; esac
repo=$PWD; w=$TMP/w; mkdir -p "$w"; cd "$w" || exit 1
export HF_HUB_CACHE=$w/hub XDG_CACHE_HOME=$w/cache; unset HF_HOME
cp "$repo"/traces/attention.vct run.vct; cp run.vct 'a run.vct'; cp run.vct run@home.vct
gzip -c run.vct > run.vct.gz; head -c 3000 run.vct > cut.vct; : > empty; : > empty.vct; { printf '\001'; head -c 4000 /dev/urandom; } > noise.bin
"$VRAMCAST" export -q run.vct --to pickle -o snap.pickle
"$VRAMCAST" export -q run.vct --to jsonl -o events.jsonl; "$VRAMCAST" sweep -q run.vct --vary torch=2.6 -o lines.jsonl
"$VRAMCAST" plot -q run.vct -o picture.svg; "$VRAMCAST" report -q run.vct -o report.html --no-advice
cp "$repo"/tests/fuzz/corpus/script.ops small.ops
message='torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.46 GiB. GPU 0 has a total capacity of 23.52 GiB of which 992.88 MiB is free. Including non-PyTorch memory, this process has 22.55 GiB memory in use. Of the allocated memory 21.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.'
echo "$message" > oom.txt; printf 'epoch 1\nloss 3\nTraceback (most recent call last):\n%s\n' "$message" > train.log
echo 'no such thing here' > notes.txt; printf '\0\0\0' > nul; echo "$message" | gzip > oom.txt.gz
config='{"model_type": "llama", "hidden_size": 256, "intermediate_size": 704, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4, "vocab_size": 320}'
mkdir -p model hub/models--org--tiny/snapshots/abc none one job family mixed; echo "$config" | tee model/config.json other.json > hub/models--org--tiny/snapshots/abc/config.json
echo '{"a": 1}' > plain.json
cp run.vct one/x.vct; cp run.vct job/t.rank0.vct; cp run.vct job/t.rank1.vct; cp run.vct mixed/a.vct; cp run.vct mixed/b.vct
"$VRAMCAST" export -q "$repo"/tests/recordings/eval-4-8.vct@batch=4 -o family/4.vct; "$VRAMCAST" export -q "$repo"/tests/recordings/eval-8-16.vct@batch=8 -o family/8.vct
printf 'print("hello")\n' > train.py; printf '#!/usr/bin/env python3\nprint("hello")\n' > tool; chmod +x tool
printf '#!/bin/sh\ntrue\n' > job.sh; printf '#!/bin/sh\ntrue\n' > runner; chmod +x runner; ln -s run.vct link.vct; ln -s nowhere broken.vct
mkfifo pipe; mkdir bin; printf '#!/usr/bin/env python3\n' > bin/torchrun; chmod +x bin/torchrun; PATH=$w/bin:$PATH
# a row: COMMAND or !WORDS OF THE SENTENCE | ARGUMENT...
n_rows=0
row() { # EXPECTED ARGUMENT...
	want=$1; shift; n_rows=$((n_rows + 1))
	timeout 20 "$VRAMCAST" "$@" > "$TMP/out" 2> "$TMP/err" < "${from:-/dev/null}"; rc=$?
	said=$(sed -nE 's/^\(?(vramcast: )?.*: vramcast (.*[^)])\)?$/\2/p' "$TMP/err" | head -n 1)
	case $want in
	!*) if [ "$rc" = 2 ] || [ "$rc" = 1 ] && [ "$(wc -l < "$TMP/err")" = 1 ] && [ ! -s "$TMP/out" ] && grep -qE -- "${want#!}" "$TMP/err"; then pass "refused: $*"
		else fail "refused: $*" "exit code $rc, wanted: $want" "$(head -n 3 "$TMP/err")"; fi ;;
	*) if [ "$said" = "$want" ] && [ "$(cat "$TMP/out" "$TMP/err" | wc -l)" -le "${most:-25}" ]; then pass "$want: $*"
		else fail "$want: $*" "exit code $rc, said: $said" "$(cat "$TMP/out" "$TMP/err" | wc -l) lines" "$(head -n 3 "$TMP/err")"; fi ;;
	esac
}
row "sim run.vct --brief" run.vct
row "sim 'a run.vct' --brief" 'a run.vct'
row "sim run@home.vct --brief" run@home.vct
row "sim run.vct@batch=4 --brief" run.vct@batch=4
row "sim run.vct.gz --brief" run.vct.gz
row "sim ./run.vct --brief" ./run.vct
row "sim link.vct --brief" link.vct
row "sim snap.pickle --brief" snap.pickle
row "sim small.ops --brief" small.ops
row "sim run.vct -g l4 --brief" run.vct -g l4
row "sim run.vct --brief -g l4" -g l4 run.vct
row "sim run.vct --capacity 3GiB --brief" run.vct --capacity 3GiB
row "sim $repo/traces/lm-train-ctx128.vct -g a100-40g-sxm --brief" "$repo/traces/lm-train-ctx128.vct" -g a100-40g-sxm
row "sim $repo/traces/lm-medium-ctx1024.vct -g rtx4090 --brief" "$repo/traces/lm-medium-ctx1024.vct" -g rtx4090
from=run.vct row "sim - --brief" -
from=oom.txt row "explain -" -
row "sim one/x.vct --brief" one
row "ranks job/t.rank0.vct job/t.rank1.vct" job
row "ranks job/t.rank0.vct job/t.rank1.vct" job/t.rank0.vct job/t.rank1.vct
row "fit family/4.vct family/8.vct --find batch -g t4" -g t4 family
row "fit family/8.vct family/4.vct --find batch -g t4" -g t4 family/8.vct family/4.vct
for some in 'family/4.vct run.vct' 'run.vct family/4.vct' 'family/4.vct family/8.vct run.vct' 'family/4.vct family/4.vct'; do # not all say it, or all the same
	# shellcheck disable=SC2086
	row '!recordings that say neither a rank nor a parameter' -g t4 $some
done
row "explain oom.txt" oom.txt
row "explain train.log" train.log
row "explain oom.txt.gz" oom.txt.gz
row "explain" "$message"
row "estimate --config model/config.json" model
row "estimate --config model/config.json" model/
row "estimate --config model/config.json" model/config.json
row "estimate --config other.json" other.json
row "estimate --config model/config.json -g t4" -g t4 model
row "estimate --config $w/hub/models--org--tiny/snapshots/abc/config.json" org/tiny
row "!holds results of sim or sweep: 'vramcast plot lines.jsonl" lines.jsonl
row "view picture.svg" picture.svg
row "view report.html" report.html
row "dryrun -g t4 -- python3 train.py" -g t4 train.py
row "dryrun -g t4 -- python3 train.py --batch 4" -g t4 train.py --batch 4
row "dryrun -g t4 -- python3 train.py" -g t4 python3 train.py
row "dryrun -g t4 -- python3 -m mine" -g t4 -- python3 -m mine
row "dryrun -g t4 -- torchrun train.py" -g t4 torchrun train.py
row "dryrun -g t4 -- ./tool x" -g t4 ./tool x
row "dryrun -g h200 -- python3 train.py" train.py
row '!there is no command .nosuch., and no such file' nosuch
row '!did you mean sim' simm
row '!did you mean info' inof run.vct
row '!there is no file none.vct' none.vct
row '!there is no file none.py' none.py
row '!there is no file org/large, and no model of that name' org/large
row '!in none there is no recording and no config.json' none
row '!neither a rank nor a parameter: .vramcast ranks FILES. .* .vramcast fit' mixed
row '!is text without an out-of-memory message' notes.txt
row '!is text without an out-of-memory message' plain.json
row '!noise.bin is neither a recording nor text' noise.bin
row '!nul is neither' nul
row '!empty is empty' empty
row '!empty.vct' empty.vct
row '!cut.vct' cut.vct
row '!broken.vct' broken.vct
row '!an empty name' ''
row '!which program' --
row '!no option --pogram' run.vct --pogram
row "!no gpu 'nosuch'" run.vct -g nosuch
row '!no option --gpus before' --gpus l4 run.vct
row '!awk is a program, but not Python' awk
row "!no model is called 'nosuch'" run.vct -m nosuch
[ "$n_rows" -ge 60 ] && pass "$n_rows arguments" || fail "60 arguments" "$n_rows"
finish
