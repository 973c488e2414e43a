#!/bin/sh
# run-tests.sh TEST... - run test programs that print TAP; the last line is "N passed, N failed".
# A program that exits non-zero without a "not ok" line, prints no TAP at all, or calls what does not exist, counts as
# failed.
# Each gets a private, empty TMP folder. JOBS of them run at a time, two more than there are cores, because some of them
# wait; what they say comes in their order.
# Those named in tests/longest come first, so that no core is idle at the end. TIMES=FILE: seconds of processor time and
# name of each are added to that file (sort -rn makes tests/longest of it).
# Only failures and skips are shown; V=1 shows everything.
export CMOCKA_MESSAGE_OUTPUT=TAP VRAMCAST BUILD V F
if [ "$1" = --one ]; then # --one LOG TEST: what it said to LOG, what to show of it and its count to LOG.out
	log=$2; t=$3
	TMP=$(mktemp -d); export TMP; trap 'rm -rf "$TMP"' EXIT
	case $t in */*) run=$t ;; *) run=./$t ;; esac
	$run ${F:+"$F"} > "$log" 2>&1 < /dev/null; rc=$?
	if [ -n "$TIMES" ]; then # of the children: the second line
		times > "$log.times"
		awk -v t="$t" 'NR == 2 { split($1, u, /[ms]/); split($2, s, /[ms]/)
			printf "%.2f %s\n", (u[1] + s[1]) * 60 + u[2] + s[2], t }' "$log.times" >> "$TIMES"
	fi
	awk -v t="$t" -v rc="$rc" -v v="$V" '
		/^ok /     { if (/# [Ss][Kk][Ii][Pp]/) { s++; print "skip " t ": " $0 } else p++; seen = 1 }
		/^not ok / { f++; seen = 1; show = 1 }
		# A helper that does not exist checks nothing.
		/^[^ ]*\.sh: [0-9]+: .*: not found$/ { f++; show = 1; $0 = "not ok - " $0 }
		{ line[NR] = $0 }
		END {
			if (!seen) { f++; show = 1; line[++NR] = "not ok - printed no test result (exit " rc ")" }
			else if (rc && !f) { f++; show = 1; line[++NR] = "not ok - exit code " rc }
			if (show || v == 1) { print "---- " t; for (i = 1; i <= NR; i++) print line[i] }
			print "SUM " p + 0, f + 0, s + 0
		}' "$log" > "$log.part"
	mv "$log.part" "$log.out"
	exit 0
fi
logs=$(mktemp -d); trap 'rm -rf "$logs"' EXIT
# Half of the processes of a check are Pythons, and one with many packages, or a script that leads to it (pyenv's), takes
# three times as long to start as a bare one. Tests get a bare one with pip; $PACKED has the packages, for what looks for them.
if [ -z "$PACKED" ] && PACKED=$(python3 -c 'import sys; print(sys.executable)' 2> /dev/null); then
	if "$PACKED" -m venv --without-pip "$logs/python" > /dev/null 2>&1; then
		pip=$("$PACKED" -c 'import pip; print(pip.__path__[0])' 2> /dev/null) &&
			for site in "$logs"/python/lib/*/site-packages; do ln -s "$pip" "$pip"-*-info "$site"; done
		PATH=$logs/python/bin:$PATH
	else
		PATH=${PACKED%/*}:$PATH
	fi
	export PACKED PATH
fi
i=0; for t in "$@"; do i=$((i + 1)); printf '%s\n%s\n' "$logs/$i" "$t"; done > "$logs/list"
paste -s -d ' \n' "$logs/list" | awk -v longest=tests/longest '
	BEGIN { while ((getline t < longest) > 0) rank[t] = ++n }
	{ t = $2; sub(/^build[^\/]*\//, "", t); if ($2 ~ /^build[^\/]*-address/) t = "sanitized/" t
	  print (t in rank ? rank[t] : 9999), NR, $0 }' | sort -n -k 1,1 -k 2,2 | cut -d ' ' -f 3- |
	xargs -r -n 2 -P "${JOBS:-$(($(nproc 2> /dev/null || echo 2) + 2))}" "$0" --one &
trap 'kill $!; exit 130' INT TERM
i=0
while [ $i -lt $# ]; do
	i=$((i + 1))
	while [ ! -e "$logs/$i.out" ] && kill -0 $! 2> /dev/null; do sleep 0.1; done
	[ -e "$logs/$i.out" ] && grep -v '^SUM ' "$logs/$i.out"
done
wait
cat "$logs"/*.out 2> /dev/null | awk '/^SUM /{p+=$2; f+=$3; s+=$4; n++} END {
	if (n < '$#') { f += '$#' - n; print "---- " '$#' - n " tests did not run to their end" }
	printf "%d passed, %d failed", p, f; if (s) printf ", %d skipped", s; print ""; exit f > 0 || p == 0 }'
