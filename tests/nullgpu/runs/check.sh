#!/bin/sh
# check.sh - make check-runs: what a dry run does the same way every time: one recording for one script,
# several models in one process or in forked ones, caps between them, ends by a signal or just after a
# backward pass, and the README's example. TORCH="2.9.1" chooses. Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
script=tests/nullgpu/runs/scripts.py
dry() { "$VRAMCAST" dryrun "$@" > "$TMP/out" 2> "$TMP/err"; }

# All but pinned host memory, and without the numbers of records that count it.
events() { "$VRAMCAST" dump "$1" | grep -v 'label=pinned host memory' | sed 's/^[0-9]* //; / kernel \| copy /s/ id=[0-9]*//'; }

twice() { # NAME OPTIONS...: the recordings of two runs, byte for byte
	name=$1; shift
	rm -f "$TMP"/[ab].*vct
	dry -g rtx4090 -o "$TMP/a.vct" "$@"; dry -g rtx4090 -o "$TMP/b.vct" "$@"
	same=1
	for a in "$TMP"/a.*vct; do
		b=$TMP/b${a#"$TMP/a"}
		cmp "$a" "$b" > "$TMP/cmp" 2>&1 || { same=0; "$VRAMCAST" dump "$a" > "$TMP/da"; "$VRAMCAST" dump "$b" > "$TMP/db"; diff "$TMP/da" "$TMP/db" | head -8 >> "$TMP/cmp"; }
	done
	if [ $same = 1 ] && [ -s "$TMP/a.vct" -o -s "$TMP/a.rank0.vct" ]; then pass "$name: the same recording twice"
	else fail "$name: the same recording twice" "$(cat "$TMP/cmp")" "$(tail -3 "$TMP/err")"; fi
}

for version in ${TORCH:-2.6.0 2.9.1 2.11.0 newest}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	twice "$version eager" -- "$py" $script eager
	ended=0
	for run in 1 2 3 4 5 6 7 8; do dry -g rtx4090 --no-record -- "$py" $script late && ended=$((ended + 1)); done
	check "$version: a program that ends with a backward pass ends well ($ended of $run)" test $ended = $run
	twice "$version autocast, checkpointing, gradients of gradients" -- "$py" $script casts
	twice "$version DataLoader with workers" -- "$py" $script loader
	dry -g rtx4090 -o "$TMP/a.vct" -- "$py" $script loader pin; events "$TMP/a.vct" > "$TMP/da"
	dry -g rtx4090 -o "$TMP/b.vct" -- "$py" $script loader pin; events "$TMP/b.vct" > "$TMP/db"
	check "$version: the thread that pins memory moves only its own requests ($(grep -c . "$TMP/da") events)" cmp "$TMP/da" "$TMP/db"
	# Two threads free what is left when the process group ends: same events, same times, any order.
	dry -g rtx4090 --ranks 2 -o "$TMP/a.vct" -- "$py" $script ddp
	dry -g rtx4090 --ranks 2 -o "$TMP/b.vct" -- "$py" $script ddp
	for rank in 0 1; do
		events "$TMP/a.rank$rank.vct" | sort > "$TMP/da"; events "$TMP/b.rank$rank.vct" | sort > "$TMP/db"
		check "$version DDP, rank $rank of 2: the same events at the same times twice ($(grep -c . "$TMP/da"))" cmp "$TMP/da" "$TMP/db"
	done
	dry -g rtx4090 --no-record -- "$py" $script forked 1000 20000; forked=$(cat "$TMP/out")
	dry -g rtx4090 --no-record -- "$py" $script alone 1000; one=$(cat "$TMP/out")
	dry -g rtx4090 --no-record -- "$py" $script alone 20000; other=$(cat "$TMP/out")
	check "$version: forked runs that share the import need what each needs alone ($(echo "$forked" | tr '\n' ' '))" \
		test "$forked" = "$one
$other"
	rm -f "$TMP"/a.*vct; dry -g rtx4090 -o "$TMP/a.vct" -- "$py" $script forked 1000 1000
	kernels=0; for a in "$TMP"/a.*vct; do "$VRAMCAST" dump "$a" | grep -q ' kernel ' && kernels=$((kernels + 1)); done
	check "$version: kernels of forked children are recorded ($kernels of 2)" test $kernels = 2
	dry -g rtx4090 --no-record -- "$py" $script shared
	check "$version: a tensor that another process opens costs it nothing" sh -c 'grep -q "borrowed (1000, 1000) cuda:0 0" "$1" && grep -q "memory of another process (CUDA IPC)" "$2"' sh "$TMP/out" "$TMP/err"
	dry -g rtx4090 --no-record -- "$py" $script capped
	check "$version: trainings one after the other, a cap between them" test "$(cat "$TMP/out")" = "same
capped: out of memory
free again"
	dry -g a100-40g-sxm -g a100-80g-sxm --no-record -- "$py" $script total
	check "$version: a script that reads total_memory is run on each card" test "$(grep -c '^total' "$TMP/out")" = 2
	dry -g a100-40g-sxm -g a100-80g-sxm --no-record -- "$py" $script alone 100
	check "$version: one that does not is run once" test "$(grep -c '^peak' "$TMP/out")" = 1
	dry -g rtx4090 --no-record -- "$py" $script killed
	check "$version: a program ended by a signal leaves its peak" grep -q 'peak of device memory' "$TMP/err"
done

# the README's example
py=$(torch_env 2.9.1) || { skip "the README's example" "no PyTorch 2.9.1"; finish; }
dry -g rtx4090 -o "$TMP/e.vct" -- "$py" examples/gpt.py --batch-size 12
check "the README's example dies on a 24 GB card" sh -c 'grep -q "Tried to allocate 1.46 GiB" "$1" && grep -q "verdict: out of memory; 2 requests were refused, the largest 1.46 GiB" "$1"' sh "$TMP/err"
dry -g rtx4090 -o "$TMP/e.vct" -- "$py" examples/gpt.py --batch-size 12 --checkpoint
check "and fits with checkpointing" grep -q 'verdict: fits, 12.56 GiB left' "$TMP/err"
finish
