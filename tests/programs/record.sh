#!/bin/bash
# record.sh - record programs on the null GPU, what is not in the cache yet: VRAMCAST, PYTHON, CACHE.
#
# record.sh ladders: the lines of ladders.txt, to CACHE/PROGRAM/PROGRAM_OPTIONVALUE.vct.
# record.sh seeds: the lines of seeds.txt, each with several seeds, to CACHE/PROGRAM-sSEED_OPTIONVALUE.vct.
# record.sh full: the lines of full.txt, to CACHE/NAME/NAME_OPTIONVALUE.vct. OTHER_SEED: those whose sizes the data decide once more,
# with this seed, to CACHE/NAME-sSEED.
# record.sh changes: the lines of changes.txt, to CACHE/changes/; prints a line a pair for tests/transforms/check.sh.
# It may be stopped and started again; what is there is left alone, and what a program has recorded is there soon after it has ended.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$CACHE" || exit 1
exec 9> "$CACHE/.lock" # one of them records at a time
work=$(mktemp -d "$CACHE/.work.XXXXXX"); trap 'rm -rf "$work"' EXIT
how=(-q -g "${CARD:-a100-80g-sxm}" --stacks py)
trim() { local a=($*); echo "${a[*]}"; }

keep() { # FILE TO: where one process records several values, it is TO that tells which
	local value=${2##*_}; value=${value%.vct}
	[ -n "${told:-}" ] || { mv "$1" "$2"; return; }
	"$VRAMCAST" export -q --no-verify "$1@${value%%[0-9]*}=$((10#${value##*[!0-9]}))" -o "$work/told.vct" && mv "$work/told.vct" "$2"
}

part() { [ -s "$1" ] && mkdir -p "$(dirname "$2")" && keep "$1" "$2"; }

# What children that have ended recorded, while others run. The first that used the card has the name that was asked
# for, which nobody can tell before all have ended.
soon() {
	local pid to
	while [ -e "$work/on" ]; do
		while read -r pid to; do
			part "$work/r.$pid.vct" "$to"
		done < "$work/done"
		sleep 1
	done
}

lines() { [ -r "$1" ] || { echo "record.sh: there is no list $1" >&2; exit 2; }; }

# Runs of $work/list, lines "FILE SCRIPT ARGUMENT...", as children of one process. A program that is aborted when all
# is over (a thread that was still there) has its whole recording, but is run again, because nobody can know.
record() { # OPTION...
	local try pid mover to
	for try in 1 2 3; do
		while read -r to rest; do [ -s "$to" ] || echo "$to $rest"; done < "$work/list" > "$work/left"
		[ -s "$work/left" ] || return 0
		flock -n 9 || { echo "# another recording of programs is under way: waiting" >&2; flock 9; }
		rm -f "$work"/r.*
		: > "$work/done"; : > "$work/on"
		soon 9>&- & mover=$!
		"$VRAMCAST" dryrun "${how[@]}" "$@" -o "$work/r.vct" -- "$PYTHON" "$here/../transforms/many.py" "$work/left" \
			> "$work/done" 2> "$CACHE/record.log" < /dev/null
		rm "$work/on"; wait "$mover"
		while read -r pid to; do
			part "$work/r.$pid.vct" "$to" || [ -s "$to" ] || part "$work/r.vct" "$to"
		done < "$work/done"
		flock -u 9
		grep '^many\.py:' "$CACHE/record.log" >&2 && exit 2
	done
	grep '^# .* failed\|Error' "$CACHE/record.log" >&2
	return 1
}

ladders() {
	local bad=0 programs knob values value p
	while IFS='|' read -r programs knob values; do
		knob=$(trim $knob)
		for value in $values; do
			for p in $programs; do
				echo "$CACHE/$p/$(printf '%s_%s%04d' "$p" "$knob" "$value").vct $here/$p.py --$knob $value"
			done > "$work/list"
			record --param "$knob=$value" || bad=1
		done
		echo "recorded over $knob:$(printf ' %s' $programs)"
	done < <(grep -v '^#' "$LADDERS")
	return $bad
}

# Twenty recordings a process, whatever their option and value, which their names tell. ONLY: some of the programs.
full() {
	local bad=0 program knob values what decided own value m n seed part run
	while IFS='|' read -r program knob values what decided own; do
		program=$(trim $program) knob=$(trim $knob) own=$(trim $own) m=${program##*.}
		run="$here/${program%%.*}.py --model $m --$knob {$knob}"
		[ -z "$own" ] || run="$here/stand_in.py ${own%% *} $(tr / + <<< "${program%@*}")/${own#* }" # scripts.txt
		for seed in '' ${OTHER_SEED:-}; do
			[[ -z $seed || $decided = *data:* ]] || continue
			n=$m${seed:+$(printf -- '-s%02d' "$seed")}
			for value in $values; do
				printf '%s/%s/%s_%s%04d.vct %s%s\n' "$CACHE" "$n" "$n" "$knob" "$value" \
					"${run//"{$knob}"/$value}" "${seed:+ --seed $seed}"
			done
		done
	done < <(grep -v '^#' "$LADDERS" | grep -E "${ONLY:-.}") |
		while read -r to rest; do [ -s "$to" ] || echo "$to $rest"; done | split -l 20 - "$work/part."
	for part in "$work"/part.*; do
		[ -s "$part" ] && mv "$part" "$work/list" && { told=yes record || bad=1; }
	done
	return $bad
}

seeds() {
	local bad=0 programs knob values seeds value seed p m
	while IFS='|' read -r programs knob values seeds; do
		knob=$(trim $knob)
		for value in $values; do
			for p in $programs; do
				for seed in $seeds; do
					m=; [ "${p#*.}" = "$p" ] || m="--model ${p#*.} "
					printf '%s/%s-s%02d_%s%04d.vct %s/%s.py %s--%s %s --seed %s\n' "$CACHE" "${p#*.}" "$seed" \
						"$knob" "$value" "$here" "${p%%.*}" "$m" "$knob" "$value" "$seed"
				done
			done > "$work/list"
			record --param "$knob=$value" || bad=1
		done
	done < <(grep -v '^#' "$here/seeds.txt")
	return $bad
}

file() { local n; n=$(printf '%s' "$*" | tr ' ' '_'); echo "$CACHE/changes/$n.vct"; }
changes() {
	local programs base change transform p
	while IFS='|' read -r programs base change transform; do
		for p in $programs; do
			echo "$p|1|$(trim $transform)|$(trim $p $base)|$(trim $p $base $change)"
		done
	done < <(grep -v '^#' "$PAIRS") > "$work/pairs"
	while IFS='|' read -r _ _ _ base changed; do printf '%s\n%s\n' "$base" "$changed"; done < "$work/pairs" |
		sort -u | while read -r p args; do # PROGRAM.NAME: PROGRAM.py --model NAME
			m=${p#*.}; [ "$m" != "$p" ] || m=
			echo "$(file $p $args) $here/${p%%.*}.py ${m:+--model $m} $args"
		done > "$work/list"
	record
	while IFS='|' read -r p ranks transform base changed; do
		echo "$p|$ranks|$transform|$(file $base)|$(file $changed)|${changed#"$p"}"
	done < "$work/pairs"
}

case "${1:-}" in
ladders) lines "${LADDERS:=$here/ladders.txt}"; ladders ;;
seeds) seeds ;;
full) lines "${LADDERS:=$here/full.txt}"; full ;;
changes) lines "${PAIRS:=$here/changes.txt}"; changes ;;
*) echo "record.sh: ladders, seeds, full or changes?" >&2; exit 2 ;;
esac
