#!/bin/sh
# names.sh - names come from files that anybody may have made: nothing in them steers a terminal or breaks JSON.
. tests/support/tap.sh
LC_ALL=C; export LC_ALL
f=$TMP/$(printf 'a\377\033[2Jb\302\233m').ops
printf 'vramcast-golden 1\nabout \033]0;other title\007\ntotal 1073741824\nm 1 512 0\ns \033[31mred\nf 1\nt 1 \033[5mclass\n' > "$f"
plain() { # NAME: the output has no control characters but lines and tabs, and is UTF-8
	if tr -d '\n\t' < "$TMP/all" | grep -q '[[:cntrl:]]' || grep -q "$(printf '\302\233')" "$TMP/all"; then
		fail "$1: no escape sequences" "$(head -c 300 "$TMP/all" | tr -d '\033')"
	elif iconv -f UTF-8 -t UTF-8 "$TMP/all" > /dev/null 2>&1; then
		pass "$1: no escape sequences, and UTF-8"
	else
		fail "$1: UTF-8"
	fi
}
for c in info sim dump 'info --json' 'sim --json' 'sim --capacity 1MiB'; do
	"$VRAMCAST" $c "$f" > "$TMP/all" 2>&1
	plain "$c"
done
"$VRAMCAST" info --json "$f" > "$TMP/all" 2>&1
grep -q 'a\\ufffd\\u001b\[2Jb\\u009bm' "$TMP/all" && pass "JSON keeps what the name is, as escapes" || fail "JSON keeps what the name is" "$(grep -a file "$TMP/all")"
"$VRAMCAST" info "$TMP/$(printf 'not there\033[2J')" > "$TMP/all" 2>&1; plain "an error message"
finish
