#!/bin/bash
# advice.sh - processor time of sim with its advice (the middle one of five): after an out-of-memory, after a what-if
# that leaves room, and on a recording that begins in the middle of a run.
TIMEFORMAT=%U
bench() { # NAME ARGUMENT...
	name=$1; shift
	for i in 1 2 3 4 5; do
		{ time "$VRAMCAST" sim "$@" > /dev/null 2>&1; } 2>&1
	done | sort -n | awk -v name="$name" 'NR == 3 { printf "bench %s %.0f ms\n", name, $1 * 1000 }'
}
bench advice_oom_ms tests/recordings/gpt.vct@batch=1 --capacity 5GiB
bench advice_room_ms tests/recordings/gpt.vct -x lora
bench advice_warm_ms traces/lm-medium-ctx1024.vct -g rtx3060
