#!/bin/sh
# check-style.sh - what a machine can check of the house rules: lengths, banned functions, guards.
tab=$(printf '\t')
bad=0
say() { echo "# $1"; bad=1; }
. scripts/sources.sh
files=$(sources | while read -r f; do [ -f "$f" ] && echo "$f"; done)
[ -n "$files" ] || { echo "not ok 1 - style: no files found"; exit 1; }

for f in $files; do
	n=$(wc -l < "$f")
	[ "$n" -le 700 ] || say "$f: $n lines (700 at most)"
	head -n 1 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || say "$f: no SPDX line"
	case $f in *.h)
		g=VC_$(basename "$f" .h | tr 'a-z-' 'A-Z_')_H
		grep -q "^#ifndef $g\$" "$f" || say "$f: guard must be $g" ;;
	esac
done
# shellcheck disable=SC2086
long=$(expand -t 8 $files | awk 'length($0) > 100' | head -n 5)
[ -z "$long" ] || say "lines over 100 columns (tabs as 8): $long"
banned='sprintf|strcpy|strcat|strtok|atoi|gets|alloca|setlocale|abort|rand|time'
for f in $files; do
	case $f in tests/*|nullgpu/*|tracer/*) continue ;; esac
	hit=$(sed 's|/\*.*\*/||; s|"[^"]*"||g; s|^ \*.*||' "$f" | grep -nE "(^|[^A-Za-z0-9_.>])($banned)\(" | head -n 3)
	[ -z "$hit" ] || say "$f: banned function: $hit"
	case $f in vramcast.c|commands/*|allocator/*) continue ;; esac
	hit=$(sed 's|/\*.*\*/||; s|"[^"]*"||g; s|^ \*.*||' "$f" | grep -nE "(^|[^A-Za-z0-9_.>])(printf|puts|putchar|exit|_exit|getenv|perror)\(" | head -n 3)
	[ -z "$hit" ] || say "$f: only the command layer prints, exits or reads the environment: $hit"
done
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
