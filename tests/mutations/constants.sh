#!/bin/sh
# constants.sh - every named number of the rooms that recognise something, halved and doubled: a list for run.py.
# A number is named by an enum, a #define or a static const. Left out is what decides no answer of a recording within its
# bound: a line whose comment says "bounds a table", "bounds time", "bounds memory" or, of doubles, "bounds rounding".
for f in simulator/anatomy/*.[ch] simulator/predict/*.[ch] simulator/rewrite/*.[ch] simulator/transforms/*.[ch]; do
	awk -v f="$f" '
	function emit(name, start, len,    value) { # the value stands at start of the line
		value = substr($0, start, len); sub(/[ \t]+$/, "", value)
		if (value !~ /^(UINT64_C)?\(?[0-9]/ || value ~ /^0(u|x0)?$/) return
		before = substr($0, 1, start - 1); sub(/^[ \t]+/, "", before)
		after = substr($0, start + length(value)); sub(/\t.*/, "", after)
		for (k = 1; k <= 2; k++)
			printf "%s\t%s\t%s\t%s((%s) %s)%s\t%s %s\n", room, f, before value after, before, value,
				k == 1 ? "/ 2" : "* 2", after, name, k == 1 ? "halved" : "doubled"
	}
	/bounds (a table|time|memory|rounding)/ { next }
	BEGIN { split(f, part, "/"); room = part[1] "/" part[2] }
	/^[ \t]*(static )?enum[ a-z_]*\{/ || /^enum$/ { inside = 1 }
	inside {
		rest = $0; at = 0
		while (match(rest, /[A-Z][A-Z0-9_]+ = [^,}\/]+/)) {
			found = substr(rest, RSTART, RLENGTH); from = at + RSTART
			name = found; sub(/ = .*/, "", name)
			emit(name, from + length(name) + 3, length(found) - length(name) - 3)
			at += RSTART + RLENGTH - 1; rest = substr($0, at + 1)
		}
		if ($0 ~ /\}/) inside = 0
	}
	pending != "" { if (match($0, /^[ \t]*[0-9][0-9.]*/)) { match($0, /[0-9][0-9.]*/); emit(pending, RSTART, RLENGTH) }; pending = "" }
	/^#define [A-Z][A-Z0-9_]*[ \t]/ {
		if ($3 == "\\") pending = $2
		else if (match($0, /^#define [A-Z0-9_]+[ \t]+/)) {
			start = RLENGTH + 1; value = substr($0, start); sub(/[ \t]*\/\*.*/, "", value)
			if (value ~ /^[(U0-9]/) emit($2, start, length(value))
		}
	}
	/^[ \t]*static const (double|float|int|unsigned|size_t|uint[0-9]+_t) [a-z_]+ = / && match($0, / = [0-9][^;]*;/) {
		name = $0; sub(/ = .*/, "", name); sub(/.* /, "", name)
		emit(name, RSTART + 3, RLENGTH - 4)
	}' "$f"
done
