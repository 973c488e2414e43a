#!/bin/bash
# run_fit.sh - programs that die on a card, run by `vramcast run --fit` as they are: VRAMCAST, PYTHON, CACHE, SHARE.
#
# run_fit.sh PROGRAM [ARGUMENT...] + ...: see tight.sh. Each is dry-run on the card of that size, where it must die, and under
# `run --fit`, where it must end. VALUES=1: it is then run on the processor, with its real values, as it is and as `run --fit`
# starts it: each loss must be the same to the last bit. A line a program.
set -u
. "$(dirname "$0")/tight.sh"
bad=0 ends=0 alike=0
mkdir -p "$CACHE/nocard"
printf '#!/bin/sh\nCUDA_VISIBLE_DEVICES= exec "%s" "$@"\n' "$VRAMCAST" > "$CACHE/nocard/vramcast"
chmod +x "$CACHE/nocard/vramcast"
say() { # what was changed, in one line
	sed -n 's/^  changed: //p' "$1" | sed 's/; results stay as they are//' | tr '\n' ';' | sed 's/;$//; s/;/, /g'
}
one() { # PROGRAM ARGUMENT...
	tight "$@" || return
	local on=(-q -g "$card" --capacity "$capacity" --no-record -- "$PYTHON") log="$CACHE/$name.run" before after
	"$VRAMCAST" dryrun "${on[@]}" "$program" "${arguments[@]}" > "$log" 2>&1 < /dev/null
	before=$?
	grep -q 'OutOfMemoryError\|out of memory' "$log" || { echo "$name | does not die ($before)"; return; }
	"$VRAMCAST" run --fit -g "$card" --capacity "$capacity" -- "$VRAMCAST" dryrun "${on[@]}" "$program" "${arguments[@]}" \
		> "$log" 2>&1 < /dev/null
	after=$?
	[ $after = 0 ] && ends=$((ends + 1)) || bad=1
	local line="$name | dies | $([ $after = 0 ] && echo ends || echo "ENDS WITH $after") | $(say "$log")"
	[ $after = 0 ] || line="$line$(tail -n 1 "$log")"
	if [ "${VALUES:-}" ] && [ $after = 0 ]; then
		local cpu=("$CACHE/nocard/vramcast" dryrun -q --no-record -g "$card" -- "$PYTHON" "$here/on_cpu.py")
		"${cpu[@]}" "$program" "${arguments[@]}" > "$CACHE/$name.plain" 2>&1 < /dev/null
		"$VRAMCAST" run --fit -g "$card" --capacity "$capacity" -- "${cpu[@]}" "$program" "${arguments[@]}" \
			> "$CACHE/$name.fitted" 2> "$CACHE/$name.said" < /dev/null
		local n; n=$(grep -c '^loss' "$CACHE/$name.plain")
		if [ "$n" -gt 0 ] && cmp -s <(grep '^loss' "$CACHE/$name.plain") <(grep '^loss' "$CACHE/$name.fitted"); then
			line="$line | $n losses equal"; alike=$((alike + 1))
		else
			line="$line | LOSSES DIFFER ($n)"; bad=1
		fi
		line="$line | $(sed -n 's/^vramcast run: \(.* computed twice\)/\1/p' "$CACHE/$name.said")"
	fi
	echo "$line"
}
each one "$@"
echo "# $ends died and end under run --fit, $alike of them with equal losses"
exit $bad
