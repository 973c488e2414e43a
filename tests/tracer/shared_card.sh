#!/bin/sh
# shared_card.sh - two processes that ran at once on one card: what they held together, drawn and said, against their events.
. tests/tracer/lib.sh
own python3 || { skip "processes that share a card" "no python3"; finish; }
LD_LIBRARY_PATH="$bin" run record -q -o "$TMP/p.vct" -- sh -c "'$bin/steps' fixed 1500 & '$bin/steps' lengths 1500 & wait"
set -- "$TMP"/p*.vct
equal "two processes, two recordings" "$rc $#" "0 2"
for t in "$@"; do { field "$t" start_unix_ns; "$VRAMCAST" dump "$t"; } > "$t.txt"; done
"$VRAMCAST" plot -q -t ranks "$@" --capacity 9MiB -o "$TMP/r.svg"
"$VRAMCAST" report -q "$@" --capacity 9MiB --no-advice -o "$TMP/r.html"
cat > "$TMP/walk.py" <<'END'
import re, sys
events = []
for k, path in enumerate(sys.argv[1:3]):
    lines = open(path + ".txt").read().split("\n")
    for l in lines[1:]:
        m = re.match(r"\d+ (\d+) (alloc|free) .*id=(\d+)(?: size=(\d+))?", l)
        if not m:
            continue
        events.append((int(lines[0]) + int(m[1]), k, int(m[4]) if m[2] == "alloc" else 0, m[3]))
both, most, now = [{}, {}], 0, 0
for ns, k, size, block in sorted(events, key=lambda e: e[0]):
    now += size - both[k].get(block, 0)
    both[k][block] = size
    most = max(most, now)
for path in sys.argv[3:]:
    text = re.sub(r"<[^>]*>", "\n", open(path, encoding="utf-8").read())
    said = set(re.findall(r"2 processes share a card: together at most ([\d.]+) of 9 MiB, at [\d.]+ m?s: more than there is", text))
    assert len(said) == 1, (path, said)
    said = float(said.pop()) * 2 ** 20
    assert most * 0.99 <= said <= most * 1.2, (path, said, most)  # columns hold the most of some hundred events
END
check "they hold together what their events say" python3 "$TMP/walk.py" "$@" "$TMP/r.svg" "$TMP/r.html"
"$VRAMCAST" plot -q -t ranks "$1" "$1" -o "$TMP/one.svg"
check "one recording twice is no second process" sh -c '! grep -q "share a card" "$1"' sh "$TMP/one.svg"
finish
