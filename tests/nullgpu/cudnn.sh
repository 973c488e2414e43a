#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cudnn.sh - workspaces of convolutions: by rule, from a table, and the log of shapes.
. tests/support/tap.sh
mkdir -p "$TMP/lib" "$TMP/cache/vramcast"
for soname in libcuda.so.1 libcudnn.so.9; do
	ln -sf "$PWD/$BUILD/nullgpu/vcnull-$soname" "$TMP/lib/$soname"
done
ask() {
	env LD_LIBRARY_PATH="$TMP/lib" XDG_CACHE_HOME="$TMP/cache" VRAMCAST_NULL_CUDNN=90100 \
		VRAMCAST_NULL_CC=8.6 VRAMCAST_NULL_SMS=28 "$@" "$BUILD/tests/nullgpu/cudnn" $shape 2> "$TMP/err"
}
shape= # channels of the input, of a group, kernel: 16 16 3
says() { # NAME LINE: the last answer has that line
	if grep -qx "$2" "$TMP/out"; then pass "$1"; else fail "$1" "wanted: $2" "$(cat "$TMP/out" "$TMP/err")"; fi
}
row=' data f32 nchw 8x16x32x32 24x16x3x3 8x24x32x32 1x1 1x1 1x1 '
ask VRAMCAST_NULL_WORKSPACE_LOG="$TMP/log" > "$TMP/out"
# x 524288 bytes, y 786432, w 13824
says "descriptors that were dropped early still count in the plan's workspace" "data 1324544 0"
says "a frontend that brings one configuration is told of one" "one 1"
says "a forward convolution needs one plan" "forward 0"
check "the log has a row a direction" test "$(wc -l < "$TMP/log")" = 3
check "... in the form of a table" grep -qx "8.6/28 9.1.0${row}1324544,0" "$TMP/log"

# x of C channels takes C * 32768 bytes
shape='3 3 3'; ask > "$TMP/out"
says "a first layer copies its input" "forward 100896 0"
says "... and not for its weights on 8.6" "filter 0"
ask VRAMCAST_NULL_CC=8.9 > "$TMP/out"
says "... but on 8.9" "filter 887328 0"
shape='16 16 1'; ask > "$TMP/out"
says "a 1 x 1 convolution copies its input" "forward 525824 0"
says "... and the gradient of it" "data 525824 0"
ask VRAMCAST_NULL_CC=7.5 > "$TMP/out"
says "... not where there are no tensor cores for fp32" "forward 0"
shape='16 8 3'; ask > "$TMP/out"
says "groups of 8 channels copy the input on 8.6" "forward 531200 0"
shape='32 16 3'; ask > "$TMP/out"
says "... wider ones do not" "forward 0"
of() { # SHAPE NAME LINE
	shape=$1
	ask > "$TMP/out"
	says "$2" "$3"
}
of '3 3 4 96 86 300 4' "patches that do not overlap copy nothing" "forward 0"
# the layers of the record that channels_last() in cudnn_workspace.c is from
of '192 192 2 384 10 300 2 1' "channels last: a 2 x 2 convolution copies all three" "forward 35739648 0"
of '384 384 2 768 5 300 2 1' "... for its input's gradient what it reads of it" "data 15777792 0"
says "... for its weights' all" "filter 19924992 0"
of '96 96 2 192 21 300 2 1' "... with few channels nothing" "forward 0"
of '768 1 7 768 2 300 1 1' "... a depthwise one the input, for its weights" "filter 3686400 0"
# weights of 1638400 bytes over 3 x 3
of '320 320 1 1280 3 300' "a part of large weights' gradient an image" "filter 491520000 0"
of '320 320 1 1280 3 500' "... of many images one for six" "filter 135987200 0"
of '320 320 1 1280 3 380' "... between the two nothing" "filter 0"
ask VRAMCAST_NULL_CC=8.9 > "$TMP/out"
says "... on 8.9 nothing" "filter 0"
shape='256 256 3 256 8 4'
ask VRAMCAST_NULL_CC=7.0 > "$TMP/out"
says "before 8.0 the gradient of a wide 3 x 3 convolution's input is transformed" "data 10616832 0"
shape='128 128 3 256 8 4'
ask VRAMCAST_NULL_CC=7.0 > "$TMP/out"
says "... of a narrower one copied" "data 1572864 0"
shape=

echo "8.6 9.1${row}4096,1024,0 # recorded" > "$TMP/table"
ask VRAMCAST_NULL_WORKSPACES="$TMP/table" > "$TMP/out"
says "a row replaces the rule" "data 4096 1024 0"
says "... for its own direction only" "filter 0"
ask VRAMCAST_NULL_WORKSPACES="$TMP/table" VRAMCAST_NULL_CC=8.9 > "$TMP/out"
says "... on its own class of card only" "data 1324544 0"
ask VRAMCAST_NULL_WORKSPACES="$TMP/table" VRAMCAST_NULL_CUDNN=90200 > "$TMP/out"
says "... under its own version of cuDNN only" "data 1324544 0"
printf '%s\n' "8.6/80 9.1.0${row}1" "* 9${row}2" > "$TMP/cache/vramcast/workspaces.txt"
ask > "$TMP/out"
says "the user's cache folder is read; a row for another number of SMs does not fit" "data 2"
ask VRAMCAST_NULL_WORKSPACES="$TMP/none:$TMP/table" > "$TMP/out"
says "a table that was named comes first" "data 4096 1024 0"
echo "8.6 9.1${row}many" > "$TMP/table"
ask VRAMCAST_NULL_WORKSPACES="$TMP/table" > "$TMP/out"
check "a bad row is named with its line" grep -q "$TMP/table:1 is not a row" "$TMP/err"
finish
