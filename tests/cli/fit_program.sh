#!/bin/bash
# fit_program.sh - fit tries a program, and layouts of it over cards, by dry runs: one in C on a stand-in for PyTorch's
# allocator (fit_trials.sh and fit_plan.sh do it with PyTorch).
. tests/support/tap.sh
. tests/support/standin.sh
cd "$TMP/own" || exit 1
card=rtx3060-12g
cat > spread <<SH
#!/bin/sh
[ "\$2" != 4 ] || exit 7
exec "$train" --batch \$((64 * \${3:-1} / \$1 / \$2))
SH
chmod +x spread
run fit -g $card -- "$train" --batch {batch}
expect "the largest that ran and the smallest that did not are neighbours" 0 'largest that fits +117 \(proved by trial runs\)'
expect "both were tried" 0 'trial run at 118 +ran out of memory'
run fit -g $card --json -- "$train" --batch {batch}
run fit -g $card --trials 3 --at 4,5 -- "$train" --batch {batch}
expect "used up before that it is undecided" 6 'or more, none was seen to fail: the trial runs are used up \(--trials\)'
run fit -g $card -- "$train" --batch {batch} narrow
run fit -g $card -g l4 -- "$train" --batch {batch}
run fit -g $card -- ./spread 4 4 {batch}
expect "a program that fails" 1 '' .
run fit --find plan --world 2 -g $card -- ./spread {tp} {pp}
expect "layouts, those of half the batch first" 0 '^ +2 +1 +1 +- +3.39 GiB +8.36 GiB +0 +fits$'
run fit --find plan --world 2 -g $card --json -- ./spread {tp} {pp}
run fit --find plan --world 4 -g $card -- ./spread {tp} {pp} 4
expect "one that fails, and one that is too large, are said" 0 '^ +1 +1 +4 +- +[0-9.]+ GiB +- +0 +out of memory$'
expect "so is one that fails" 0 'did not run$'
run fit --find plan --world 4 -g $card --trials 3 --json -- ./spread {tp} {pp} 4
run fit --find plan --world 4 -g $card --vary micro=1,2,4 -- ./spread {tp} {pp} {micro}
run fit --find plan --world 2 -g $card -- ./spread 1 4 {tp}
expect "a program that runs with none" 1 '' 'ran with none of'
# The program names its ranks that differ; that in the middle needs most.
cat > stages <<SH
#!/bin/sh
[ "\$1" = 1 ] || [ -z "\$VRAMCAST_NULL_ROLES" ] || printf '0 first of all\n1 middle\n2 last\n' > "\$VRAMCAST_NULL_ROLES"
case \$RANK in 1) exec "$train" --batch 20;; 2) exec "$train" --batch 14;; *) exec "$train" --batch 8;; esac
SH
chmod +x stages
run fit --find plan --world 4 -g $card -- ./stages {pp}
expect "of several ranks that which needs most is said" 0 '^ +2 +2 +- +2.22 GiB +9.54 GiB +1 +fits$'
expect "of one that one" 0 '^ +1 +4 +- +1.05 GiB +10.71 GiB +0 +fits$'
# What does not run shows the same of its multiples, where a divisor runs; all others are tried.
cat > refuses <<SH
#!/bin/sh
case \$4 in
experts) [ \$((4 % \$3)) = 0 ];;
product) [ \$((8 % (\$1 * \$3))) = 0 ];;
*) [ \$3 -le \$((16 / \$1 / \$2)) ];;
esac || exit 7
exec "$train" --batch \$((64 / \$1 / \$2))
SH
chmod +x refuses
refuses() { # WHAT "N;LAYOUT;..." NAME: so many run, and these layouts do not, each with what it spares
	run fit --find plan --world 16 -j 1 -g $card --json -- ./refuses {tp} {pp} {ep} "$1"
	check "$3" test "$(python3 -c "import json, sys
d = json.load(sys.stdin)
failed = sorted((p['tp'], p['pp'], p['ep'], p['refuses'] or 0) for p in d['plans'] if not p['verdict'])
print(len(d['plans']) - len(failed), *failed, sep=';')" <<< "$out" | tr -d ' ')" = "$2"
}
refuses experts "38;(1,1,8,11)" "more ranks than experts"
refuses product "33;(1,1,16,3);(2,1,8,5);(4,1,4,4);(8,1,2,1)" "two degrees that do not go together"
refuses samples "34;(2,1,16,2);(2,2,8,0);(2,4,4,0);(2,8,2,0);(4,1,8,3);(4,2,4,1);(4,4,2,0);(8,1,4,1);(8,2,2,0)" "experts over more ranks than have samples"
run fit --find plan --world 16 -j 1 -g $card -- ./refuses {tp} {pp} {ep} experts
expect "what that spares is said" 0 '^11 need not be tried: each degree is a multiple of that of tp=1 pp=1 ep=8 dp=16, which did not run; with ep=4 it did'
# One that ran out of memory came past where another stopped, if that was before it asked for any.
printf '#!/bin/sh\n[ "$2" -le 2 ] || exit 7\nexec "%s" --batch 400\n' "$train" > early
printf '#!/bin/sh\n[ "$2" -le 2 ] || { "%s" --batch 1; exit 7; }\nexec "%s" --batch 400\n' "$train" "$train" > late
chmod +x early late
for what in early late; do
	run fit --find plan --world 16 -j 1 -g $card --json -- ./$what 1 {pp}
	check "what stops $what" test "$(python3 -c "import json, sys
print(*sorted((p['pp'], p['verdict'], p['refuses']) for p in json.load(sys.stdin)['plans']))" <<< "$out")" = "$(
		[ $what = early ] && echo "(1, 'oom', None) (2, 'oom', None) (4, None, 2)" ||
			echo "(1, 'oom', None) (2, 'oom', None) (4, None, None) (8, None, None) (16, None, None)")"
done
run fit --find anything -g $card -- "$train" --batch 400
expect "what would help a run that does not fit" 3 '39.20 GiB reserved, 11.76 GiB on the card: oom'
# A program without layers: settings alone may make it fit.
fitted() { run run --fit -g $card "${@:2}" -- "$VRAMCAST" dryrun -q --no-record -g $card -- "$train" --batch "$1"; }
fitted 117; expect "run --fit leaves alone what fits" 0 '' 'its first 3 steps fit as they are; nothing was changed'
fitted 118; expect "and does not start what nothing helps" 3 '' 'needs 11.79 GiB, the card has 11.76 GiB, and nothing that can be changed'
fitted 118 --anyway; expect "unless it is told to" 1 '' 'out of memory'
# What is left of a block that is taken early serves no other: a limit of what may be split makes it fit.
cat > leaves_a_rest <<SH
#!/bin/sh
echo "\$PYTORCH_CUDA_ALLOC_CONF \$PYTORCH_ALLOC_CONF"
exec "$VRAMCAST" dryrun -q --no-record -g $card -- "$train" --batch 20
SH
chmod +x leaves_a_rest
changed() { # WHAT SETTINGS OTHERS: with those that are set it takes others
	PYTORCH_CUDA_ALLOC_CONF=$2 EARLY=570 run run --fit -g $card --capacity 2600MiB -- ./leaves_a_rest
	expect "$1" 0 "^$3 $3$"
	check "$1: and it says which" test "$(tail -n 5 "$TMP/err" | tr '\n' ';')" = "vramcast run: as it is it needs 2.64 GiB, the GeForce RTX 3060 12GB has 2.54 GiB;  changed: PYTORCH_CUDA_ALLOC_CONF=$3;  with that it needs 2.23 GiB; a dry run of its first 3 steps fitted;  to make it permanent:;    export PYTORCH_CUDA_ALLOC_CONF=$3;"
}
changed "run --fit sets what makes it fit" '' max_split_size_mb:128
changed "beside what is set" garbage_collection_threshold:0.9 garbage_collection_threshold:0.9,max_split_size_mb:128
PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:2000 EARLY=570 run run --fit -g $card --capacity 2600MiB -- ./leaves_a_rest
expect "but no setting twice" 3 '' 'nothing that can be changed from outside makes it fit'
run run --fit -g $card -- sh -c 'exit 3'; expect "a program that fails is not tried again" 125 '' 'a dry run of the program ended with code 3'
run fit --find budget -g $card -- "$train" --batch 4
expect "no module to compute twice" 1 '' 'no module was seen to keep anything for a backward pass'
finish
