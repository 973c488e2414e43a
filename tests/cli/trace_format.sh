#!/bin/sh
# trace_format.sh - docs/reference/trace-format.md tells the truth: its example decodes to the events it lists, its
# block content is what is in the file; plain zstd opens a trace; conversions keep every event.
. tests/support/tap.sh
doc=docs/reference/trace-format.md
command -v python3 > /dev/null || { skip "the example of the document" "python3 is not here"; finish; }
python3 - "$doc" "$TMP" <<'PY'
import re, sys
doc, tmp = open(sys.argv[1]).read(), sys.argv[2]
hexed = re.search(r'<!-- vector -->\n(.*?)<!-- /vector -->', doc, re.S).group(1)
open(tmp + '/vector.vct', 'wb').write(bytes.fromhex(''.join(hexed.split())))
example = doc[doc.index('## 4. Example'):]
blocks = re.findall(r'(?:^    .*\n)+', example, re.M)
open(tmp + '/events', 'w').write(re.sub('(?m)^    ', '', blocks[0]))
content = ''.join(re.split(r'   +', l.strip())[0].replace(' ', '') for l in blocks[1].splitlines())
open(tmp + '/content', 'wb').write(bytes.fromhex(content))
PY
"$VRAMCAST" dump "$TMP/vector.vct" > "$TMP/dumped" 2> "$TMP/err"
check "the document's file holds the events the document lists" cmp "$TMP/events" "$TMP/dumped"
holds() { python3 -c "
import sys; a, b = open(sys.argv[1], 'rb').read(), open(sys.argv[2], 'rb').read()
sys.exit(0 if len(b) == 112 and b in a else 1)" "$1" "$2"; }
if command -v zstd > /dev/null; then
	zstd -q -t "$TMP/vector.vct" 2> "$TMP/err"; rc=$?; out=; err=$(cat "$TMP/err")
	expect "zstd -t accepts a trace" 0
	zstd -q -dc "$TMP/vector.vct" > "$TMP/plain"
	check "the document's block content is what zstd finds in the file" holds "$TMP/plain" "$TMP/content"
	run export "$TMP/vector.vct" --to vct -o "$TMP/again.vct"; expect "the example is written again" 0
	zstd -q -dc "$TMP/again.vct" > "$TMP/plain"
	check "written again, the block has the same content" holds "$TMP/plain" "$TMP/content"
else
	skip "zstd opens a trace" "zstd is not here"
fi
for t in traces/*.vct; do
	run export "$t" --to vct -o "$TMP/a.vct"; expect "$t is converted" 0
	run export "$t" --to vct -o "$TMP/b.vct"
	check "$t twice gives the same bytes" cmp "$TMP/a.vct" "$TMP/b.vct"
	"$VRAMCAST" dump "$t" > "$TMP/a"; "$VRAMCAST" dump "$TMP/b.vct" > "$TMP/b"
	check "$t converted has the same events" cmp "$TMP/a" "$TMP/b"
done
finish
