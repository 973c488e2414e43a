#!/bin/sh
# docs_links.sh - every document is reachable from the README, every link leads somewhere, and every file
# that a document names exists. One process reads all documents: one for each link would take as long as a compiler.
. tests/support/tap.sh
all=$(find README.md CONTRIBUTING.md CHANGELOG.md docs traces tests -name '*.md' | sort)
find . \( -name .git -o -name 'build*' -type d \) -prune -o -print | sed 's#^\./##' > "$TMP/there"

# What stands in the documents, a line each: LINK DOCUMENT TARGET (as a path from the top), ANCHOR DOCUMENT FILE HEADING
# WRITTEN, HEADING FILE NAME, CODE DOCUMENT WORD, OPTION DOCUMENT --NAME, COMMAND DOCUMENT NAME.
# shellcheck disable=SC2086
LC_ALL=C awk '
	function path(p) { # without . and ..
		while (sub(/\/\.\//, "/", p)) ;
		while (sub(/^\.\//, "", p)) ;
		while (match(p, /[^\/]+\/\.\.\//)) p = substr(p, 1, RSTART - 1) substr(p, RSTART + RLENGTH)
		return p
	}
	function links(s, anchors, l, f) {
		while (match(s, /\]\([^)]*\)/)) {
			l = substr(s, RSTART + 2, RLENGTH - 3)
			s = substr(s, RSTART + RLENGTH)
			if (l ~ /^https*:/ || (anchors && l !~ /#/)) continue
			f = l; sub(/#.*/, "", f)
			if (anchors) { sub(/^[^#]*#/, "", l); print "ANCHOR", FILENAME, f == "" ? FILENAME : path(dir f), l }
			else if (f != "") print "LINK", FILENAME, path(dir f)
		}
	}
	function words(c, n, w, i) {
		n = split(c, w, / /)
		for (i = 1; i <= n; i++) {
			sub(/:[0-9]*$/, "", w[i]); sub(/[,;]$/, "", w[i]); sub(/@[a-z_]*=[0-9]*$/, "", w[i])
			if (w[i] != "" && !((FILENAME, w[i]) in word)) { word[FILENAME, w[i]]; print "CODE", FILENAME, w[i] }
		}
	}
	function options(c) {
		if (c ~ /^vramcast /) { match(c, /^vramcast [A-Za-z]*/); print "COMMAND", FILENAME, substr(c, 10, RLENGTH - 9) }
		if (c ~ /^([A-Za-z0-9_\/-]+\.py|nvidia-smi) /) return # of other programs
		for (c = " " c; match(c, /[^a-z-]--[a-z][a-z-]+/); c = substr(c, RSTART + RLENGTH))
			print "OPTION", FILENAME, substr(c, RSTART + 1, RLENGTH - 1)
	}
	FNR == 1 { code = 0; dir = FILENAME; if (!sub(/[^\/]*$/, "", dir)) dir = "" }
	/^##* */ { h = $0; sub(/^##* */, "", h); h = tolower(h); gsub(/ /, "-", h); gsub(/[^a-z0-9_-]/, "", h); print "HEADING", FILENAME, h }
	/^ *```/ { code = !code; next }
	code { next }
	{
		links($0, 1)
		text = ""
		for (s = $0; match(s, /`[^`]*`/);) {
			text = text substr(s, 1, RSTART - 1)
			c = substr(s, RSTART + 1, RLENGTH - 2)
			s = substr(s, RSTART + RLENGTH)
			words(c); options(c)
		}
		links(text s, 0)
	}' $all > "$TMP/said"

awk '
	FILENAME ~ /there$/ { there[$0]; sub(/\/$/, ""); next }
	$1 == "LINK" { to[$2] = to[$2] " " $3 }
	END {
		todo[1] = "README.md"; n = 1; seen["README.md"]
		for (i = 1; i <= n; i++) {
			print "reached", todo[i]
			k = split(to[todo[i]], l, " ")
			for (j = 1; j <= k; j++) {
				t = l[j]; sub(/\/$/, "", t)
				if (!(t in there)) print "broken", todo[i] ": " l[j]
				else if (t ~ /\.md$/ && !(t in seen)) { seen[t]; todo[++n] = t }
			}
		}
	}' "$TMP/there" "$TMP/said" > "$TMP/links"
broken=$(sed -n 's/^broken //p' "$TMP/links")
[ -z "$broken" ] && grep -q . "$TMP/links" && pass "every link leads to a file" || fail "every link leads to a file" "$broken"
lost=$(printf '%s\n' $all | grep -v '^tests/' | sed 's/^/reached /' | grep -vxF -f "$TMP/links")
[ -z "$lost" ] && pass "every document is reachable from the README" || fail "every document is reachable from the README" "$lost"

awk '$1 == "HEADING" { there[$2 " " $3] } $1 == "ANCHOR" { at[++n] = $3 " " $4; doc[n] = $2 }
	END { for (i = 1; i <= n; i++) if (!(at[i] in there)) print doc[i] ": " at[i] }' "$TMP/said" > "$TMP/anchors"
[ -s "$TMP/anchors" ] && fail "every link to a heading finds it" "$(cat "$TMP/anchors")" || pass "every link to a heading finds it"

# `simulator/replay/engine.c` must exist, and so must a source file that is named without its folder (mine.c,
# mine.h and the like are a reader's own).
sed -n 's/^CODE //p' "$TMP/said" | while read -r doc p; do
	case $doc in CHANGELOG.md) continue ;; esac
	case $p in
	mine.*|*/mine.*|*_mine.*|*/mine/|*NAME*|*MINE*|*…*) ;;
	vramcast.c) ;;
	common/*|simulator/*|tracer/*|allocator/*|nullgpu/*|visualize/*|commands/*|scripts/*|tests/*|traces/*|docs/*|python/*|examples/*)
		for f in $p; do [ -e "$f" ] || echo "$doc: $p"; done ;;
	*/*) ;;
	*.c|*.h|*.def)
		case $p in *[!a-z0-9_.]*) continue ;; esac
		echo "$doc: $p" >> "$TMP/bare" ;;
	esac
done > "$TMP/missing"
grep -E '^(common|simulator|tracer|allocator|nullgpu|visualize|commands|tests)/' "$TMP/there" | sed 's#.*/##' > "$TMP/names"
awk 'FILENAME ~ /names$/ { there[$0]; next } !($2 in there)' "$TMP/names" "$TMP/bare" >> "$TMP/missing"
[ -s "$TMP/missing" ] && fail "every file that a document names exists" "$(cat "$TMP/missing")" || pass "every file that a document names exists"
# Code and scripts refer to documents by name.
grep -rnoE 'docs/[a-z/-]+\.md' --include='*.[ch]' --include='*.def' --include='*.sh' --include='*.mk' --include='*.py' . 2> /dev/null |
	grep -v '/build' | while IFS=: read -r f line doc; do [ -f "$doc" ] || echo "$f:$line: $doc"; done > "$TMP/named"
[ -s "$TMP/named" ] && fail "every document that code names exists" "$(cat "$TMP/named")" || pass "every document that code names exists"

# The rooms: none is too large, and each has a row and a page.
check "no room holds more than a quarter of the product" scripts/rooms.sh -c
rows=$(sed -n 's/^\(| \[[^]]*\]\).*/\1/p' docs/architecture.md)
scripts/rooms.sh | sed -n 's/ .*//p' | while read -r room; do
	case $room in all|vramcast.c|visualize/sinks|python|python/vramcast) continue ;; esac
	case $rows in *"| [$room/]"*) [ -f "docs/rooms/${room##*/}.md" ] || echo "$room" ;; *) echo "$room" ;; esac
done > "$TMP/rooms"
[ -s "$TMP/rooms" ] && fail "every room has its page" "$(cat "$TMP/rooms")" || pass "every room has its page"
# Options and commands that stand in a sentence (`--strict`, `vramcast recover run.vct`).
commands=$("$VRAMCAST" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
{ for c in $commands; do "$VRAMCAST" help "$c"; done; echo " --help --version"; } | grep -oE -- '--[a-z][a-z-]+' | sed 's/^/OPTION /' > "$TMP/known"
printf 'COMMAND %s\n' COMMAND X manpage $commands >> "$TMP/known"
awk 'FILENAME ~ /known$/ { there[$0]; next }
	($1 == "OPTION" || $1 == "COMMAND") && $2 ~ /^(README|CONTRIBUTING|docs\/.*)\.md$/ && !(($1 " " $3) in there) && !seen[$0]++ {
		print $2 ": " ($1 == "COMMAND" ? "vramcast " : "") $3 }' "$TMP/known" "$TMP/said" > "$TMP/strange"
[ -s "$TMP/strange" ] && fail "every option and command that a document names exists" "$(cat "$TMP/strange")" ||
	pass "every option and command that a document names exists"
finish
