#!/bin/sh
# check.sh - make install, the package for Debian as lintian judges it, the recipe for conda as rattler-build reads it, and the
# steps of the container, whose files must exist.
. tests/support/tap.sh
version=$(sed -n 's/^VERSION := //p' Makefile)
check "make install" make -s install DESTDIR="$TMP/root" PREFIX=/usr DEPS=skip
for f in bin/vramcast lib/vramcast/libvramcast_trace.so share/man/man1/vramcast.1 share/man/man1/vramcast-sim.1 \
	share/bash-completion/completions/vramcast share/zsh/site-functions/_vramcast share/fish/vendor_completions.d/vramcast.fish; do
	[ -s "$TMP/root/usr/$f" ] || echo "$f"
done > "$TMP/missing"
[ -s "$TMP/missing" ] && fail "the program, its libraries, man pages and completions are there" "$(cat "$TMP/missing")" ||
	pass "the program, its libraries, man pages and completions are there"
check "bash takes its completions" bash -n "$TMP/root/usr/share/bash-completion/completions/vramcast"
check "man takes the pages without a warning" sh -c 'command -v groff > /dev/null || exit 0; for f in "$1"/usr/share/man/man1/*.1; do groff -man -Tascii -ww "$f" 2>&1 > /dev/null | grep . && exit 1; done; exit 0' - "$TMP/root"

if ! command -v dpkg-shlibdeps > /dev/null; then skip "make deb" "no dpkg-dev"
else
	check "make deb" make -s deb DIST="$TMP/deb" DEPS=skip
	deb=$(echo "$TMP"/deb/vramcast_"$version"_*.deb)
	if ! command -v lintian > /dev/null; then skip "lintian" "it is not installed"
	else
		lintian --allow-root --fail-on error,warning --tag-display-limit 0 "$deb" > "$TMP/lintian" 2>&1 && pass "lintian finds no error and no warning" ||
			fail "lintian finds no error and no warning" "$(cat "$TMP/lintian")"
	fi
	dpkg-deb -x "$deb" "$TMP/opened"
	check "the program of the package runs, from where it lies" "$TMP/opened/usr/bin/vramcast" sim -q --no-advice traces/decomfl.vct -g t4
	check "and records with the tracer beside it" "$TMP/opened/usr/bin/vramcast" record -q --device cpu -o "$TMP/r.vct" -- true
	check "twice the same bytes" sh -c 'make -s deb DIST="$1/again" DEPS=skip > /dev/null 2>&1 && cmp "$2" "$1"/again/*.deb' - "$TMP" "$deb"
fi

tools=${TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-tools}
[ -d "$tools/rattler" ] || python3 -m pip install -q --target "$tools/rattler" py-rattler-build > "$TMP/pip.log" 2>&1
if [ ! -d "$tools/rattler/rattler_build" ]; then skip "the recipe for conda" "no rattler-build: $(tail -n 1 "$TMP/pip.log")"
else check "rattler-build reads and renders the recipe for conda" env PYTHONPATH="$tools/rattler" python3 tests/packaging/recipe.py "$version"; fi
grep -oE 'python/[a-z]+\.py' packaging/Containerfile | while read -r f; do [ -f "$f" ] || exit 1; done && pass "what the container runs exists" || fail "what the container runs exists"
finish
