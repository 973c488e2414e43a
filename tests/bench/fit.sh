#!/bin/bash
# fit.sh - `vramcast fit` from two recordings, the middle one of five: seconds of the clock, and of the processor, which do
# not depend on who else is there.
TIMEFORMAT='%R %U %S'
bench() { # NAME ARGUMENT...
	name=$1; shift
	for i in 1 2 3 4 5; do
		{ time "$VRAMCAST" fit "$@" > /dev/null 2>&1; } 2>&1
	done | sort -n | awk -v name="$name" 'NR == 3 { printf "bench %s.s %.2f s\nbench %s.cpu.s %.2f s\n", name, $1, name, $2 + $3 }'
}
t=tests/recordings; l=tests/ladders/recordings
bench fit.lengths $t/lengths-4.vct@batch=4 $t/lengths-8.vct@batch=8 -g rtx4090
bench fit.bert $l/bert-cls_batch0004_torch2.9.1.vct@batch=4 $l/bert-cls_batch0008_torch2.9.1.vct@batch=8 -g rtx4090
bench fit.gpt2 $l/gpt2-hf_batch0001_torch2.9.1.vct@batch=1 $l/gpt2-hf_batch0002_torch2.9.1.vct@batch=2 -g rtx4090
bench fit.accum $l/gpt-accum_seq0128_torch2.9.1.vct@seq=128 $l/gpt-accum_seq0256_torch2.9.1.vct@seq=256 --find seq -g rtx3060
