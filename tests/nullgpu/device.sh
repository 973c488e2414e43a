#!/bin/sh
# device.sh - the null device seen by a C program, twice, and in both address styles.
. tests/support/tap.sh
mkdir -p "$TMP/lib"
for f in "$PWD/$BUILD"/nullgpu/vcnull-*; do
	case $f in *.map|*.py|*.so.13) continue ;; esac
	ln -sf "$f" "$TMP/lib/${f##*/vcnull-}"
done
program() {
	env LD_LIBRARY_PATH="$TMP/lib" VRAMCAST_NULL_TOTAL=1073741824 VRAMCAST_NULL_CONTEXT=104857600 \
		VRAMCAST_NULL_OTHERS=52428800@4242 VRAMCAST_NULL_DEVICES=2 VRAMCAST_NULL_NAME="Test Card" \
		"$@" "$BUILD/tests/nullgpu/program" 2> "$TMP/err"
}
program > "$TMP/first"; rc=$?
if [ "$(grep -c '^ok' "$TMP/first")" -lt 40 ] || [ $rc != 0 ]; then
	fail "the device keeps its promises to a C program" "exit $rc" "$(grep -v '^ok' "$TMP/first")" "$(cat "$TMP/err")"
else
	pass "the device keeps its promises to a C program ($(grep -c '^ok' "$TMP/first") of them)"
fi
check "a runtime that is not replaced is refused in a sentence, once" test "$(grep -c 'a CUDA runtime of its own.*-cudart shared' "$TMP/err")" = 1
program > "$TMP/second"
check "two runs see the same addresses and times" cmp "$TMP/first" "$TMP/second"
addresses() { sed -n 's/^trace: addresses //p' "$TMP/$1"; }
# shellcheck disable=SC2046
set -- $(addresses first)
check "what the context left over is used first" test $(($1 - $2)) = $((490 << 20))
check "a later request goes on in the same range" test $(($3 - $2)) = $((20 << 20))
check "fresh addresses go down in windows of a multiple of 32 MiB" test $(($2 - $4)) = $((416 << 20))
program env VRAMCAST_NULL_ADDRESSES=up > "$TMP/up"
# shellcheck disable=SC2046
set -- $(addresses up)
check "the other style goes up without gaps" test $(($2 - $1)) = $((20 << 20)) -a $(($3 - $2)) = $((20 << 20))
program env VRAMCAST_NULL_REPORT="$TMP" > /dev/null
check "a process leaves its refusals and the largest of them" sh -c 'od -A n -t u8 -j 16 -N 16 "$1" | grep -q "^ *2 *918552576$"' sh "$TMP"/report.*
finish
