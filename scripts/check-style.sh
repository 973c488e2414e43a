#!/bin/sh
# check-style.sh - what a machine can check of the house rules: lengths, banned functions, guards.
tab=$(printf '\t')
bad=0
say() { echo "# $1"; bad=1; }
. scripts/sources.sh
files=$(sources | while read -r f; do [ -f "$f" ] && echo "$f"; done)
[ -n "$files" ] || { echo "not ok 1 - style: no files found"; exit 1; }

# shellcheck disable=SC2086
long=$(expand -t 8 $files | awk 'length($0) > 100' | head -n 5)
[ -z "$long" ] || say "lines over 100 columns (tabs as 8): $long"
# One pass over all files: a process for each file and rule would take ten times as long.
# shellcheck disable=SC2086
hits=$(awk -v call='(^|[^A-Za-z0-9_.>])' -v banned='(sprintf|strcpy|strcat|strtok|atoi|gets|alloca|setlocale|abort|rand|time|qsort)[(]' \
	-v ours='(printf|puts|putchar|exit|_exit|getenv|perror)[(]' '
	function finish() {
		if (n > 700) print file ": " n " lines (700 at most)"
		if (guard != "" && !guarded) print file ": a header begins with #pragma once"
	}
	FNR == 1 {
		finish()
		file = FILENAME; guarded = 0; guard = file
		sub(/.*\//, "", guard); sub(/\.h$/, "", guard); gsub(/-/, "_", guard)
		guard = file ~ /\.h$/ ? "VC_" toupper(guard) "_H" : ""
		if (!/SPDX-License-Identifier: Apache-2\.0/) print file ": no SPDX line"
		free = file ~ /^(tests|nullgpu|tracer)\//
		front = free || file ~ /^(vramcast\.c$|commands\/|allocator\/)/
	}
	{
		n = FNR
		if ($0 == "#pragma once" || (guard != "" && $0 == "#ifndef " guard)) guarded = 1
		if (free || !/[(]/) next
		line = $0
		sub(/\/\*.*\*\//, "", line); gsub(/"[^"]*"/, "", line); sub(/^ \*.*/, "", line)
		if (line ~ call banned && file != "common/sort.c") print file ": banned function: " FNR ":" line
		if (!front && line ~ call ours)
			print file ": only the command layer prints, exits or reads the environment: " FNR ":" line
	}
	END { finish() }' $files)
[ -z "$hits" ] || say "$hits"
hit=$(grep -nE 'TO''DO|FIX''ME|XX''X' $files | head -n 3)
[ -z "$hit" ] || say "unfinished marks: $hit"

if command -v ctags >/dev/null 2>&1; then
	over=$(printf '%s\n' $files | grep '\.c$' | ctags -L - --fields=+ne --c-kinds=f -f - 2>/dev/null |
		awk -F"$tab" '{l=0;e=0;for(i=4;i<=NF;i++){if($i~/^line:/)l=substr($i,6);if($i~/^end:/)e=substr($i,5)} if(e-l+1>60)print $1" in "$2" ("e-l+1" lines)"}' | head -n 20)
	[ -z "$over" ] || say "functions over 60 lines: $over"
else
	echo "# ctags is not here: function lengths not checked"
fi
[ $bad = 0 ] && echo "ok 1 - style: lengths, banned functions, guards" || echo "not ok 1 - style"
exit $bad
