# tight.sh - programs on a card that is too small for them: VRAMCAST, PYTHON, CACHE; sourced.
#
# Words of a command line are programs, separated by "+": PROGRAM [ARGUMENT...]. PROGRAM is one of this folder or a path
# without ".py" (../time/steps --plain --steps 3 --change base --program resnet50).
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$CACHE" || exit 1
card=${CARD:-a100-80g-sxm}

# Sets program, name and arguments of one; capacity: as much as lies SHARE percent (50) of the way from what it needs with all
# layers computed twice to what it needs as it is. False, with a line: it could not be found.
tight() { # PROGRAM [ARGUMENT...]
	program=$here/$1.py; shift
	arguments=("$@")
	name=$(basename "$program" .py); [ "$name" != steps ] || name=${*: -1}
	local file="$CACHE/$name.vct" front="$CACHE/$name.front" log="$CACHE/$name.log"
	[ -s "$file" ] || "$VRAMCAST" dryrun -q -g "$card" --stacks py -o "$file" -- "$PYTHON" "$program" "$@" > "$log" 2>&1 \
		< /dev/null || { echo "$name: not recorded"; return 1; }
	[ -s "$front" ] || "$VRAMCAST" fit --find checkpoint -g "$card" --json "$file" > "$front" 2> "$log"
	capacity=$(python3 - "$front" "${SHARE:-50}" << 'END2'
import json, sys
try:
    card = json.load(open(sys.argv[1]))["cards"][0]
except (ValueError, KeyError):
    sys.exit(0)
least, none = card["least"]["used"], max(p["used"] for p in card["front"])
print(least + (none - least) * int(sys.argv[2]) // 100)
END2
)
	[ "$capacity" ] || { echo "$name: $(tail -n 1 "$log")"; return 1; }
}

each() { # FUNCTION WORD...: the function with the words of each program
	local do=$1 line=() w; shift
	for w in "$@" +; do
		if [ "$w" = + ]; then [ ${#line[@]} = 0 ] || "$do" "${line[@]}"; line=(); else line+=("$w"); fi
	done
}
