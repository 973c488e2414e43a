#!/bin/sh
# release.sh - the version stands in one place and is said everywhere; notes come out of the changelog, and the bill of materials is JSON
# that says the same twice; so does the source distribution. A link against the symbols of glibc 2.28 asks for nothing newer.
# `make check-release` builds all of a release, twice.
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

# A copy of what git knows, made at another time with other rights, gives the same source distribution.
sdist() { (cd "$1" && umask "$2" && mkdir -p "$3" && TZ=$4 PYTHONDONTWRITEBYTECODE=1 python3 -c 'import sys
sys.path.insert(0, "python")
import backend
backend.build_sdist(sys.argv[1])' "$3"); }
if command -v python3 > /dev/null && git rev-parse -q --verify HEAD > /dev/null 2>&1; then
	mkdir "$TMP/copy"
	git ls-files -z -- . ':!tests' ':!traces' ':!docs' | xargs -0 ls -d 2> /dev/null | tar -cf - -T - | (umask 077; tar --no-same-permissions -xmf - -C "$TMP/copy")
	sdist . 022 "$TMP/here" UTC; sdist "$TMP/copy" 027 "$TMP/there" Asia/Tokyo
	check "the source distribution is the same twice" sh -c 'cmp "$1"/here/*.tar.gz "$1"/there/*.tar.gz' - "$TMP"
else skip "the source distribution is the same twice" "no python3, or no git"; fi

# What the wheel does to run with an older libc, on a program of a few lines.
cat > "$TMP/p.c" <<'C'
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
static void *worker(void *p) { *(double *)p = exp(log(atof("8")) / 3); return 0; }
int main(int n, char **v)
{
	struct stat st;
	pthread_t t;
	double x = 0;

	if (pthread_create(&t, 0, worker, &x) || pthread_join(t, 0) || stat(v[0], &st) || !dlsym(RTLD_DEFAULT, "printf"))
		return 1;
	printf("%.3f\n", x + n - 1);
	return 0;
}
C
newest() { PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 python3 -c 'import sys, pathlib, backend; print(max(backend.libc_versions(pathlib.Path(sys.argv[1]))) <= backend.NEWEST)' "$1"; }
older=$(PYTHONPATH=python PYTHONDONTWRITEBYTECODE=1 python3 -c 'import sys, pathlib, older_libc; print(older_libc.folder_for(["cc"], pathlib.Path(sys.argv[1])) or "")' "$TMP/older" 2> "$TMP/older.log")
if [ -n "$older" ]; then
	cc -D_GNU_SOURCE -o "$TMP/p" "$TMP/p.c" -lm -lpthread -ldl; cc -D_GNU_SOURCE -L"$older" -o "$TMP/q" "$TMP/p.c" -lm -lpthread -ldl
	check "the program runs here, and asks for glibc 2.28 at most" test "$("$TMP/q") $(newest "$TMP/q")" = "2.000 True"
	[ "$(newest "$TMP/p")" = False ] && pass "without that it would ask for more" || skip "without that it would ask for more" "the libc here is old"
elif [ -s "$TMP/older.log" ]; then fail "symbols of an older libc" "$(cat "$TMP/older.log")"
else skip "symbols of an older libc" "no glibc here"; fi
finish
