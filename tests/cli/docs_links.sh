#!/bin/sh
# docs_links.sh - every document is reachable from the README, every link leads somewhere, and every file
# that a document names exists.
. tests/support/tap.sh
all=$(find README.md CONTRIBUTING.md CHANGELOG.md docs traces tests -name '*.md' | sort)
# The targets of relative links of a document, as paths from the top.
links() {
	case $1 in */*) dir=${1%/*} ;; *) dir=. ;; esac
	awk '/^ *```/ { code = !code } !code { gsub(/`[^`]*`/, ""); print }' "$1" | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//; s/#.*//' | grep -v '^$\|^https*:' |
	while read -r l; do printf '%s/%s\n' "$dir" "$l"; done | sed -E ':a; s#(^|/)\./#\1#; ta; :b; s#[^/]+/\.\./##; tb'
}

todo=README.md; reached=
while [ -n "$todo" ]; do
	set -- $todo; doc=$1; shift; todo=$*
	case " $reached " in *" $doc "*) continue ;; esac
	reached="$reached $doc"
	for l in $(links "$doc"); do
		[ -e "$l" ] || broken="$broken
$doc: $l"
		case $l in *.md) [ -f "$l" ] && todo="$todo $l" ;; esac
	done
done
[ -z "$broken" ] && pass "every link leads to a file" || fail "every link leads to a file" "$broken"
for doc in README.md CONTRIBUTING.md CHANGELOG.md traces/README.md $(find docs -name '*.md'); do
	case " $reached " in *" $doc "*) ;; *) lost="$lost $doc" ;; esac
done
[ -z "$lost" ] && pass "every document is reachable from the README" || fail "every document is reachable from the README" "$lost"

# Headings that links point to.
for doc in $all; do
	awk '/^ *```/ { code = !code } !code' "$doc" | grep -o '](\([^)]*#[^)]*\))' | sed 's/^](//; s/)$//' | grep -v '^https*:' | while IFS='#' read -r f h; do
		case $doc in */*) dir=${doc%/*} ;; *) dir=. ;; esac
		f=${f:+$dir/$f}; f=${f:-$doc}
		# The headings of a document, as links name them, are written down once.
		made=$TMP/headings$(printf %s "$f" | tr / _)
		[ -e "$made" ] || sed -n 's/^##* *//p' "$f" 2> /dev/null | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-' > "$made"
		grep -qx -- "$h" "$made" || echo "$doc: #$h"
	done
done > "$TMP/anchors"
[ -s "$TMP/anchors" ] && fail "every link to a heading finds it" "$(cat "$TMP/anchors")" || pass "every link to a heading finds it"

# `simulator/replay/engine.c` must exist, and so must a source file that is named without its folder (mine.c,
# mine.h and the like are a reader's own).
find common simulator tracer allocator nullgpu visualize commands tests | sed 's#.*/##' | sort -u > "$TMP/names"
for doc in $all; do
	case $doc in CHANGELOG.md) continue ;; esac
	awk '/^ *```/ { code = !code; next } !code' "$doc" | grep -o '`[^`]*`' | tr -d '`' | tr ' ' '\n' | sed 's/:[0-9]*$//; s/[,;]$//; s/@[a-z_]*=[0-9]*$//' | sort -u | while read -r p; do
		case $p in
		mine.*|*/mine.*|*_mine.*|*/mine/|*NAME*|*MINE*|*…*) ;;
		vramcast.c) ;;
		common/*|simulator/*|tracer/*|allocator/*|nullgpu/*|visualize/*|commands/*|scripts/*|tests/*|traces/*|docs/*|python/*|examples/*)
			for f in $p; do [ -e "$f" ] || echo "$doc: $p"; done ;;
		*/*) ;;
		*.c|*.h|*.def)
			case $p in *[!a-z0-9_.]*) continue ;; esac
			grep -qxF "$p" "$TMP/names" || echo "$doc: $p" ;;
		esac
	done
done > "$TMP/missing"
[ -s "$TMP/missing" ] && fail "every file that a document names exists" "$(cat "$TMP/missing")" || pass "every file that a document names exists"
# Code and scripts refer to documents by name.
grep -rnoE 'docs/[a-z/-]+\.md' --include='*.[ch]' --include='*.def' --include='*.sh' --include='*.mk' --include='*.py' . 2> /dev/null |
	grep -v '/build' | while IFS=: read -r f line doc; do [ -f "$doc" ] || echo "$f:$line: $doc"; done > "$TMP/named"
[ -s "$TMP/named" ] && fail "every document that code names exists" "$(cat "$TMP/named")" || pass "every document that code names exists"

# The rooms: none is too large, and each has a row and a page.
check "no room holds more than a quarter of the product" scripts/rooms.sh -c
scripts/rooms.sh | sed -n 's/ .*//p' | while read -r room; do
	case $room in all|vramcast.c|visualize/sinks|python|python/vramcast) continue ;; esac
	grep -q "^| \[$room/\]" docs/architecture.md && [ -f "docs/rooms/${room##*/}.md" ] || echo "$room"
done > "$TMP/rooms"
[ -s "$TMP/rooms" ] && fail "every room has its page" "$(cat "$TMP/rooms")" || pass "every room has its page"
# Options and commands that stand in a sentence (`--strict`, `vramcast recover run.vct`).
commands=$("$VRAMCAST" help | sed -n 's/^  \([a-z]*\) .*/\1/p')
{ for c in $commands; do "$VRAMCAST" help "$c"; done; echo " --help --version"; } | grep -oE -- '--[a-z][a-z-]+' | sort -u > "$TMP/options"
{ printf 'COMMAND\nmanpage\n%s\n' "$commands"; } > "$TMP/commands"
for doc in README.md CONTRIBUTING.md $(find docs -name '*.md'); do
	awk '/^ *```/ { code = !code; next } !code' "$doc" | grep -o '`[^`]*`' > "$TMP/inline"
	# those of other programs begin with a script or with nvidia-smi
	grep -vE '^`([A-Za-z0-9_/-]+\.py|nvidia-smi) ' "$TMP/inline" | grep -oE -- '(^|[^a-z-])--[a-z][a-z-]+' | grep -oE -- '--[a-z-]+' | sort -u |
		grep -vxFf "$TMP/options" | sed "s|^|$doc: |"
	sed -n 's/^`vramcast \([A-Za-z]*\).*/\1/p' "$TMP/inline" | sort -u | grep -vxFf "$TMP/commands" | sed "s|^|$doc: vramcast |"
done > "$TMP/strange"
[ -s "$TMP/strange" ] && fail "every option and command that a document names exists" "$(cat "$TMP/strange")" ||
	pass "every option and command that a document names exists"
finish
