#!/bin/sh
# release.sh - the version stands in one place and is said everywhere; notes come out of the changelog, and the bill of materials is JSON
# that says the same twice. `make check-packaging` builds what is released.
. tests/support/tap.sh
version=$(sed -n 's/^VERSION := //p' Makefile)
check "the program says it" test "$("$VRAMCAST" --version)" = "vramcast $version"
check "and the recipe for conda" grep -q "version: \"$version\"" packaging/conda/recipe.yaml
git grep -n "VERSION := " -- Makefile '*.mk' 2> /dev/null | grep -cv 'Makefile:[0-9]*:VERSION' > "$TMP/n"; check "nowhere else it is set" test "$(cat "$TMP/n")" = 0
scripts/release.sh notes > "$TMP/notes"
check "the notes are the changelog's" sh -c 'head -n 1 "$1" | grep -qx "# vramcast $2" && grep -q "^### " "$1" && ! grep -q "^## " "$1"' - "$TMP/notes" "$version"
SOURCE_DATE_EPOCH=1767225600; export SOURCE_DATE_EPOCH
scripts/release.sh sbom > "$TMP/a"; TZ=Asia/Tokyo scripts/release.sh sbom > "$TMP/b"; check "the bill of materials is the same twice" cmp "$TMP/a" "$TMP/b"
if command -v python3 > /dev/null; then check "and names what is linked in" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
assert [p["name"] for p in d["packages"]] == ["vramcast", "zstd", "zlib"] and d["packages"][0]["versionInfo"] == sys.argv[2]
assert d["creationInfo"]["created"] == "2026-01-01T00:00:00Z", d' "$TMP/a" "$version"; else skip "and names what is linked in" "no python3"; fi
finish
