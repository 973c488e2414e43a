#!/bin/sh
# cudnn_calls.sh - executed convolutions, against a stand-in of cuDNN's graph interface: what is
# named, with which workspace and where in the order; and what must not be named.
. tests/tracer/lib.sh
cp -r "$bin/torch" "$TMP/torch"
printf "__version__ = '2.9.0+cu000'\n" > "$TMP/torch/version.py"
convolve=$TMP/torch/lib/convolve
plain="4x3x8x8 16x3x3x3 4x16x8x8 1x1 1x1 1x1"

# plans FILE: "SIZE ADDRESS LABEL" of each, 0 where it has none
plans() { "$VRAMCAST" dump "$1" | awk '$3 == "plan" { size = at = 0; for (i = 4; $i !~ /^label=/; i++) { split($i, v, "="); if (v[1] == "size") size = v[2]; if (v[1] == "addr") at = v[2] }
	sub(/.*label=cudnn\//, ""); print size, at, $0 }'; }
# astray FILE: plans that are not between the request for their workspace and the free of it, by the same address and size
astray() { "$VRAMCAST" dump "$1" | awk '{ size = at = ""; for (i = 4; i <= NF && $i !~ /^label=/; i++) { split($i, v, "="); if (v[1] == "size") size = v[2]; if (v[1] == "addr") at = v[2] } }
	$3 == "alloc" { live[at] = size } $3 == "free" { delete live[at] } $3 == "plan" && size && live[at] != size { n++ } END { print n + 0 }'; }
# convolutions WHAT: records it; what was said of calls that answered otherwise than the library is left in $said
convolutions() {
	rm -f "$TMP"/a.*; run record -q -o "$TMP/a.vct" -- "$convolve" "$@"
	[ "$rc" = 0 ] || fail "$1: recorded" "$rc" "$err"
	said=$(echo "$out" | grep -vE '^[0-9]+ [0-9a-f]+$')
	equal "$1: each call answers what the library answered" "$said" ""
	equal "$1: plans stand between the request for their workspace and its end" "$(astray "$TMP/a.vct")" 0
}
# named NAME: the plans, against a list of "which of the workspaces, label"
named() {
	while read -r i label; do echo "$(echo "$out" | sed -n "${i}p") $label"; done > "$TMP/wanted"
	equal "$1" "$(plans "$TMP/a.vct")" "$(cat "$TMP/wanted")"
}

convolutions each
named "each direction, both orders, three dimensions, and no workspace" << LIST
1 9.19.0 forward f32 nchw $plain
2 9.19.0 data f32 nchw $plain
3 9.19.0 filter f32 nchw $plain
4 9.19.0 filter f32 nhwc $plain
5 9.19.0 forward f16 nhwc 1x3x8x9x10 4x3x3x3x3 1x4x3x4x4 2x2x2 0x0x0 1x1x1
6 9.19.0 forward f32 nchw $plain
LIST
convolutions either
named "an input that has both orders has that of the other tensors" << LIST
1 9.19.0 forward f32 nchw 4x64x1x1 16x64x3x3 4x16x1x1 1x1 1x1 1x1
2 9.19.0 forward f32 nhwc 4x64x1x1 16x64x3x3 4x16x1x1 1x1 1x1 1x1
3 9.19.0 forward f32 nchw 4x1x8x8 16x1x3x3 4x16x8x8 1x1 1x1 1x1
4 9.19.0 forward f32 nhwc 4x1x8x8 16x1x3x3 4x16x8x8 1x1 1x1 1x1
5 9.19.0 forward f32 nhwc 4x64x1x1 16x64x1x1 4x16x1x1 1x1 0x0 1x1
LIST
convolutions kept
named "plans outlive the descriptors they were made from" << LIST
1 9.19.0 forward f32 nchw $plain
2 9.19.0 forward f32 nchw $plain
3 9.19.0 forward f32 nchw 5x3x8x8 16x3x3x3 5x16x8x8 1x1 1x1 1x1
4 9.19.0 forward f32 nchw $plain
5 9.19.0 forward f32 nchw $plain
6 9.19.0 forward f32 nchw 5x3x8x8 16x3x3x3 5x16x8x8 1x1 1x1 1x1
LIST
convolutions reused
equal "reused: everything was executed" "$(echo "$out" | wc -l)" 5
named "what comes to the address of a descriptor, or to its use, has no old key" << LIST
1 9.19.0 forward f32 nchw $plain
3 9.19.0 graph
4 9.19.0 graph
LIST
convolutions failing
equal "failing: it went on" "$(echo "$out" | wc -l)" 11
named "what the library refused has no key, the last one has" << LIST
$(for i in 1 3 5 7 9; do echo "$i 9.19.0 graph"; done)
11 9.19.0 forward f32 nchw $plain
LIST
convolutions others
equal "two operations, gaps, unequal pads, odd addresses, mixed orders and types: executed, no key" "$(echo "$out" | wc -l) $(plans "$TMP/a.vct" | cut -d' ' -f3- | sort | uniq -c | sed 's/^ *//')" "8 8 9.19.0 graph"

convolutions threads
for i in 1 2 3 4; do echo "100 ${i}000 9.19.0 forward f32 nchw ${i}x3x8x8 16x3x3x3 ${i}x16x8x8 1x1 1x1 1x1"; done > "$TMP/wanted"
equal "four threads: each plan has the workspace of its own convolution" "$(plans "$TMP/a.vct" | sed 's/ [0-9a-f]* / /' | sort | uniq -c | sed 's/^ *//')" "$(cat "$TMP/wanted")"

convolutions forked
equal "forked: the parent's thread goes on" "$(plans "$TMP/a.vct" | grep -c '^9000 ')" 1
for child in "$TMP"/a.*.vct; do plans "$child" | sed 's/ [0-9a-f]* / /'; astray "$child"; done > "$TMP/got"
for i in 1 2 3 4 5; do printf '%s\n' "1000 9.19.0 forward f32 nchw $plain" "2000 9.19.0 data f32 nchw $plain" 0; done > "$TMP/wanted"
equal "five children have the parent's plan, and make one" "$(cat "$TMP/got")" "$(cat "$TMP/wanted")"
convolutions many

STANDIN_CUDNN=8907; export STANDIN_CUDNN; convolutions kept; unset STANDIN_CUDNN
equal "versions up to 8 have other numbers" "$(plans "$TMP/a.vct" | awk '{ print $3 }' | sort -u)" 8.9.7
STANDIN_CURRENT=3; export STANDIN_CURRENT; convolutions kept; unset STANDIN_CURRENT
equal "a plan is of the card of its thread" "$("$VRAMCAST" dump "$TMP/a.vct" | grep -c ' plan device=3 ')" 6

# Nobody records: without the library, and with it when it was not told where to.
alone=$("$convolve" each kept reused failing others many)
beside=$(LD_PRELOAD="$PWD/${BUILD:-build}/libvramcast_trace.so" "$convolve" each kept reused failing others many)
equal "not recorded: the same answers" "$beside" "$alone"
equal "not recorded: the library's answers" "$(echo "$alone" | grep -vE '^[0-9]+ [0-9a-f]+$') $(echo "$alone" | wc -l)" " 36"

# Joined, left, joined again: a descriptor was destroyed meanwhile. Nobody reads the journals, in which labels are text.
mkdir "$TMP/first" "$TMP/second"
got=$("$convolve" attached "$PWD/${BUILD:-build}/libvramcast_trace.so" "$TMP/first" "$TMP/second" 2>&1) || fail "joined twice" "$got"
labels() { cat "$1"/*.vcj | tr '\0' '\n' | grep -a '^cudnn/'; }
equal "joined: plans that are made from then on" "$(labels "$TMP/first")" "cudnn/9.19.0 forward f32 nchw $plain"
equal "joined again: nothing of before" "$(labels "$TMP/second")" "cudnn/9.19.0 data f32 nchw $plain"
finish
