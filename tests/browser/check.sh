#!/bin/bash
# check.sh - the report in Chromium and Firefox, driven by check.py with Python's own library. A browser that is not installed
# is unpacked from Debian's packages into BROWSER_CACHE, outside the tree. F=chromium or F=firefox: one of them.
. tests/support/tap.sh
cache=${BROWSER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-browser}
# fetch COMMAND PACKAGE... : as a command, with what it needs that is not here
fetch() {
	local command=$1 to=$cache/$1; shift
	command -v "$command" > /dev/null && return
	if [ ! -e "$to/done" ]; then
		mkdir -p "$to/debs" && (cd "$to/debs" && apt-get download -q $(apt-get install -qq -s --no-install-recommends "$@" |
			sed -n 's/^Inst \([^ ]*\) .*/\1/p') > ../log 2>&1) || return 1
		for deb in "$to"/debs/*.deb; do dpkg -x "$deb" "$to" || return 1; done
		touch "$to/done"
	fi
	export PATH=$to/usr/lib/$command:$PATH LD_LIBRARY_PATH=$to/usr/lib/x86_64-linux-gnu:$to/usr/lib/firefox-esr:$LD_LIBRARY_PATH
}
which=''
for pair in 'chromium chromium' 'firefox firefox-esr'; do
	name=${pair% *} package=${pair#* }
	[ -z "$F" ] || [ "$F" = "$name" ] || continue
	if fetch "$package" "$package"; then which="$which $name"; else skip "$name" "cannot fetch it"; fi
done
[ -n "$which" ] || finish
export AXE=$cache/axe/axe_playwright_python/axe.min.js # axe-core, of any package that has it
[ -e "$AXE" ] || { python3 -m pip download -q --no-deps -d "$cache/axe" axe-playwright-python && (cd "$cache/axe" && python3 -m zipfile -e ./*.whl .); } > /dev/null 2>&1
# The page, where Emscripten is.
if ! command -v emcc > /dev/null; then echo "# the page is left out: no emcc here"
elif make --no-print-directory DEPS=skip BUILD="$BUILD" DIST="$TMP" page > "$TMP/page.log" 2>&1; then export PAGE="$PWD/$BUILD/vramcast.html"
else fail "the page is built" "$(tail -n 20 "$TMP/page.log")"; finish; fi
# shellcheck disable=SC2086
PYTHONDONTWRITEBYTECODE=1 timeout 900 python3 tests/browser/check.py $which
