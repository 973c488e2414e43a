#!/bin/sh
# fidelity.sh FILE... - a markdown table: does the model reproduce each recording, and what would a
# cold start have said? "cold" is an empty model plus the bytes that were reserved before the recording.
v=${VRAMCAST:-build/vramcast}
number() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" | head -n 1; }
echo "| recording | torch | events | segments recorded / simulated | exact | reserved: recorded | warm start | cold start | error of cold |"
echo "|---|---|---|---|---|---|---|---|---|"
for f in "$@"; do
	i=$("$v" info --json "$f") || continue
	name=$(basename "$f" | sed 's/+.*__/ … /')
	truth=$(printf '%s\n' "$i" | number peak_reserved)
	before=$(printf '%s\n' "$i" | number start_reserved)
	[ "$(printf '%s\n' "$i" | number allocs)" -gt 0 ] || {
		echo "| $name | | | | no requests in it, only the heap at one moment | $((truth >> 20)) MiB | | | |"; continue; }
	warm=$("$v" sim --json --no-verify "$f" | number peak_reserved)
	cold=$("$v" sim --json --no-verify --start cold "$f" | number peak_reserved)
	printf '%s\n' "$i" | awk -v name="$name" -v truth="$truth" -v warm="$warm" -v cold="$((cold + before))" '
		function get(l) { sub(/^[^:]*: /, "", l); gsub(/[",]/, "", l); return l }
		/"torch":/ && !t { t = get($0) } /"events":/ && !e { e = get($0) }
		/"exact":/ { x = get($0) } /"segments_recorded":/ { r = get($0) } /"segments_simulated":/ { s = get($0) }
		END { printf "| %s | %s | %s | %s / %s | %s | %.0f MiB | %.0f MiB | %.0f MiB | %+.2f %% |\n", name, t, e, r, s,
			x == "true" ? "yes" : "NO", truth / 2^20, warm / 2^20, cold / 2^20, (cold - truth) / truth * 100 }'
done
