#!/bin/sh
# plan.sh - plans of memory: problems in CSV, recordings, and files that are none.
. tests/support/tap.sh

printf 'id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n' > "$TMP/p.csv"
run plan "$TMP/p.csv" -o "$TMP/placed.csv" --json
expect "a problem is solved, and the solution proven" 0 '"height": 12'
expect "as JSON" 0 '"proven": true'
check "the offsets are written" grep -q '^b5,0,21,4,[0-9]*$' "$TMP/placed.csv"
check "nothing overlaps" awk -F, 'NR > 1 { for (i in l) if ($2 < u[i] && l[i] < $3 && $5 < o[i] + s[i] && o[i] < $5 + $4) exit 1
	l[NR] = $2; u[NR] = $3; s[NR] = $4; o[NR] = $5; if ($5 + $4 > 12) exit 1 }' "$TMP/placed.csv"
run plan "$TMP/placed.csv"; expect "a solution is a problem, too" 0 'proven best *yes'
printf 'id,lower,upper,size\nx,5,5,1\n' > "$TMP/bad.csv"
run plan "$TMP/bad.csv"; expect "a block without a life" 1 '' 'line 2: upper must be more than lower'
printf 'id,lower,upper,size\nx,5,7,much\n' > "$TMP/bad.csv"
run plan "$TMP/bad.csv" -o "$TMP/none.csv"; expect "a size that is no number" 1 '' "line 2: size is 'much', not a number"
check "leaves no file" test ! -e "$TMP/none.csv"
run plan traces/decomfl.vct -o "$TMP/a.vcp" --json
expect "a recording" 0 '"schema": "vramcast.plan/1"'
expect "which is proven to be as good as can be" 0 '"proven": true'
check "takes less than PyTorch's allocator" sh -c "tr -d ' ,' < '$TMP/out' | awk -F: '/\"arena\"/ { a = \$2 } /\"native_reserved\"/ { n = \$2 } /\"bound_streams\"/ { b = \$2 } END { exit !(b && a >= b && a < n) }'"
run plan traces/decomfl.vct -o "$TMP/b.vcp"
check "the same recording gives the same plan" cmp "$TMP/a.vcp" "$TMP/b.vcp"
run plan traces/lm-train-ctx128.vct -o "$TMP/c.vcp"
expect "a recording that began in the middle cannot be run" 2 '' 'record the program from its start'
run plan traces/lm-train-ctx128.vct --effort 1; expect "but be looked at" 0 'cannot be run'
run plan traces/decomfl.vct traces/decomfl.vct; expect "one at a time" 2 '' 'one trace'
run plan "$TMP/nothing"; expect "a file that is not there" 1 '' 'nothing'
TMPDIR="$TMP/nowhere" run run --learn "$TMP/l.vcp" -- true
expect "run says which folder it cannot write in" 125 '' 'cannot make a folder in .*nowhere: .*; set TMPDIR'
finish
