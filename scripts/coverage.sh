#!/bin/sh
# coverage.sh [BUILD] - lines of each room that tests ran, from what make COV=1 check left in build-cov. gcov comes with gcc.
b=${1:-build-cov}
GCOV=${GCOV:-gcov}
command -v "$GCOV" > /dev/null || { echo "coverage: $GCOV is not here"; exit 1; }
find "$b" -name '*.gcda' | grep -q . || { echo "coverage: no run left anything in $b (make COV=1 check)"; exit 1; }
tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
find "$b" -name '*.gcno' ! -path "$b/tests/*" | while read -r note; do
	"$GCOV" -n "$note" 2> /dev/null
done | awk '
	/^File / { f = $2; gsub(/\047/, "", f) }
	/^Lines executed:/ && f != "" {
		split($0, p, /[:% ]+/) # Lines executed:97.30% of 37
		if (f ~ /\.c$/ && f !~ /^\//) {
			room = f; sub(/\/[^\/]*$/, "", room); if (room == f) room = "."
			if (room ~ /^(visualize|nullgpu|tracer|commands|common)\//) sub(/\/.*/, "", room)
			got = p[3] / 100 * p[5]; if (got > best[f] || !(f in lines)) best[f] = got; lines[f] = p[5]; of[f] = room
		}
		f = ""
	}
	END {
		for (f in lines) { n[of[f]] += lines[f]; ran[of[f]] += best[f]; files[of[f]]++; all += lines[f]; run += best[f] }
		for (r in n) printf "%s %d %.0f %.1f %d\n", r, files[r], n[r], 100 * ran[r] / n[r], 1
		printf "~total %d %.0f %.1f\n", 0, all, all ? 100 * run / all : 0
	}' | LC_ALL=C sort | awk '
	BEGIN { print "| room | files | lines | run by tests |"; print "|---|---|---|---|" }
	$1 == "~total" { printf "| all |  | %d | %.1f %% |\n", $3, $4; next }
	{ printf "| %s | %d | %d | %.1f %% |\n", $1, $2, $3, $4 }'
