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
expect "one that fails, and one that is too large, are said" 0 '^ +1 +1 +4 .* out of memory$'
expect "so is one that fails" 0 'did not run$'
run fit --find plan --world 4 -g $card --trials 3 --json -- ./spread {tp} {pp} 4
run fit --find plan --world 4 -g $card --vary micro=1,2,4 -- ./spread {tp} {pp} {micro}
run fit --find plan --world 2 -g $card -- ./spread 1 4 {tp}
expect "a program that runs with none" 1 '' 'ran with none of'
run fit --find anything -g $card -- "$train" --batch 400
expect "what would help a run that does not fit" 3 '39.20 GiB reserved, 11.76 GiB on the card: oom'
run fit --find budget -g $card -- "$train" --batch 4
expect "no module to compute twice" 1 '' 'no module was seen to keep anything for a backward pass'
finish
