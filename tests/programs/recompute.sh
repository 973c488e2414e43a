#!/bin/bash
# recompute.sh - `fit --find checkpoint` on programs, its choice really made: VRAMCAST, PYTHON, CACHE.
#
# recompute.sh PROGRAM [ARGUMENT...] + ...: see tight.sh. Prints a line a program; fails where a choice that was promised did
# not fit, or none of the promised did.
set -u
. "$(dirname "$0")/tight.sh"
bad=0
one() { # PROGRAM ARGUMENT...
	tight "$@" || return
	"$VRAMCAST" fit --find checkpoint -g "$card" --capacity "$capacity" --json -- "$PYTHON" "$program" "${arguments[@]}" \
		> "$CACHE/$name.json" 2> "$CACHE/$name.log" < /dev/null
	python3 - "$name" "$CACHE/$name.json" << 'END' || bad=1
import json, sys
name = sys.argv[1]
try:
    card = json.load(open(sys.argv[2]))["cards"][0]
except (ValueError, KeyError):
    print(f"{name}: no answer")
    sys.exit(1)
least, none = card["least"]["used"], max(p["used"] for p in card["front"])
if none == least:
    print(f"{name}: no layer saves anything")
    sys.exit(0)
if card["unproven"] and not card["proof"]:
    print(f"{name} | not proven: {card['unproven']}")
    sys.exit(0)
at = {p["change"]: p for p in card["front"]}
for p in ("best", "sure", "uniform"):
    if card[p]:
        at[card[p]["change"]] = card[p]
proof = [p for p in card["proof"] if p["fits"]]
took = proof and at.get(proof[0]["change"])
cost = lambda p: p and (p["extra_share"] if p["extra_share"] is not None else p["layers_share"])
uniform = cost(card["uniform"])
sure = card["sure"] and card["sure"]["change"]
broken = [p for p in card["proof"] if p["change"] == sure and not p["fits"]]
error = [f"{100 * (p['peak_reserved'] / at[p['change']]['peak_reserved'] - 1):+.1f}" for p in card["proof"] if p["fits"]]
print(f"{name} | {card['layers']} layers | {100 * least / none:.0f} % at least | {len(card['proof'])} tried | "
      f"{took and took['change'].split('=')[-1] or 'none'} | +{100 * (cost(took) or 0):.1f} % | uniform "
      f"{'none fits' if uniform is None else f'+{100 * uniform:.1f} %'} | off {' '.join(error) or '-'} % | "
      f"inside {sum(p['inside'] for p in card['proof'] if p['fits'])} of {len(proof)}"
      f"{' | PROMISED AND BROKEN' if broken else ''}{' | NONE FITS' if not took else ''}")
sys.exit(1 if broken or not took else 0)
END
}
each one "$@"
exit $bad
