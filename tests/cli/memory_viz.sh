#!/bin/sh
# memory_viz.sh - the pages of torch/cuda/_memory_viz.py are read as the snapshot in them is; others say what they lack.
. tests/support/tap.sh
if ! command -v python3 > /dev/null; then skip "pages of memory_viz" "no python3"; finish; fi
cd "$TMP" || exit 1
# As trace_plot and segment_plot of torch 2.1 to 2.9 write it; up to three zero bytes stand behind the pickle.
cat > page.py <<'P'
import base64, gzip, json, pickle, sys
data = pickle.dumps(pickle.load(gzip.open(sys.argv[1])))
data += b"\0" * (3 - len(data) % 3)
print("""
<!DOCTYPE html>
<html>
<head>
</head>
<body>
<script type="module">
import {add_local_files} from "https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js"
const local_files = """ + json.dumps([{"name": "snapshot.pickle", "base64": base64.b64encode(data).decode()}]) + """
add_local_files(local_files, '""" + sys.argv[2] + """')
</script>
</body>
""")
P
case $VRAMCAST in /*) ;; *) VRAMCAST=$OLDPWD/$VRAMCAST ;; esac
for f in "$OLDPWD"/tests/snapshots/torch-2.[269].*.gz "$OLDPWD"/tests/snapshots/graphs.pickle.gz; do
	name=$(basename "$f" .pickle.gz)
	python3 page.py "$f" 'Active Memory Timeline' > page.html
	"$VRAMCAST" dump "$f" > pickle.txt 2>&1; "$VRAMCAST" dump page.html > page.txt 2>&1
	check "$name: the same events, line by line" sh -c 'test -s "$1" && cmp "$1" "$2"' - pickle.txt page.txt
done
run info page.html; expect "and the model reproduces it" 0 'The model reproduces this recording exactly'
gzip -c page.html > page.html.gz; run sim page.html.gz -g rtx4090; expect "packed, too" 0 'fits: '
run page.html; expect "a page is a recording" 0 'needs 552.00 MiB at the peak'
refused() { run info "$2"; expect "$1" 1 '' "$3"; }
head -c 3000 page.html > cut.html; refused "one that is cut off" cut.html 'ends too early, inside its snapshot: it was cut off'
head -c 200 page.html > head.html; refused "cut off before that" head.html 'no snapshot is in this page'
sed 's/gAS\(....\)/gAS\1!/' page.html > odd.html; refused "damage" odd.html 'damaged at byte [0-9]*: that is no base64'
sed 's/\("base64": "\)..../\1AAAA/' page.html > other.html; refused "what is no snapshot" other.html 'damaged pickle at byte 0'
# torch 2.0 to 2.9: a PNG; torch 2.0: what is drawn
echo "<html><head><meta charset=\"utf-8\" /><title>GPU Memory Timeline HTML</title></head><body><img src='data:image/png;base64,iVBORw0KGgo='></body></html>" > timeline.html
refused "the profiler's timeline" timeline.html "timeline.html is the profiler's memory timeline, a picture without the allocator's requests: give the file that torch.cuda.memory._dump_snapshot"
sed 's/MemoryViz/MemoryPlot/' page.html > plot.html; refused "a plot of torch 2.0" plot.html 'html is a plot by PyTorch 2.0'
python3 - <<'P'
import gzip, pickle
e = {"addr": 512, "size": 512, "stream": 0, "frames": []}
pickle.dump({"device_traces": [[dict(e, action="alloc", category="parameter")]], "segments": [
    {"device": 0, "address": 512, "total_size": 512, "stream": 0, "blocks": [dict(size=512, state="active_allocated")]}]}, gzip.open("profile.pickle.gz", "wb"))
P
python3 page.py profile.pickle.gz 'Active Memory Timeline' > profile.html; refused "the plot of a profile" profile.html 'html is a plot of a profile'
finish
