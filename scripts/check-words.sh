#!/bin/sh
# check-words.sh - documents, what a user reads, and names in the code use the field's words: none of scripts/words.txt.
# Documents have no more words than words.sh allows.
# scripts/words-allowed.txt holds what stands in the code until somebody renames it: a file and a word on a line, or a file
# and *, or a folder/*. -a prints that list as it would have to be today.
words=scripts/words.txt; allowed=scripts/words-allowed.txt
files=$(git ls-files '*.md' '*.c' '*.h' '*.def' '*.py' 2> /dev/null)
[ -n "$files" ] || files=$(find . \( -name 'build*' -o -name .git \) -prune -o -name '*.md' -print -o -name '*.[ch]' -print -o \
	-name '*.def' -print -o -name '*.py' -print | sed 's|^\./||')
hits=$(printf '%s\n' $files | grep -vE '^(tests/.*\.(c|h|def|py)|scripts/.*|LICENSE)$' | LC_ALL=C.UTF-8 xargs awk -v words="$words" '
	BEGIN {
		FS = "\t"
		while ((getline line < words) > 0) {
			if (line ~ /^#/ || split(line, w, "\t") != 3) continue
			n++; where[n] = w[1]; pattern[n] = "(^|[^a-z])(" w[2] ")([^a-z]|$)"; say[n] = w[3]
			text = text (text == "" ? "" : "|") w[2]; if (w[1] == "all") code = code (code == "" ? "" : "|") w[2]
		}
		any["text"] = "(^|[^a-z])(" text ")([^a-z]|$)"; any["code"] = "(^|[^a-z])(" code ")([^a-z]|$)"
		if (!n) { print "no words in " words; exit 1 }
	}
	function look(s, scope, i, w) {
		s = tolower(s)
		if (s !~ any[scope]) return
		for (i = 1; i <= n; i++) {
			if ((scope == "code" && where[i] != "all") || !match(s, pattern[i])) continue
			w = substr(s, RSTART, RLENGTH); sub(/^[^a-z0-9]/, "", w); sub(/[^a-z0-9]$/, "", w)
			print FILENAME ":" FNR "\t" w "\t" say[i] "\t" scope
		}
	}
	# Names of folders, files, targets and variables stay as they are.
	function bare(s) { gsub(/[A-Za-z0-9_.*-]*\/[A-Za-z0-9_.*\/-]*/, " ", s); gsub(/(make )?(check|calibration)-[a-z-]+/, " ", s); gsub(/[A-Z_]+=/, " ", s); return s }
	FNR == 1 { fence = 0; md = FILENAME ~ /\.md$/ }
	md {
		if (/^ *```/) { fence = !fence; next }
		if (fence) next
		s = $0; gsub(/`[^`]*`/, " ", s); gsub(/\]\([^)]*\)/, "]", s); look(bare(s), "text"); next
	}
	/^#include/ { next }
	{
		s = $0
		while (match(s, /"([^"\\]|\\.)*"/)) {
			string = substr(s, RSTART + 1, RLENGTH - 2)
			s = substr(s, 1, RSTART - 1) " " substr(s, RSTART + RLENGTH)
			look(bare(string), "text")
		}
		gsub(/_/, " ", s); look(bare(s), "code")
	}')
if [ "$1" = -a ]; then
	printf '%s\n' "$hits" | awk -F '\t' '$4 == "code" { sub(/:.*/, "", $1); print $1 " " $2 }' | sort -u
	exit 0
fi
[ -n "$hits" ] && hits=$(printf '%s\n' "$hits" | awk -F '\t' -v allowed="$allowed" '
	BEGIN { while ((getline line < allowed) > 0) ok[line] }
	{ file = $1; sub(/:.*/, "", file); folder = file; sub(/[^\/]*$/, "*", folder); if (!((file " *") in ok) && !(folder in ok) && ($4 != "code" || !((file " " $2) in ok))) print $1 ": \"" $2 "\": say " $3 }')
bad=0
if [ -z "$hits" ]; then echo "ok 1 - words: documents, messages and names use the field's words"
else printf '%s\n' "$hits" | sed 's/^/# /'; echo "not ok 1 - words"; bad=1; fi
count=$(scripts/words.sh) && echo "ok 2 - words: not too many" || { printf '%s\n' "$count" | sed 's/^/# /'; echo "not ok 2 - words"; bad=1; }
exit $bad
