#!/bin/sh
# diff.sh - two traces side by side.
. tests/support/tap.sh

run diff traces/decomfl.vct traces/decomfl.vct
expect "a trace and itself" 0 'The requests are the same: 7946 allocations'
"$VRAMCAST" export traces/decomfl.vct --to pickle -o "$TMP/d.pickle"
run diff traces/decomfl.vct "$TMP/d.pickle" --json
expect "a trace and its snapshot make the same requests" 0 '"same_requests": true'
expect "and replay exactly, both" 0 '"exact": true'
"$VRAMCAST" export traces/decomfl.vct --to vct -o "$TMP/w.vct" -x window:from=0,to=10000 2> "$TMP/err"
run diff traces/decomfl.vct "$TMP/w.vct"
expect "what a shorter one lacks is only in A" 0 'only in A: [0-9]+'
expect "and the first difference is named" 0 'The first difference: only A makes this allocation'
run diff traces/attention.vct traces/decomfl.vct
expect "two different programs" 0 'nothing in common'
expect "other versions show" 0 '^ *torch +2\.6 +2\.9 +differs'
run diff traces/attention.vct traces/decomfl.vct --json --sites 3
expect "as JSON" 0 '"schema": "vramcast.diff/1"'
check "with the sites that were asked for" sh -c "[ \$(grep -c '\"live_at_peak\"' '$TMP/out') = 3 ]"
run diff traces/decomfl.vct; expect "one trace is not enough" 2 '' 'two traces'
run diff traces/decomfl.vct "$TMP/none"; expect "a file that is not there" 1 '' 'none'
L=tests/ladders/recordings
run diff $L/gpt2-hf_seq0256_torch2.9.1.vct $L/gpt2-hf_seq0384_torch2.9.1.vct --json
expect "a longer sequence: the same program" 0 '"other_size": [0-9]{4}'
check "every allocation of the shorter one is found in the longer" sh -c "tr -d ' \n' < '$TMP/out' | grep -q '\"only\":{\"a\":0,\"b\":[0-9]*}'"
run diff tests/python/recordings/base.vct tests/python/recordings/head.vct --markdown; expect "as Markdown" 0 '^\| peak reserved \| 458.00 MiB \| 510.00 MiB \| \+52.00 MiB \|$'
check "numbers to the right, and nothing that Markdown takes for a tag" sh -c 'grep -q "^|--:|--:|---|---|---|$" "$1" && grep -q "train.py:24 &lt;module>" "$1" && ! grep -q "<" "$1"' - "$TMP/out"
run diff tests/python/recordings/base.vct tests/python/recordings/head.vct -o "$TMP/d.svg"; expect "with a picture the words stay" 0 'B needs more than A'
check "and its title is their conclusion" grep -q '>B needs 52 MiB more than A' "$TMP/d.svg"
run diff tests/python/recordings/base.vct tests/python/recordings/head.vct -o -; expect "or the picture alone" 0 '^<svg'
run diff traces/attention.vct traces/decomfl.vct -o "$TMP/d.csv"; expect "what is no picture" 2 '' 'd.csv'
run plot traces/attention.vct -t diff -o "$TMP/p.svg"; check "plot sends to diff" grep -q 'vramcast diff A B' "$TMP/p.svg"
run diff traces/attention.vct traces/attention.vct --markdown --json; expect "Markdown or JSON" 2 '' 'not both'
# The kinds are all of what is reserved, those that one side alone has among them.
run diff tests/recordings/conv-4.vct tests/recordings/lengths-4.vct --json
check "by kind the sums are what is reserved, with workspaces of one side only" python3 -c "import json, sys
d = json.load(open(sys.argv[1])); k = d['kinds']
sys.exit([sum(x[s] for x in k) for s in 'ab'] != [d[s]['run']['peak_reserved'] for s in 'ab'] or not any(x['a'] and not x['b'] for x in k))" "$TMP/out"
finish
