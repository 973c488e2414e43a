#!/bin/sh
# formats.sh - what is written for other programs says what `sim --json` says, reads back, and is the
# same every time.
. tests/support/tap.sh
PY=${PYTHON:-python3}; PACKED=${PACKED:-$PY}
if ! "$PY" -c 'import sys; sys.exit(sys.version_info < (3, 6))' 2>/dev/null; then skip "exchange formats" "no python3 to read them with"; finish; fi

formats="csv jsonl json chrome perfetto folded pprof openmetrics markdown"
round() { # NAME TRACE OPTIONS...
	what=$1; trace=$2; shift 2
	"$VRAMCAST" sim "$trace" "$@" --json > "$TMP/sim.json" 2> "$TMP/err"
	for f in $formats; do
		if ! "$VRAMCAST" export "$trace" --to "$f" -o "$TMP/x.$f" "$@" 2> "$TMP/err"; then
			fail "export --to $f ($what)" "$(cat "$TMP/err")"; continue
		fi
		check "$f has the numbers of sim --json ($what)" "$PY" tests/support/formats.py "$f" "$TMP/x.$f" "$TMP/sim.json"
	done
	"$VRAMCAST" export "$trace" --to csv:what=blocks -o "$TMP/blocks.csv" "$@"
	check "csv:what=blocks adds up to the peak ($what)" "$PY" tests/support/formats.py blocks "$TMP/blocks.csv" "$TMP/sim.json"
	if "$PACKED" -c 'import perfetto.protos.perfetto.trace.perfetto_trace_pb2' 2> /dev/null; then
		check "perfetto's own definitions read it ($what)" "$PACKED" tests/support/formats.py schema "$TMP/x.perfetto" "$TMP/sim.json"
	else
		skip "perfetto's own definitions read it ($what)" "no python package perfetto"
	fi
	if command -v trace_processor_shell > /dev/null && "$PACKED" -c 'import perfetto.trace_processor' 2> /dev/null; then
		check "trace_processor reads it ($what)" "$PACKED" tests/support/formats.py processor "$TMP/x.perfetto" "$TMP/sim.json"
	else
		skip "trace_processor reads it ($what)" "no trace_processor_shell"
	fi
}
round "a whole run" traces/decomfl.vct
round "warm start, other settings" traces/lm-train-ctx128.vct --conf expandable_segments:True --capacity 80GiB
round "out of memory" traces/decomfl.vct --capacity 1GiB --context 200MiB
printf 'vramcast-golden 1\ntotal 8589934592\nother 1073741824\nevents auto\nm 1 9436671 0\nm 2 2147483648 0\nf 1\nf 2\n' > "$TMP/beside.ops"
round "another process in the recording" "$TMP/beside.ops" --capacity 8GiB

for f in $formats; do
	"$VRAMCAST" export traces/attention.vct --to $f -o "$TMP/1.$f"; "$VRAMCAST" export traces/attention.vct --to $f -o "$TMP/2.$f"
	check "$f: twice the same bytes" cmp "$TMP/1.$f" "$TMP/2.$f"
done
for e in csv jsonl json pftrace trace folded pprof prom md; do
	run sim traces/attention.vct --no-verify -o "$TMP/y.$e"
	expect "sim -o y.$e" 0
	check "y.$e is not empty" test -s "$TMP/y.$e"
done
run sim traces/attention.vct --no-verify --conf '' --conf expandable_segments:True -o "$TMP/two.csv" -o "$TMP/two.md"
check "two runs in one csv" sh -c "cut -d, -f1 '$TMP/two.csv' | sort -u | tr '\n' ' ' | grep -qx '0 1 run '"
check "two rows in one table" sh -c "[ \$(grep -c '^| torch' '$TMP/two.md') = 2 ]"
run sim traces/attention.vct --no-verify --conf '' --conf expandable_segments:True -o "$TMP/two.pprof"
expect "a profile of two runs is refused" 2 '' 'one run'
"$PY" - "$TMP/mine.pickle" <<'END'
import gzip, pickle, sys
s = pickle.load(gzip.open("tests/snapshots/torch-2.9.py.pickle.gz"))
for trace in s["device_traces"]:
    for event in trace:
        event["frames"] = [{"filename": "/home/somebody/secret plans/train.py", "line": 7, "name": "step"}]
pickle.dump(s, open(sys.argv[1], "wb"))
END
for f in pickle folded; do
	"$VRAMCAST" export "$TMP/mine.pickle" --to $f -o "$TMP/plain"; "$VRAMCAST" export "$TMP/mine.pickle" --to $f --redact -o "$TMP/redacted"
	check "$f holds folders of the user" grep -qa 'somebody.secret plans.train.py' "$TMP/plain"
	check "$f --redact does not" sh -c "! grep -qa 'secret' '$TMP/redacted' && grep -qa 'train.py' '$TMP/redacted'"
done
run export traces/attention.vct --to csv --no-stacks -o -
expect "--no-stacks is not for sinks" 2 '' 'vct only'
run export traces/attention.vct --to csv:what=nonsense -o -
expect "a parameter that is none" 2 '' 'nonsense'
# Results: what sweep and sim wrote, in other formats.
"$VRAMCAST" sweep traces/attention.vct --vary capacity=1G,4G -o "$TMP/runs.jsonl" 2> "$TMP/err"
run export "$TMP/runs.jsonl" --to csv -o -
expect "results of a sweep as a table" 0 '^1,.*,capacity,4,4294967296,fits,'
run export "$TMP/runs.jsonl" --to junit -o "$TMP/runs.xml"; expect "and as JUnit" 0
check "one test failed of two" "$PY" -c "import xml.dom.minidom as m; t = m.parse('$TMP/runs.xml').documentElement
assert (t.getAttribute('tests'), t.getAttribute('failures')) == ('2', '1') and len(t.getElementsByTagName('failure')) == 1"
run export "$TMP/runs.jsonl" --to pickle -o "$TMP/x"; expect "results have no events" 2 '' 'needs the events'
for how in "--json" "-o $TMP/run.json"; do
	run sim traces/attention.vct --no-verify --no-advice $how; [ "$how" = --json ] && printf '%s\n' "$out" > "$TMP/run.json"
	run plot "$TMP/run.json" -o "$TMP/run.svg"; expect "sim $how can be plotted" 0
	run export "$TMP/run.json" --to markdown -o -; expect "and exported" 0 '^\| torch'
done
run sim traces/attention.vct --no-verify --no-advice -x fraction:f=0.5 -o "$TMP/changed.vct"; expect "sim -o x.vct writes the changed events" 0
run dump "$TMP/changed.vct"; expect "they are in it" 0 ' fraction '
"$VRAMCAST" export traces/attention.vct --to minimalloc -o "$TMP/m.csv"
check "minimalloc: the largest sum of what overlaps is the peak allocated" "$PY" -c "
import csv, json, subprocess
rows = [{k: int(v) for k, v in r.items()} for r in csv.DictReader(open('$TMP/m.csv'))]
at = sorted([(r['lower'], r['size']) for r in rows] + [(r['upper'], -r['size']) for r in rows], key=lambda x: (x[0], x[1]))
live = top = 0
for _, n in at: live += n; top = max(top, live)
run = json.loads(subprocess.run(['$VRAMCAST', 'sim', 'traces/attention.vct', '--no-verify', '--no-advice', '--json'], stdout=subprocess.PIPE).stdout)['runs'][0]
assert top == run['peak_allocated'], (top, run['peak_allocated'])"
run export tests/recordings/gpt.vct --to pickle:category=lifetime -o "$TMP/life.pickle"
run export tests/recordings/gpt.vct --to pickle -o "$TMP/label.pickle"
# PyTorch's unwinder recorded the stack; it did not ask for the memory.
for what in folded pprof; do
	run export traces/lm-medium-ctx1024.vct --to $what -q -o "$TMP/asks.$what"; expect "$what of a recording with native frames" 0
done
check "no stack ends in the unwinder" sh -c '! grep -qE "unwind|CapturedTraceback|gather_with_cpp" "$1"' sh "$TMP/asks.folded"
check "nor one of pprof" sh -c '! (gzip -dc "$1" 2> /dev/null || cat "$1") | grep -aq "torch::unwind"' sh "$TMP/asks.pprof"
for word in persistent step phase short; do grep -aq "$word" "$TMP/life.pickle" || echo "no $word"; done > "$TMP/words"
{ [ ! -s "$TMP/words" ] && ! grep -aq persistent "$TMP/label.pickle"; } && pass "blocks of a pickle are named by how long they live when asked for" ||
	fail "categories of a pickle" "$(cat "$TMP/words")"
finish
