#!/bin/bash
# fit_budget.sh - fit keeps a program below a peak by dry runs: one in C whose modules are kept, computed twice or sent away as
# it is told (make check-budget does it with PyTorch).
. tests/support/tap.sh
. tests/support/standin.sh
cd "$TMP/own" || exit 1
modules=$(dirname "$train")/modules; at="-g a100-40g-sxm"
# its kernels are recorded, too
echo 'int cudnnGetVersion(void); int cuptiSubscribe(void **, void *, void *); int ask(void) { return cudnnGetVersion() + cuptiSubscribe(0, 0, 0); }' > "$TMP/want.c"
cc -shared -fPIC -Wl,--no-as-needed -o "$TMP/site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$B/nullgpu" -l:vcnull-libcudnn.so.9 -l:vcnull-libcudart.so.12 \
	-l:vcnull-libcupti.so.12
peak() { size=$1; shift; run fit --find budget $at --peak "${size}MiB" "$@"; } # SIZE OPTION... -- PROGRAM
run fit --find budget $at --peak 1TiB -- "$modules" 6
expect "where all fits nothing is done" 0 '^nothing has to be computed twice$'
peak 1000 --save choice.json -- "$modules" 6
expect "modules are computed twice but for products, which costs least" 0 '^5 of 6 modules computed twice but for products$'
expect "what that adds is the difference of both runs' steps" 0 '^0\.641 ms a step more \(0\.489 \.\. 0\.832\), 27\.7 %$'
expect "no other choice counts less" 0 'no choice of these counts less than 0\.636 ms: a gap of 0 %'
expect "computing twice evenly costs more" 0 'the fewest computed twice, evenly spread, count 1\.27 ms'
expect "it stands there to be pasted" 0 'layer\.forward = partial\(but_products, layer\.forward\)'
check "the choice is a file" grep -q '"do": "products"' choice.json
run run --choice choice.json -- "$modules" 6; expect "which is applied" 0
expect "without a word" 0 '^$' '^$'
run run --choice choice.json -- "$modules" 4; expect "to modules that are there" 0 '' 'called 4 of the 6 modules in choice.json'
run run --choice choice.json -- true; expect "a program without them" 0 '' 'called none of the modules'
peak 1000 --lower-precision --save lower.json -- "$modules" 6
expect "in lower precision it keeps less, where that is asked for" 0 '^[1-6] of 6 modules kept in lower precision$'
expect "which is not to be pasted" 0 "^    # kept in lower precision: only by 'vramcast run --choice'$"
run run --choice lower.json -- "$modules" 6; expect "but applied" 0 '^$' '^$'
peak 760 -- "$modules" 6; expect "what keeps most goes to the host" 0 '^3 of 6 modules sent to the host$'
peak 760 --host 0 -- "$modules" 6; expect "without which none stays below" 3 'the least that was tried needs 782'
expect "as is proven" 3 '^proven: no choice for whole modules needs less than 765.00 MiB,'
peak 1000 --json -- "$modules" 6; expect "the same for programs" 0 '"gap": 0,'
peak 940 --save inplace.json -- "$modules" 6 inplace
expect "a product changed in place is not kept for a second time" 0 '^1 of 6 modules computed twice$'
check "nor by the file" grep -q '"do": "recompute"' inplace.json
peak 900 -- "$modules" 6 recompute
expect "what a program does not bear is left out" 0 '^5 of 6 modules computed twice$'
peak 900 -- "$modules" 6 quiet
expect "without kernels nobody knows what it adds" 0 'what it adds to a step is not known: no kernels are'
expect "and bytes are counted" 0 'no choice of these counts less than 708.00 MiB: a gap of 20 %'
peak 900 --save share.json -- "$modules" 6 compiled
expect "a compiler is told how much to keep" 0 'activation_memory_budget = 0\.00'
run run --choice share.json -- "$modules" 6 compiled; expect "which is applied, too" 0
peak 200 -- "$modules" 6 compiled; expect "or there is nothing to be told" 3 'no choice was found that stays below'
finish
