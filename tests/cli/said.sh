#!/bin/bash
# said.sh - everything that can be said and drawn of small recordings is what it was (tests/answers/said/cli-said.txt).
# Nothing is judged here: other tests know what is right, this one notices what changes beside it.
. tests/support/tap.sh
R=tests/recordings S=tests/snapshots T=tests/transforms/recordings
sinks=$("$VRAMCAST" list sinks | awk '/^  [a-z]/ { print $1 }')

for f in $R/*.vct $S/{streams,graphs-expandable,torch-2.9.py}.pickle.gz; do
	run info -q "$f"
	run info -q --json "$f"
	run dump -q --anatomy "$f" --to 600
	run sim -q "$f"
	run sim -q "$f" -m all -g t4 --json
done
for f in $R/{gpt,oom,expoom,two-devices,leak-graph,many-steps}.vct $S/streams.pickle.gz; do
	for sink in $sinks; do run export -q "$f" --to "$sink" -o "$TMP/x"; done
	run plot -q "$f" --width 700 --theme dark -o "$TMP/narrow.svg"
	run plot -q "$f" --conf '' --conf expandable_segments:True -g t4 --axis time -o "$TMP/two.svg"
	run report -q "$f" -g t4 -o "$TMP/report.html"
	run plot -q "$f"
done
finish
