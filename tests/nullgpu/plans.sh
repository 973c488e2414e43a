#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# plans.sh - an installed cuDNN is asked for its plans; here a library of our own answers (deviceless.c).
. tests/support/tap.sh
own cc || { skip "asking an installed cuDNN" "no cc for ${ARCH:-this machine}"; finish; }
py=$(python3 -c "import sys; print(sys.executable)") || { skip "asking an installed cuDNN" "no python3"; finish; }
site=$TMP/site; wheel=$site/nvidia/cudnn/lib
mkdir -p "$site/torch/lib" "$wheel" "$TMP/cache"; : > "$site/torch/__init__.py"
echo 'int cudnnGetVersion(void); int ask(void) { return cudnnGetVersion(); }' > "$TMP/want.c"
cc -shared -fPIC -Wl,--no-as-needed -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudnn.so.9 \
	-l:vcnull-libcudart.so.12
ln -s "$PWD/$BUILD/tests/nullgpu/deviceless.so" "$wheel/libcudnn.so.9"
export PYTHONPATH="$site" XDG_CACHE_HOME="$TMP/cache" PATH="$(dirname "$py"):$PATH"
asker=$BUILD/nullgpu/vcnull-cudnn-plans table=$TMP/cache/vramcast/workspaces.txt
dry() { # VARIABLE=VALUE...: the C program on a card that is not there; its lines in $out
	# words are split on purpose
	out=$(env "$@" "$VRAMCAST" dryrun -g rtx3060 --no-record --report "$TMP/report.json" -- "$PWD/$BUILD/tests/nullgpu/cudnn" $shape 2> "$TMP/err")
}
says() { if printf '%s\n' "$out" | grep -qx "$2"; then pass "$1"; else fail "$1" "wanted: $2" "$out" "$(cat "$TMP/err")"; fi; }
names() { # NAME PATTERN: what the report calls unknown
	if grep -q "$2" "$TMP/report.json"; then pass "$1"; else fail "$1" "wanted: $2" "$(cat "$TMP/report.json")"; fi
}
shape=
# x 8x16x32x32, w 24x16x3x3, y 8x24x32x32: 331136 elements; deviceVer 860
dry A=1
says "the installed library's plans are the answer" "forward 331996 165998 0"
says "... for each direction" "filter 331996 165998 0"
check "... no rule took part" sh -c "! grep -q 'by rule' '$TMP/report.json'"
names "... and the verdict names what another plan would take" '"single_counted": *331996'
key='data f32 nchw 8x16x32x32 24x16x3x3 8x24x32x32 1x1 1x1 1x1'
check "each answer joins the table of the user" grep -qx "8.6/28@[0-9]*,[0-9]* 9.11.0 $key 331996:t,165998:n,0" "$table"
check "... once" test "$(grep -c . "$table")" = 4
dry DEVICELESS=dies
says "the next run asks nobody" "forward 331996 165998 0"
dry FALLBACK=1
says "the fallback list is another" "forward 7"
check "... with a row of its own" grep -q ' forward/fallback f32 nchw .* 7$' "$table"
rm "$table"; dry CHILD=1
says "a forked child asks for itself" "child 659676 329838 0"
says "... and its parent goes on" "filter 331996 165998 0"

rm "$table"; dry DEVICELESS=old
says "a library before 9.8 is not asked" "forward 0"
names "... and the verdict says so" 'by rule (cuDNN 9.7 cannot be asked, 9.8 and newer can)'
dry DEVICELESS=dies
says "a library that ends its process leaves the rule" "data 1324544 0"
names "... and the verdict says so" 'by rule (cuDNN ended the process that asked it)'
rm -f "$TMP/mark"; dry DEVICELESS=once DEVICELESS_MARK="$TMP/mark"
says "... where it does so once, the next question is answered" "filter 331996 165998 0"
rm -f "$table"; dry DEVICELESS=refuses
names "a library that takes no such card is named with its words" 'by rule (finalize(l->card): CUDNN_STATUS_NOT_SUPPORTED)'
dry DEVICELESS=empty
names "a library that knows no plan leaves the rule" 'by rule (cuDNN named no algorithm)'
check "... and nothing joins the table" test ! -e "$table"
rm "$wheel/libcudnn.so.9"; dry A=1
names "without a library the rule answers, and the verdict says why" "by rule (no cuDNN is installed; 'vramcast doctor' says which)"
echo text > "$wheel/libcudnn.so.9"; dry A=1
names "a file that is no library is named" 'by rule (the cuDNN that is installed does not load)'
check "no process is left behind" sh -c "! ps -e -o args | grep -v grep | grep -q '$asker serve .* $table'"

# what a card answered
rm -f "$table"; ln -sf "$PWD/$BUILD/tests/nullgpu/deviceless.so" "$wheel/libcudnn.so.9"
asked() { env A=1 "$VRAMCAST" dryrun "$@" --no-record --report "$TMP/report.json" -- "$PWD/$BUILD/tests/nullgpu/cudnn" 2> "$TMP/err"; }
out=$(asked -g rtx3060 --questions "$TMP/asked")
check "dryrun --questions: each direction once" test "$(grep -c '^8.6/28 9.11.0 [a-z]* f32 nchw 8x16x32x32 24x16x3x3 8x24x32x32 ' "$TMP/asked") $(sort "$TMP/asked" | uniq -d)" = "3 "
card() { printf '# vramcast card 1\n# name %s\n# total 12000000000\n# context 400000000\n# addresses up\n' "$1"
	awk '/^8/ { $NF = 7000000 + NR; print }' "$TMP/asked"; }
card 'NVIDIA GeForce RTX 3060' > "$TMP/c.vcc"
out=$(asked --card "$TMP/c.vcc")
says "dryrun --card: the card's own workspace is the answer" "$(awk '/ forward / { print "forward", $NF }' "$TMP/c.vcc")"
check "... and no interval is left" sh -c "! grep -q convolution '$TMP/report.json'"
check "... its memory and its context count" grep -q '"context": *400000000,' "$TMP/report.json"
out=$(asked --card "$TMP/c.vcc" --context 1MiB)
check "... unless the user says otherwise" grep -q '"context": *1048576,' "$TMP/report.json"
refused() { # NAME OPTIONS CODE SENTENCE
	# options are words
	# shellcheck disable=SC2086
	run dryrun --card "$TMP/x.vcc" $2 --no-record -- true; expect "$1" "$3" '' "$4"
}
card 'NVIDIA GeForce RTX 3060' | sed 's/^8.6/8.9/' > "$TMP/x.vcc"; refused "a row of another card is an error" "" 125 'x.vcc:6: this row is of another card'
card 'wrong' > "$TMP/x.vcc"; refused "so is a card that is not known" "" 125 'of a wrong, which is not among'
card 'NVIDIA GeForce RTX 3060' | sed 's/400000000/much/' > "$TMP/x.vcc"; refused "and what is no number" "" 125 'x.vcc:4: this is no number of bytes'
cp "$TMP/asked" "$TMP/x.vcc"; refused "and the list of questions" "" 125 "x.vcc:1: the first line is not '# vramcast card 1'"
cp "$TMP/c.vcc" "$TMP/x.vcc"; refused "and another card beside it" "-g t4" 2 'is of the GeForce RTX 3060.*, and -g names the Tesla T4'

# cards, in the words of the library
mkdir "$TMP/lib"; ln -s "$PWD/$BUILD/nullgpu/vcnull-libcuda.so.1" "$TMP/lib/libcuda.so.1"
run gpus h100-80g-sxm --export-properties -
expect "the properties of a card of the table" 0 '"deviceVer": 900.* "multiProcessorCount": 132.* "smClockRateKHz": 1980000, "memClockRateKHz": 2619000'
env LD_LIBRARY_PATH="$TMP/lib" VRAMCAST_NULL_CC=8.0 VRAMCAST_NULL_SMS=108 "$VRAMCAST" gpus --export-properties "$TMP/there.json"
check "... and of one that the driver knows" grep -q '"deviceVer": 800.* "multiProcessorCount": 108' "$TMP/there.json"
check "... with the same members" test "$(tr -cd '":a-zA-Z' < "$TMP/there.json" | tr ':' '\n' | wc -l)" = "$(tr -cd '":a-zA-Z' < "$TMP/out" | tr ':' '\n' | wc -l)"
run gpus --export-properties - --device 99; expect "a card that is not there is an error" 1 '' 'no NVIDIA driver to ask|says nothing of device 99'
run gpus a100-40g-sxm rtx3060 --export-properties -; expect "one card at a time" 2 '' 'writes one card'
run dryrun -g 'A100 80GB' --no-record -- true
expect "a name of several cards is asked about" 2 '' "gpu 'A100 80GB' is one of a100-80g-pcie, a100-80g-sxm: say which"

# by hand
"$VRAMCAST" gpus h100-80g-sxm --export-properties "$TMP/card.json"
lib=$BUILD/tests/nullgpu/deviceless.so
check "the library's version" test "$("$asker" version "$lib")" = 91100
printf '# shapes\n%s\n* * %s 5,0\n' "$key" "$(echo "$key" | sed 's/data/data\/fallback/')" > "$TMP/shapes"
"$asker" rows "$lib" "$TMP/card.json" 9.0/132 < "$TMP/shapes" > "$TMP/out" 2> "$TMP/err"
check "a list of shapes becomes a table" grep -qx "9.0/132 9.11.0 $key 332036:t,166018:n,0" "$TMP/out"
check "... with the fallback list where it is asked for" grep -q '^9.0/132 9.11.0 data/fallback f32 .* 7$' "$TMP/out"
echo 'data f32 nchw 8x16 24x16x3x3 8x24x32x32 1x1 1x1 1x1' | "$asker" rows "$lib" "$TMP/card.json" > "$TMP/out"
check "a shape that is none is named" grep -q '^# data f32 nchw 8x16 ' "$TMP/out"
"$asker" rows /nowhere/libcudnn.so.9 "$TMP/card.json" < "$TMP/shapes" > "$TMP/out" 2> "$TMP/err"
check "a library that is not there is an error" grep -q '/nowhere/libcudnn.so.9: cannot open' "$TMP/err"
finish
