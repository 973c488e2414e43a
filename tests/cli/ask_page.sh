#!/bin/bash
# ask_page.sh - report --ask: recordings travel in the page, whole, with the settings asked for. The page is a stand-in; that the
# real one answers is the subject of `make page` (page/build.mk).
. tests/support/tap.sh
mkdir -p "$TMP/bin"; cp "$VRAMCAST" "$TMP/bin/vramcast"; V=$TMP/bin/vramcast R=tests/recordings; export LC_ALL=C
ask() { out=$("$V" report --ask "$@" 2> "$TMP/err"); rc=$?; err=$(cat "$TMP/err"); }
run_of() { "$VRAMCAST" sim --json --no-advice "$1" | grep -E '"(peak_reserved|peak_used|allocs|events)":' | head -4; }
set -- $(ls traces/*.vct | head -2)
if [ ! -e /usr/local/lib/vramcast/vramcast.html ]; then
	ask -o "$TMP/none.html" "$1"; expect "without the page" 2 '' "'make page' makes it"
	check "nothing is written" test ! -e "$TMP/none.html"
fi
echo '<p>no page</p>' > "$TMP/bin/vramcast.html"
ask -o "$TMP/none.html" "$1"; expect "what is no page" 1 '' 'vramcast.html is no page of this program'
printf '<!doctype html>\n<p>before</p>\n<script type="application/gzip" id="wasm">x</script>\n<p>after</p>\n' > "$TMP/bin/vramcast.html"
ask -o "$TMP/a.html" -g t4 -g "l4" --conf 'max_split_size_mb:64' --capacity 7GiB -x 'fraction:f=0.5' "$1" "$2"
expect "two recordings with settings" 0
python3 - "$TMP" "$1" "$2" <<'P'
import base64, os, re, sys
tmp, *paths = sys.argv[1:]
page = open(tmp + "/a.html").read()
found = re.findall(r'<script type="application/octet-stream" class="p-recording" data-name="([^"]*)"([^>]*)>([^<]*)</script>\n', page)
rest = re.sub(r'<script type="application/octet-stream".*?</script>\n', "", page, flags=re.S)
def is_so(what, ok):
    print(what if ok else "not " + what, file=said)
said = open(tmp + "/said", "w")
is_so("page", rest == open(tmp + "/bin/vramcast.html").read())
is_so("place", page.index("before") < page.index("p-recording") < page.index("application/gzip") < page.index("after"))
is_so("names", [f[0] for f in found] == [os.path.basename(p) for p in paths])
settings = ' data-g="t4\nl4" data-conf="max_split_size_mb:64" data-x="fraction:f=0.5" data-capacity="7516192768"'
is_so("settings", all(f[1] == settings for f in found))
for i, f in enumerate(found):
    open(f"{tmp}/{i}.vct", "wb").write(base64.b64decode(f[2], validate=True))
P
for what in page place names settings; do check "the $what" grep -qx "$what" "$TMP/said"; done
check "the first recording is whole" test "$(run_of "$TMP/0.vct")" = "$(run_of "$1")"
check "and the second" test "$(run_of "$TMP/1.vct")" = "$(run_of "$2")"
check "with each request" sh -c '"$1" dump "$2" | grep -c . | grep -qx "$("$1" dump "$3" | grep -c .)"' - "$VRAMCAST" "$TMP/0.vct" "$1"
ask -o "$TMP/b.html" "$1"; check "no settings, no attributes" grep -q 'class="p-recording" data-name="[^"]*">' "$TMP/b.html"
printf 'x' > "$TMP/bad.vct"; rm -f "$TMP/c.html"; ask -o "$TMP/c.html" "$1" "$TMP/bad.vct"; expect "what is no recording" 1 '' 'bad.vct'
check "then there is no page" test ! -e "$TMP/c.html"
ask -o "$TMP/c.html" -g nothing "$1"; expect "nor is there one for a card that there is not" 2 '' "nothing"
ask -o "$TMP/c.html" --theme dark "$1"; expect "--theme" 2 '' 'goes with neither --theme, --title nor'
finish
