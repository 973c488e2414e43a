#!/bin/sh
# words.sh - words of every document (Markdown, without LICENSE), per folder and in all; fails above the limit.
# A word is what stands between blanks and has a letter or a digit, so marks of tables and lists are none.
limit=45000
files=$(git ls-files '*.md' 2> /dev/null || find . \( -name 'build*' -o -name .git \) -prune -o -name '*.md' -print | sed 's|^\./||')
# shellcheck disable=SC2086
LC_ALL=C.UTF-8 awk -v limit="$limit" '
	FNR == 1 { folder = FILENAME; if (!sub(/\/[^\/]*$/, "", folder)) folder = "."; sub(/^tests\/.*/, "tests", folder) }
	{ for (i = 1; i <= NF; i++) if ($i ~ /[^\001-\057\072-\100\133-\140\173-\177]/) { words[folder]++; all++ } }
	END {
		for (f in words) printf "%-26s %6d words\n", f, words[f] | "sort"
		close("sort")
		printf "%-26s %6d words, limit %d\n", "all", all, limit
		exit all > limit
	}' $files
