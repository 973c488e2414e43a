#!/bin/sh
# run-tests.sh TEST... - run test programs that print TAP; the last line is "N passed, N failed".
# A program that exits non-zero without a "not ok" line, or prints no TAP at all, counts as failed.
# Each gets a private, empty TMP folder. Only failures and skips are shown; V=1 shows everything.
export CMOCKA_MESSAGE_OUTPUT=TAP VRAMCAST BUILD
log=$(mktemp); sum=$(mktemp); trap 'rm -rf "$log" "$sum" "$TMP"' EXIT
for t in "$@"; do
	TMP=$(mktemp -d); export TMP
	case $t in */*) run=$t ;; *) run=./$t ;; esac
	$run ${F:+"$F"} > "$log" 2>&1 < /dev/null; rc=$?
	rm -rf "$TMP"
	awk -v t="$t" -v rc="$rc" -v v="$V" '
		/^ok /     { if (/# [Ss][Kk][Ii][Pp]/) { s++; print "skip " t ": " $0 } else p++; seen = 1 }
		/^not ok / { f++; seen = 1; show = 1 }
		{ line[NR] = $0 }
		END {
			if (!seen) { f++; show = 1; line[++NR] = "not ok - printed no test result (exit " rc ")" }
			else if (rc && !f) { f++; show = 1; line[++NR] = "not ok - exit code " rc }
			if (show || v == 1) { print "---- " t; for (i = 1; i <= NR; i++) print line[i] }
			print "SUM " p + 0, f + 0, s + 0
		}' "$log" | tee -a "$sum" | grep -v '^SUM '
done
awk '/^SUM /{p+=$2; f+=$3; s+=$4} END{printf "%d passed, %d failed", p, f; if (s) printf ", %d skipped", s; print ""; exit f > 0 || p == 0}' "$sum"
