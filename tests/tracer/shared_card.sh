#!/bin/sh
# shared_card.sh - two processes that ran at once on one card: what they held together, drawn and said, against their events.
. tests/tracer/lib.sh
own python3 || { skip "processes that share a card" "no python3"; finish; }
LD_LIBRARY_PATH="$bin" run record -q -o "$TMP/p.vct" -- sh -c "'$bin/steps' fixed 500 & '$bin/steps' lengths 500 & wait"
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
both, most, now, peak = [{}, {}], 0, [0, 0], [0, 0]
for ns, k, size, block in sorted(events, key=lambda e: e[0]):
    now[k] += size - both[k].get(block, 0)
    both[k][block] = size
    most, peak[k] = max(most, sum(now)), max(peak[k], now[k])
spans = [(min(e[0] for e in events if e[1] == k), max(e[0] for e in events if e[1] == k)) for k in (0, 1)]
met = spans[0][0] <= spans[1][1] and spans[1][0] <= spans[0][1]  # on a busy machine one may be over before the other begins
for path in sys.argv[3:]:
    text = re.sub(r"<[^>]*>", "\n", open(path, encoding="utf-8").read())
    said = set(re.findall(r"2 processes share a card: together at most ([\d.]+) of [\d.]+ MiB", text))
    assert len(said) == met, (path, said)
    if met:  # what a column holds is the most of some hundred events
        said = float(said.pop()) * 2 ** 20
        assert most * 0.99 <= said <= sum(peak) * 1.01, (path, said, most, peak)
        assert ("more than there is" in text) == (said > 9 * 2 ** 20), (path, said)
END
check "they hold together what their events say" python3 "$TMP/walk.py" "$@" "$TMP/r.svg" "$TMP/r.html"
apart=$(($(field "$1" start_unix_ns) - $(field "$2" start_unix_ns)))
first() { "$VRAMCAST" dump "$1" | awk 'NR == 1 { print $2; exit }'; }
apart=$((apart + $(first "$1") - $(first "$2")))
equal "in the page they stand on one clock" "$(sed -n 's/^clock //p' "$TMP/r.html" | tr '\n' ' ')" "$(grep -q 'share a card' "$TMP/r.html" && echo $((apart > 0 ? apart : 0)) $((apart < 0 ? -apart : 0)) || echo 0 0) "
"$VRAMCAST" plot -q -t ranks "$1" "$1" -o "$TMP/one.svg"
check "one recording twice is no second process" sh -c '! grep -q "share a card" "$1"' sh "$TMP/one.svg"
finish
