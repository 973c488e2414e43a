#!/bin/bash
# killed.sh - stands for vramcast: its sweeps are killed at random while they run, and now and then their machine loses the
# end of what they had written. $REAL is the program; each start is a line of $STARTS.
[ "$1" = sweep ] || exec "$REAL" "$@"
out=; last=
for word; do [ "$last" = -o ] && out=$word; last=$word; done
echo "start ${*: -1}" >> "$STARTS"
[ $((RANDOM % 3)) = 0 ] && exec "$REAL" "$@"
"$REAL" "$@" &
pid=$!
sleep "0.$(printf %03d $((RANDOM % 90)))"
kill -9 $pid 2> /dev/null
wait $pid 2> /dev/null && exit 0
echo killed >> "$STARTS"
if [ -n "$out" ] && [ -f "$out" ]; then
	size=$(stat -c %s "$out"); lost=$((RANDOM % 3000))
	truncate -s $((size > lost ? size - lost : 0)) "$out"
fi
# with KILL_PARENT, now and then the worker that started it goes, too
[ -n "$KILL_PARENT" ] && [ $((RANDOM % 4)) = 0 ] && echo worker >> "$STARTS" && kill -9 $PPID
kill -9 $$
