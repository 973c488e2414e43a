#!/bin/sh
# check_release.sh - all of a release, made twice from the commit that is checked out: in folders of other names, with other rights, in
# another time zone and language. The bytes must be the same. Six builds: minutes.
. tests/support/tap.sh
git clone -q . "$TMP/source"
twice() { # FOLDER UMASK TZ LANGUAGE
	umask "$2"; git clone -q "$TMP/source" "$TMP/$1" && cd "$TMP/$1" && env -u SOURCE_DATE_EPOCH TZ="$3" LC_ALL="$4" make -s release DIST=made
}
(twice a 022 UTC C) > "$TMP/a.log" 2>&1 && pass "make release" || { fail "make release" "$(tail -n 20 "$TMP/a.log")"; finish; }
(twice a/longer-name 027 Asia/Tokyo C.UTF-8) > "$TMP/b.log" 2>&1 && pass "make release again" || { fail "make release again" "$(tail -n 20 "$TMP/b.log")"; finish; }
a=$TMP/a/made b=$TMP/a/longer-name/made
command -v emcc > /dev/null && page='*.html' || page=
for file in $page '*.whl' '*.tar.gz' '*.deb' NOTES.md '*.spdx.json'; do (cd "$a" && ls $file) || echo "$file"; done > "$TMP/files" 2> "$TMP/missing"
[ -s "$TMP/missing" ] && fail "wheel, source, package, page, notes and bill of materials are there" "$(cat "$TMP/missing")" || pass "wheel, source, package, page, notes and bill of materials are there"
check "SHA256SUMS names them, and no more" sh -c 'cut -c 67- "$1/SHA256SUMS" | sort | cmp - "$2"' - "$a" "$(sort -o "$TMP/files" "$TMP/files"; echo "$TMP/files")"
check "and is true" sh -c 'cd "$1" && sha256sum -c --quiet SHA256SUMS' - "$a"
while read -r file; do check "$file: the same bytes" cmp "$a/$file" "$b/$file"; done < "$TMP/files"
finish
