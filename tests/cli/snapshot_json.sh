#!/bin/sh
# snapshot_json.sh - json.dump() of torch.cuda.memory._snapshot() is read as its pickle is.
. tests/support/tap.sh
if ! command -v python3 > /dev/null; then skip "snapshots as JSON" "no python3"; finish; fi
for f in tests/snapshots/*.pickle.gz; do
	name=$(basename "$f" .pickle.gz)
	python3 -c 'import gzip, json, pickle, sys; json.dump(pickle.load(gzip.open(sys.argv[1])), open(sys.argv[2], "w"), indent=int(sys.argv[3]) or None)' "$f" "$TMP/s.json" "${#name}"
	"$VRAMCAST" dump "$f" > "$TMP/pickle.txt" 2>&1; "$VRAMCAST" dump "$TMP/s.json" > "$TMP/json.txt" 2>&1
	check "$name: the same events, line by line" sh -c 'test -s "$1" && cmp "$1" "$2"' - "$TMP/pickle.txt" "$TMP/json.txt"
done
run info "$TMP/s.json"; expect "and the model reproduces it" 0 'The model reproduces this recording exactly'
gzip -c "$TMP/s.json" > "$TMP/s.json.gz"; run info "$TMP/s.json.gz" --json; expect "packed, too" 0 '"source": "torch_snapshot"'
head -c 3000 "$TMP/s.json" > "$TMP/cut.json"; run info "$TMP/cut.json"; expect "one that is cut off" 1 '' 'the JSON ends too early'
echo '{"segments": [{"address": "x"}], "device_traces": []}' > "$TMP/odd.json"; run info "$TMP/odd.json"; expect "an address that is a text" 1 '' 'address'
echo '{"answer": 42}' > "$TMP/other.json"; run info "$TMP/other.json"; expect "another JSON file" 1 '' 'is not a trace'
finish
