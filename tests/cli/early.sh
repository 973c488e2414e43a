#!/bin/sh
# early.sh - what cannot work is said before the work: files that cannot be written, options that mean nothing.
. tests/support/tap.sh
t=traces/attention.vct; none=$TMP/none
# the program of a recording leaves a mark when it runs
mark="touch $TMP/ran"
before() { # NAME RC STDERR ARGS...
	name=$1; want=$2; says=$3; shift 3
	rm -f "$TMP/ran"; run "$@"
	expect "$name" "$want" '' "$says"
	[ -e "$TMP/ran" ] && fail "$name: before the program ran" || pass "$name: before the program ran"
}
# shellcheck disable=SC2086
{
before "record into a folder that is not there" 125 "cannot write $none/x.vct: No such file" record -o "$none/x.vct" -- $mark
before "record with a value that is none" 2 "--param takes NAME=VALUE, not 'x'" record --param x -- $mark
before "record with a value beyond all" 2 "--param batch=1e19: the largest value is 9e\+15" record -o "$TMP/r.vct" --param batch=1e19 -- $mark
before "dryrun with a report that cannot be written" 125 "cannot write $none/r.json: No such file" dryrun -g rtx4090 --report "$none/r.json" -- $mark
before "dryrun with a value that is none" 2 "--param takes NAME=VALUE, not 'x'" dryrun -g rtx4090 --param x -- $mark
before "dryrun with stacks that are none" 2 "--stacks is off, py, .* not 'deep'" dryrun -g rtx4090 --stacks deep -- $mark
before "run that cannot write what it learns" 125 "cannot write $none/p.vcp: No such file" run --learn "$none/p.vcp" -- $mark
}
# nothing is replayed for a file that cannot be written: the trace is not even looked for
for c in "sim nosuch.vct -o" "export nosuch.vct -o" "plan nosuch.vct -o" "plot nosuch.vct -o" "diff a b -o" "sweep nosuch.vct --vary gpu=l4 -o" "report nosuch.vct -o"; do
	# shellcheck disable=SC2086
	run $c "$none/x.svg"; expect "${c%% *} -o in a folder that is not there" 1 '' "cannot write $none/x.svg: No such file"
	# shellcheck disable=SC2086
	run $c "$TMP"; expect "${c%% *} -o of a folder" 1 '' "cannot write $TMP: it is a directory"
done
run sim $t -o ''; expect "a file without a name" 2 '' 'name of the file to write is empty'
for w in 0 39 4001 wide; do run plot $t --width $w; expect "a picture $w wide" 2 '' "--width"; done
run sweep $t --vary gpu=l4 -j 100000; expect "more threads than any machine has use for" 2 '' '--jobs: at most 1024 threads'
cp $t "$TMP/old.vct"; run record -o "$TMP/old.vct" -- true
expect "a recording that takes another's place says so" 0 '' "old.vct is there, and this recording will take its place"
run record -q -o "$TMP/old.vct" -- true; case $err in *"take its place"*) fail "unless nobody wants to hear" "$err" ;; *) pass "unless nobody wants to hear" ;; esac
finish
