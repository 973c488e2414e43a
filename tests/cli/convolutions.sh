#!/bin/bash
# convolutions.sh - workspace of convolutions at other batches (tests/recordings/convolutions.py): cuDNN names it, from the table
# that dry runs keep, or because the installed library is asked; else it is drawn.
. tests/support/tap.sh
R=tests/recordings
export XDG_CACHE_HOME=$TMP/cache VRAMCAST_NULL_CUDNN_LIBRARY=
table=$TMP/cache/vramcast/workspaces.txt
mkdir -p "${table%/*}"
said() { # ARGUMENT...: the guess and its interval
	run sim "$@" --json
	best=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
	interval=$(printf '%s\n' "$out" | awk '/"interval": \[/ { getline; low = $1 + 0; getline; print low, $1 + 0; exit }')
	interval=${interval:-$best $best}
}
inside() { [ "${2% *}" -le "$1" ] && [ "${2#* }" -ge "$1" ]; }
narrow() { inside "$1" "$2" && [ $((50 * (${2#* } - ${2% *}))) -le "$1" ]; } # two hundredths

for to in 10 16; do
	said $R/conv-$to.vct; truth=$best
	rm -f "$table"
	said $R/conv-4.vct $R/conv-6.vct --set batch=$to
	check "nobody names it: $to samples ($truth) lie inside ($interval)" inside "$truth" "$interval"
	check "... in a wide interval" test $((10 * (${interval#* } - ${interval% *}))) -gt "$truth"
	cp $R/conv-workspaces.txt "$table"
	said $R/conv-4.vct $R/conv-6.vct --set batch=$to
	check "named: the guess for $to samples is what they needed" test "$best" = "$truth"
	check "... in a narrow interval ($interval)" narrow "$truth" "$interval"
	said $R/conv-4.vct $R/conv-6.vct --set batch=$to -g t4
	check "plans of another card that nobody names are drawn ($interval)" test $((20 * (${interval#* } - ${interval% *}))) -gt "$truth"
done
said $R/conv-10-rtx4090.vct; truth=$best
said $R/conv-4.vct $R/conv-6.vct --set batch=10 -g rtx4090
check "on another card, too, the guess is what 10 samples needed there" test "$best" = "$truth"
check "... in a narrow interval ($interval)" narrow "$truth" "$interval"
said $R/conv-4.vct $R/conv-6.vct --set batch=10
check "... which is not what they need here" test "$best" != "$truth"
said $R/conv-4.vct; truth=$best
said $R/conv-6.vct $R/conv-10.vct $R/conv-16.vct --set batch=4
check "from three above: the guess is what 4 samples needed" test "$best" = "$truth"
check "... in a narrow interval ($interval)" narrow "$truth" "$interval"
run sim $R/conv-4.vct $R/conv-6.vct --set batch=10
expect "it says who names it" 0 'cuDNN 9.19.0 names the workspace of 100 % of the convolutions'
grep -v ' 10x' $R/conv-workspaces.txt > "$table"
run sim $R/conv-4.vct $R/conv-6.vct --set batch=10
expect "it says what would name the others" 0 'cuDNN 9.19.0 names the workspace of [0-9]* % of the convolutions.*python3 in PATH'
rm "$table"
run sim $R/conv-4.vct $R/conv-6.vct --set batch=10
expect "... and all of them" 0 'layers may need other workspace: their algorithms change.*python3 in PATH'

# The installed library is asked, here one of our own (tests/nullgpu/deviceless.c) that names sizes of its own.
command -v python3 > /dev/null || { skip "asking the installed cuDNN" "no python3"; finish; }
export VRAMCAST_NULL_CUDNN_LIBRARY=$PWD/$BUILD/tests/nullgpu/deviceless.so
said $R/conv-4.vct $R/conv-6.vct --set batch=10
check "a library of another version is not asked" test ! -e "$table"
DEVICELESS_VERSION=91900 said $R/conv-4.vct $R/conv-6.vct --set batch=10
check "the library is asked for what was recorded" grep -q '^8.0/108@1410,1593 9.19.0 forward f16 nchw 4x3x160x160 ' "$table"
check "... and, where it names other workspace, not believed" test $((10 * (${interval#* } - ${interval% *}))) -gt "$best"
rows=$(grep -c . "$table")
DEVICELESS_VERSION=91900 said $R/conv-4.vct $R/conv-6.vct --set batch=10
check "nobody is asked twice" test "$(grep -c . "$table")" = "$rows"
rm "$table"
DEVICELESS=dies DEVICELESS_VERSION=91900 said $R/conv-4.vct $R/conv-6.vct --set batch=10
check "a library that ends its process costs an answer only ($interval)" test $((10 * (${interval#* } - ${interval% *}))) -gt "$best"
finish
