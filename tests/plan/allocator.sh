#!/bin/sh
# allocator.sh - vramcast run on a small C program and the null GPU's runtime: the plan is learned, followed, and left.
. tests/support/tap.sh
bin=${BUILD:-build}/tests/plan/client
mkdir -p "$TMP/lib"
for f in "$PWD/${BUILD:-build}"/nullgpu/vcnull-lib*; do # under the names that programs ask for
	ln -sf "$f" "$TMP/lib/${f##*/vcnull-}"
done
export LD_LIBRARY_PATH="$TMP/lib"
export VRAMCAST_NULL_TOTAL=8589934592 VRAMCAST_NULL_CONTEXT=0

run run --learn "$TMP/a.vcp" -- "$bin"
expect "a plan is learned from a run without one" 0 'overlaps 0, refused 0' 'a.vcp: 1220 requests, an arena of .*repeated'
check "and that none was is not said" sh -c '! grep -q "nothing was learned" "$1"' - "$TMP/err"
run run --learn "$TMP/no folder/a.vcp" -- "$bin"; expect "a plan that cannot be written is a failure, whatever the program says" 125 '' 'no folder/a.vcp'
run run --learn "$TMP/a2.vcp" -- sh -c "\"$bin\"; exit 9"; expect "else the code is the program's" 9
run run --learn "$TMP/none.vcp" -- true; expect "of a program without PyTorch nothing is learned" 0 '' 'nothing was learned'
run run --plan "$TMP/a.vcp" --check -- "$bin"
expect "all of the same program is served from it" 0 'overlaps 0, refused 0' '1220 of 1220 requests served'
expect "and no place was given out twice" 0 '' 'checked: 0 places given out twice'
run run --plan "$TMP/a.vcp" --check --learn "$TMP/b.vcp" -- "$bin" 5
expect "a program that differs is served in part" 0 'overlaps 0, refused 0' ' [0-9]{3,4} of [0-9]{4} requests served'
check "most of it" sh -c "sed -n 's/.*: \\([0-9]*\\) of \\([0-9]*\\) requests served.*/\\1 \\2/p' '$TMP/err' | awk '{ exit !(\$1 > \$2 * 0.6 && \$1 < \$2) }'"
expect "and nothing was given out twice" 0 '' 'checked: 0 places given out twice'
run run --plan "$TMP/b.vcp" --check -- "$bin" 5
expect "what was learned from that serves the next one" 0 '' 'checked: 0 places given out twice'
check "better than before" sh -c "sed -n 's/.*: \\([0-9]*\\) of \\([0-9]*\\) requests served.*/\\1 \\2/p' '$TMP/err' | awk '{ exit !(\$1 == \$2) }'"
VRAMCAST_NULL_TOTAL=67108864 run run --plan "$TMP/a.vcp" -- "$bin"
expect "a device without room for the arena" 1 'refused [1-9]'
sed 's/^arena .*/arena 512/' "$TMP/a.vcp" > "$TMP/bad.vcp"
run run --plan "$TMP/bad.vcp" -- "$bin"; expect "a damaged plan is refused before the program starts" 125 '' 'bad.vcp: line'
run run --plan "$TMP/nothing.vcp" -- "$bin"; expect "a plan that is not there" 125 '' 'nothing.vcp'
run run -- "$bin"; expect "neither plan nor learning" 2 '' 'run wants --plan FILE, --learn FILE, --choice FILE or --fit'
run run --plan "$TMP/a.vcp" -- "$TMP/no-program"; expect "a program that is not there" 127 '' 'cannot run'
run run --plan "$TMP/a.vcp" -- sh -c 'exit 7'; expect "the program's exit code" 7

# PyTorch's own allocator: whatever comes from the plan, its statistics and what it reports are the same.
export LD_LIBRARY_PATH=
cp -r "${BUILD:-build}/tests/tracer/torch" "$TMP/torch"
printf "__version__ = '2.9.0'\n" > "$TMP/torch/version.py"
client="$TMP/torch/lib/client"
plain=$("$client" repeat 6)
run run --learn "$TMP/t.vcp" -- "$client" repeat 6
check "the allocator's statistics while a plan is learned" [ "$out" = "$plain" ]
expect "of all requests but those in a scope" 0 '' 't.vcp: 241 requests'
run run --plan "$TMP/t.vcp" --check -- "$client" repeat 6
check "and when it serves" [ "$out" = "$plain" ]
expect "all of them" 0 '' ' 241 of 241 requests served'
expect "none over another one" 0 '' 'checked: 0 places given out twice'
STANDIN_WAITS=50 run run --plan "$TMP/t.vcp" --check -- "$client" repeat 6
expect "where another stream still works nothing is placed" 0 '' ' 186 of 241 requests served'
# What is not used goes back when the cache is emptied, but in a scope; where there is no room for it any more, PyTorch's
# own allocator is asked.
hooks="$TMP/torch/lib/hooks"
run run --learn "$TMP/e.vcp" -- "$hooks" emptied
run run --plan "$TMP/e.vcp" --check -- "$hooks" emptied
if [ "$out" = "steps: 8388608 8388608 8388608 0 of 1 blocks
another card: 0 0 0 0 of 0 blocks
emptied too early: 8388608 8388608 8388608 0 of 1 blocks
emptied in a scope: 8388608 8388608 8388608 0 of 0 blocks
emptied: 0 8388608 8388608 8388608 of 0 blocks
asked again: 8388608 8388608 16777216 8388608 of 0 blocks
no room: 0 8388608 16777216 16777216 of 0 blocks" ]; then pass "the arena goes back and comes back, by the allocator's statistics"
else fail "the arena goes back and comes back, by the allocator's statistics" "$out" "$err"; fi
expect "what found no room is said" 0 '' ' 20 of 21 requests served'
expect "... and why" 0 '' '0 differ from the placement, of 1 the place was not free, 0 have none'
# 2.1 reports with signed sizes.
printf "__version__ = '2.1.0'\n" > "$TMP/torch/version.py"
export STANDIN_TORCH=1
plain=$("$client" repeat 6)
run run --learn "$TMP/o.vcp" -- "$client" repeat 6; check "2.1: while a plan is learned" [ "$out" = "$plain" ]
run run --plan "$TMP/o.vcp" --check -- "$client" repeat 6
check "2.1: and when it serves" [ "$out" = "$plain" ]
expect "2.1: all of them" 0 '' ' 241 of 241 requests served'
finish
