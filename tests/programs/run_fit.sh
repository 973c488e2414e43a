#!/bin/bash
# run_fit.sh - programs that die on a card, run by `vramcast run --fit` as they are: VRAMCAST, PYTHON, CACHE, SHARE.
#
# run_fit.sh PROGRAM [ARGUMENT...] + ...: see tight.sh. Each is dry-run on the card of that size, where it must die, and under
# `run --fit`, where it must end. Then it is run on the processor, with its real values, as it is and with what `run --fit`
# changed: each loss must be the same to the last bit. A line a program.
set -u
. "$(dirname "$0")/tight.sh"
bad=0 ends=0 alike=0
PATH=$(dirname "$PYTHON"):$PATH # a dry run of a shell asks this Python for PyTorch

# What `run --fit` starts: in its rehearsals the program itself, then a dry run on the card and a run without any.
start="$CACHE/start.sh"
cat > "$start" << END
#!/bin/sh
[ -z "\$VRAMCAST_NULL_REPORT" ] || exec "\$@"
"$VRAMCAST" dryrun -q -g "$card" --capacity "\$CAPACITY" --no-record -- "\$@" || exit
CUDA_VISIBLE_DEVICES= exec "$VRAMCAST" dryrun -q --no-record -g "$card" -- "\$@"
END
chmod +x "$start"
losses() { sed -n 's/^loss //p' "$1"; }
one() { # PROGRAM ARGUMENT...
	tight "$@" || return
	local run=("$PYTHON" "$here/on_cpu.py" "$program" "${arguments[@]}") out="$CACHE/$name" code line n
	"$VRAMCAST" dryrun -q -g "$card" --capacity "$capacity" --no-record -- "${run[@]}" > "$out.dies" 2>&1 < /dev/null
	code=$?
	grep -q 'OutOfMemoryError\|out of memory' "$out.dies" || { echo "$name | does not die ($code)"; return; }
	CAPACITY=$capacity "$VRAMCAST" run --fit -g "$card" --capacity "$capacity" -- "$start" "${run[@]}" > "$out.fitted" \
		2> "$out.said" < /dev/null
	code=$?
	if [ $code != 0 ]; then
		echo "$name | dies | ENDS WITH $code | $(grep -v '^ ' "$out.said" | tail -n 1)"
		bad=1
		return
	fi
	ends=$((ends + 1))
	line="$name | dies | ends | $(sed -n 's/^  changed: //p' "$out.said" | sed 's/; results stay as they are//' | paste -sd ';')"
	CUDA_VISIBLE_DEVICES= "$VRAMCAST" dryrun -q --no-record -g "$card" -- "${run[@]}" > "$out.plain" 2>&1 < /dev/null
	n=$(losses "$out.plain" | wc -l)
	if [ "$n" -gt 0 ] && cmp -s <(losses "$out.plain") <(losses "$out.fitted"); then
		line="$line | $n losses equal"; alike=$((alike + 1))
	else
		line="$line | LOSSES DIFFER ($n)"; bad=1
	fi
	echo "$line | $(sed -n 's/^vramcast run: \(.* computed twice\)/\1/p' "$out.said")"
}
each one "$@"
echo "# $ends died and end under run --fit, $alike of them with equal losses"
exit $bad
