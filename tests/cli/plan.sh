#!/bin/sh
# plan.sh - plans of memory: recordings, and files that are none.
. tests/support/tap.sh

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
