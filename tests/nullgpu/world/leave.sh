#!/bin/sh
# leave.sh - make check-leave: one rank of a job of real PyTorch that leaves badly, in each way and at each phase: its dry
# run ends within ten seconds of it, and with its status. TORCH="2.6.0 2.9.1" chooses; RANKS. Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
program=$PWD/tests/nullgpu/world/leave.py
export LEFT="$TMP/left"
ends() { timeout 60 "$VRAMCAST" dryrun -q -g a100-80g-sxm --world 8 --no-record "$@" > "$TMP/out" 2> "$TMP/err"; rc=$?; }
for version in ${TORCH:-2.6.0 2.9.1}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	for phase in before init step after destroyed; do
		while read -r how status; do
			for rank in ${RANKS:-0}; do
				ends --rank "$rank" -- "$py" "$program" "$phase" "$how"
				name="$version, rank $rank: $how, $phase"
				if [ "$rc" != "$status" ]; then fail "$name: its status is $status" "$rc" "$(tail -5 "$TMP/err")"
				else
					late=$(awk "BEGIN { print $(date +%s.%N) - $(cat "$LEFT") }")
					check "$name: it ends $late s later, by itself" sh -c \
						'awk "BEGIN { exit $1 > 10 }" && ! grep -q "process stays" "$2"' sh "$late" "$TMP/err"
				fi
			done
		done <<-E
			exception 1
			exit 3
			_exit 4
			signal 143
			interrupt 130
			abort 134
			memory 1
			thread 1
		E
	done
done
finish
