#!/bin/bash
# rerun.sh - the program itself answers for values that nobody recorded. The program is one in C on a stand-in for
# PyTorch's allocator (tests/tracer/torch_standin/train.c), on the null GPU.
. tests/support/tap.sh
. tests/support/standin.sh
cd "$TMP/own" || exit 1
card=rtx3060-12g
dry() { "$VRAMCAST" dryrun -q -g $card "$@" > said 2>&1 || { cat said; false; }; } # VARIABLE=... before it
sim() { run sim --no-advice "$@"; }
peak() { sed -n 's/.*"peak_reserved": \([0-9]*\).*/\1/p' "$TMP/out" | head -n 1; }

dry -o two.vct --param batch=2 -- "$train" --batch 2; dry -o four.vct --param batch=4 -- "$train" --batch 4; rm -f "$RUNS"
sim four.vct --json; truth=$(peak)
sim two.vct --set batch=4 --json
expect "the program answers for another value" 0 '"level": "rerun"'
check "to the byte what a dry run of it in another process needs" test "$(peak)" = "$truth"
expect "where the control run is equal there is no interval" 0 '"interval": null'
expect "who answered, and how far the control run was equal" 0 '"equal": 16'
ran "it is run at the recorded value, and at the one that is asked for" 2
sim two.vct --set batch=4
expect "in words" 0 'at the recorded value 16 of 16 requests were those of the recording'
ran "both runs are kept" 0
sed -i 's/"unknown": \[\]/"unknown": ["sizes that a kernel computes"]/' "$XDG_CACHE_HOME"/vramcast/runs/*.json
sim two.vct --set batch=4; expect "what only a card knows is named" 0 'those of the recording; only a card knows: sizes that a kernel computes'
sim two.vct --set batch=4 -x fraction:f=0.9 --json; expect "a change that is not made is estimated on top" 0 'what -x changes was not run, but is estimated'
sim two.vct --set batch=5; expect "another value" 0 'level +rerun'
ran "is one run more" 1
sim two.vct --set batch=2; expect "the recorded value is the recording" 0 'level +exact'
sim two.vct --set batch=4 --by recordings; expect "--by recordings asks the recording alone" 0 'level +bounds'
ran "and runs nothing" 0
sim two.vct --set batch=4 --by magic; expect "--by takes three words" 2 '' 'must be one of rerun.recordings.auto'
rm -f "$RUNS"; sim two.vct --set batch=500; expect "what does not fit runs out of memory" 3 'runs out of memory'
ran "after a run with the card's memory, and one with more" 2
run sim two.vct --set batch=500; expect "what would help is looked for" 3 'runs out of memory'
ran "among the recordings" 0
run sweep two.vct --vary batch=4,5,6 --table; expect "sweep asks it, too" 0 'batch=6 +fits'
ran "for what it has not run yet" 1
run sweep two.vct --vary batch=4 --vary gpu=l4,t4 --table; expect "on other cards" 0 'gpu=t4 +fits'
ran "on which it runs anew" 2

rm -f "$RUNS"; run fit two.vct; expect "fit asks it" 0 'largest that fits +117 \(proved by trial runs\)'
ran "in six runs at most, one of which was there" 3
expect "and says so" 0 'batch: the program was run 4 times without a card; at the recorded value 16 of 16 requests'
run fit two.vct --by recordings; check "--by recordings does not" grep -q 'batch: bounds from one recording' <(printf '%s' "$out$err")
run fit two.vct -g l4 -g $card; expect "on cards of two classes" 0 'NVIDIA L4'
dry -o both.vct --param batch=2 --param seq=7 -- "$train" --batch 2 --seq 7
run fit both.vct; expect "the other values stay as they were recorded" 0 'largest that fits +117 \(proved by trial runs\)'
run fit both.vct --set seq=9; expect "or become what is asked for" 0 'largest that fits +117 \(proved by trial runs\)'
run fit two.vct --set seq=1; expect "what stands nowhere is said" 2 '' 'not rerun: where \{seq\} stands'
run tune two.vct --set batch=4 --json; expect "tune asks it" 0 '"level": "rerun"'
run plot two.vct --set batch=4 -o two.svg; expect "plot does, too" 0
run report two.vct --set batch=4 -o two.html; expect "and report" 0; check "whose page says it" grep -q 'the program was run at this value without a card' two.html
VRAMCAST=$VRAMCAST PYTHONPATH=$OLDPWD/python:$PYTHONPATH "$py" -c 'import sys, vramcast
a = vramcast.sim("two.vct", set={"batch": 4}); b = vramcast.sim("two.vct", set={"batch": 4}, by="recordings")
print(a.trust["level"], b.trust["level"])' > said 2>&1
check "the package for Python asks it, and takes --by" grep -qx 'rerun bounds' said

# changes made in the program
dry -o narrow.vct --param batch=2 -- "$train" --batch 2 narrow; sim narrow.vct --json; truth=$(peak)
dry -o narrow4.vct --param batch=4 -- "$train" --batch 4 narrow; sim narrow4.vct --json; truth4=$(peak); rm -f "$RUNS"
sim two.vct -x precision --json; expect "a change is made in the program" 0 '"level": "rerun"'
check "to the byte what it needs in which the change stands" test "$(peak)" = "$truth"
expect "without an interval" 0 '"interval": null'
ran "in one run, for the control run was there" 1
sim two.vct -x precision; expect "in words" 0 'run with this change without a card; as it was recorded 16 of 16 requests were those of the recording'
expect "and what it changes" 0 '-x precision +[0-9.]+ MiB -> [0-9.]+ MiB reserved'
ran "kept as well" 0
sim two.vct --set batch=4 -x precision --json; expect "with another value" 0 '"level": "rerun"'
check "to the byte, too" test "$(peak)" = "$truth4"
ran "is another run" 1
sim two.vct -x precision -x fraction:f=0.9; expect "what is not made is estimated on top" 0 'the others were not made in it, but are estimated on top'
sim two.vct -x fraction:f=0.9 --by rerun; expect "and is not asked for in vain" 2 '' '--by rerun: -x fraction:f=0.9: a program cannot be changed to it from outside'
sim two.vct -x precision --by recordings; expect "--by recordings estimates it" 2 "" "no iterations found"
sim two.vct -x optimizer:to=muon; expect "nor is what PyTorch has not" 2 "" "no iterations found"
sim two.vct -x offload --by rerun; expect "a program that cannot be changed so says why" 2 '' 'could not be made in the program: no host is large enough'
while read -r x why; do sim two.vct -x "$x" --by rerun; expect "nor is it by -x $x" 2 '' "--by rerun: -x $x: .*$why"; done << 'E2'
offload:least=2MiB save_on_cpu moves blocks of all sizes
offload:after=3 save_on_cpu moves blocks of all sizes
accumulate:micro=1 its own loop says
checkpoint:all=true only whole layers
checkpoint:least=1MiB only whole layers
optimizer:to=lamb PyTorch has no optimizer of that name
precision:to=mixed mixed precision is part of fsdp
E2
sim two.vct -x accumulate --by rerun; expect "or that it did not come by it" 2 '' 'it never came by what accumulate changes'
sim two.vct --set batch=4 -x accumulate; expect "then the values are run without it" 2 "" "no iterations found"
rm -f "$RUNS"; run sweep two.vct --vary batch=4,5 -x precision --table; expect "a sweep makes it, too" 0 'batch=4 +fits'
ran "for each value" 1
run fit two.vct -x precision; expect "and fit" 0 'largest that fits +[0-9]+ \(proved by trial runs\)'
check "which is more than without it" test "$(printf '%s\n' "$out" | sed -n 's/.*largest that fits *\([0-9]*\).*/\1/p')" -gt 117
rm -f "$RUNS"

# a recording never decides what is run
export XDG_CACHE_HOME="$TMP/elsewhere"; rm -f "$RUNS"
sim two.vct --set batch=4; expect "what was recorded elsewhere is not run" 0 'not rerun +it was recorded elsewhere, and nothing in a file is ever run'
expect "then the recording answers" 0 'level +bounds'
sim two.vct --set batch=4 --by rerun; expect "not if asked for it either" 2 '' "--program '$train --batch \{batch\}' runs it here"
ran "nothing was run" 0
sim two.vct --set batch=4 --program "$train --batch {batch}"; expect "its user says it once" 0 'level +rerun'
check "which is kept beside the recording" grep -q '"{batch}"' two.vct.program
sim two.vct --set batch=5; expect "and need not say it again" 0 'level +rerun'
cp two.vct sent.vct; cp two.vct.program sent.vct.program; sed -i 's/--batch/--evil/' sent.vct.program; rm -f "$RUNS"
sim sent.vct --set batch=6; expect "a file beside a recording decides nothing either" 0 'not rerun +it was recorded elsewhere'
ran "nothing was run for it" 0
rm -f ./*.program; export XDG_CACHE_HOME="$TMP/cache"

# a snapshot that its program made by itself
"$VRAMCAST" export -q --redact two.vct -o snap.vct > said 2>&1; sim snap.vct@batch=2 --set batch=4; expect "what made a snapshot is not known" 0 'not rerun +which program made the recording is not known'
rm -f "$RUNS"; run record --describe snap.vct.program -- "$train" --batch 2; expect "unless it was written down beside it" 0
ran "while it ran, for nothing is run then" 0
sim snap.vct@batch=2 --set batch=4 --by rerun; expect "then it can be asked" 0 'level +rerun'
"$VRAMCAST" record -q --describe none/snap.program -- "$train" --batch 2 > said 2>&1; check "a file that cannot be written is said" grep -q "none/snap.program" said

# files of the user's own
printf '#!/bin/sh\nexec %s "$@"\n' "$train" > train.sh
ln -s "$(command -v sh)" shell
dry -o script.vct --param batch=2 -- ./shell train.sh --batch 2
run info script.vct; expect "what ran it, from any folder and not what it links to" 0 "run by +$PWD/./shell"
sim script.vct --set batch=4; expect "a script" 0 'level +rerun'
echo '# edited' >> train.sh; rm -f "$RUNS"
sim script.vct --set batch=4; expect "that was edited since is not run unasked" 0 'not rerun +.*/train.sh is not what it was'
ran "nothing was run for that" 0
sim script.vct --set batch=4 --by rerun; expect "but where it is asked for" 0 'level +rerun'
ran "anew" 2
dry -o hidden.vct --param batch=2 -- "$train" --batch 2 --api-key tell-nobody; sim hidden.vct --set batch=4
expect "a secret was not written down" 0 'not rerun +its command line has a secret'
dry -o two2.vct --param batch=2 -- sh -c "$train --batch 2"; sim two2.vct --set batch=4
expect "a value that stands nowhere" 0 'not rerun +where \{batch\} stands in its command line is not known'
dry -o bare.vct -- "$train" --batch 2; sim bare.vct --set batch=4; expect "a value that nobody named, behind an option of its name" 0 'level +rerun'
dry -o bare.vct -- "$train" --batch 2; sim bare.vct --set batch=4 --program "$train --batch {batch}"; expect "also where {batch} was said: the recorded line has it" 0 'level +rerun'
dry -o bare2.vct -- sh -c "$train --batch 2"; sim bare2.vct --set batch=4 --by rerun --program "$train --batch {batch}"
expect "where it does not, nothing is run with {batch} itself" 2 '' 'does not say its batch; name it, as FILE@batch=VALUE'
sim bare2.vct@batch=2 --set batch=4 --by rerun; expect "and that helps" 0 'level +rerun'; rm -f bare*.program

# what only the recorded run did
WORKSPACE=40 dry -o more.vct --param batch=2 -- "$train" --batch 2; rm -f "$RUNS"
WORKSPACE=40 dry -o more4.vct --param batch=4 -- "$train" --batch 4; sim more4.vct --json; truth=$(peak); rm -f "$RUNS"
sim more.vct --set batch=4 --seeds 1 --json; expect "what the control run disagrees on" 0 '"only_recorded": 3'
interval=$(tr -d ' \n' < "$TMP/out" | sed -n 's/.*"interval":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p')
check "is an interval that holds what really happens" test "${interval% *}" -le "$truth" -a "$truth" -le "${interval#* }"
check "and nothing beyond it, grown as what stands beside it has" test "${interval#* }" = $((truth + (40 << 20)))
check "the best guess is to the byte what really happens, too" test "$(peak)" = "$truth"
sim more.vct --set batch=4 --seeds 1; expect "in words, too" 0 '16 of 19 requests were those of the recording \(3 only the recording makes, 3 of these are given back at once, as workspaces are\).*; what differs was carried over'
DATA=30 dry -o data.vct --param batch=2 -- "$train" --batch 2 by data; rm -f "$RUNS"
DATA=1 sim data.vct --set batch=4; expect "what the data decide is run several times" 0 'its data decide, so it was run 4 times at each value'
ran "at the recorded value, too" 8
DATA=1 sim data.vct --set batch=5 --seeds 3; expect "or as often as asked" 0 'so it was run 3 times'
ran "of which those at the recorded value were there" 3
DATA=1 sim data.vct --set batch=4 --seeds 4 --json; said=$(tr -d ' \n' < "$TMP/out" | sed -n 's/.*"interval":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p')
most=0; for kept in "$XDG_CACHE_HOME"/vramcast/runs/*.vct; do
	"$VRAMCAST" info --no-verify "$kept" | grep -q 'by data' || continue
	run sim --no-advice --json "$kept@batch=4"; [ "$(peak)" -gt "$most" ] && most=$(peak)
done
check "one more run may end beyond those that were made" test "$most" -gt 0 -a "${said#* }" -gt "$most"
anew() { rm -f "$RUNS" "$XDG_CACHE_HOME"/vramcast/runs/*; }
ALL=1 DATA=30 dry -o all.vct --param batch=2 -- "$train" --batch 2; anew; ALL=1 DATA=1 sim all.vct --set batch=4
expect "even if it decides nearly all sizes it is the recorded one" 0 '4 of 16 requests were those of the recording .12 have another size'
anew; ALL=2 DATA=30 dry -o counts.vct --param batch=2 -- "$train" --batch 2; ALL=2 DATA=30 sim counts.vct --set batch=4
expect "or how many there are" 0 '4 of 16 requests were those of the recording .*so it was run 4 times'
EARLY=300 dry -o early.vct --param batch=2 -- "$train" --batch 2; anew; sim early.vct --set batch=4
expect "what differs from the recording alone is no data" 0 '16 of 17 requests were those of the recording .1 only the recording makes, 1 of these.*carried over'
ran "which a second run at the recorded value shows" 3
DATA=30 dry -o fits.vct --param batch=2 -- "$train" --batch 2; anew; DATA=1 run fit fits.vct
expect "fit says that data decide" 6 '3 have another size.; its data decide, and another run may need more'
ran "and takes six runs at most, the second control run among them" 6
anew; ORDER=1 dry -o order.vct --param batch=2 -- "$train" --batch 2; sim order.vct --set batch=4
expect "another order of frees is said" 0 '16 of 16 requests were those of the recording; its blocks are freed in another order$'
anew; ORDER=2 sim order.vct --set batch=4
expect "another order of frees is not called data" 0 '16 of 16 requests were those of the recording; its blocks are freed in another order each time, so it was run 4 times'
dry -o broken.vct --param batch=2 -- "$train" --batch 2
BROKEN=1 sim broken.vct --set batch=7; expect "a program that does not run is not asked" 0 'not rerun +a dry run of the program ended with code 5'
BROKEN=1 sim broken.vct --set batch=77 --by rerun; expect "or the answer is why" 1 '' 'ended with code 5 and left no recording; what it said is in .*\.log'
cd - > /dev/null || exit 1
cp tests/recordings/gpt.vct "$TMP/gpt.vct"; sim "$TMP/gpt.vct" --set batch=8 --program "$train --batch {batch}" -g rtx4090
expect "another program is told from the recorded one" 0 'not rerun +the program is not the recorded one'
finish
