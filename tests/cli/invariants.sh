#!/bin/sh
# invariants.sh - what must hold of every recording: a setting that cannot matter changes nothing; a card smaller than
# what was reserved never fits without a flush; what tune calls "now" is the answer of sim.
. tests/support/tap.sh
one() { sed -n "/\"runs\": \[/,\$s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$2" | head -n 1; }
# The answer without what names the settings themselves.
answer() { sed -n '/"runs": \[/,$p' "$1" | sed '/"changes": \[\]/d; /"changes": \[/,/\]/d' | grep -v '"conf"'; }
same=0 small=0 tuned=0 files=0 just=yes bad=
for f in traces/*.vct tests/recordings/*.vct tests/ladders/recordings/llama-lora-expandable_*.vct tests/snapshots/torch-2.1*.py.pickle.gz $(ls tests/whatif/*.vct | sed -n '1~4p'); do
	"$VRAMCAST" sim "$f" --json --no-advice > "$TMP/own" 2> /dev/null || [ $? -ge 3 ] || continue
	[ "$(one model "$TMP/own")" = torch ] || continue
	files=$((files + 1))
	conf=$(sed -n '/"trace": {/,/"fidelity"/s/^ *"conf": "\(.*\)",*$/\1/p' "$TMP/own" | head -n 1)
	case $f$conf in
	*max_split*) same=$((same + 1)) ;; # it would be set twice
	*/expoom.vct*) same=$((same + 1)) ;; # the program itself changes its settings on the way
	*)	"$VRAMCAST" sim "$f" --json --no-advice --conf "${conf:+$conf,}max_split_size_mb:8000000" > "$TMP/other" 2> /dev/null
		answer "$TMP/own" > "$TMP/a"; answer "$TMP/other" > "$TMP/b"
		if cmp -s "$TMP/a" "$TMP/b"; then same=$((same + 1)); else bad="$bad $f: $(diff "$TMP/a" "$TMP/b" | sed -n '2p;4p' | tr '\n' ' ')"; fi ;;
	esac
	grep -q '"exact": true' "$TMP/own" || { small=$((small + 1)) tuned=$((tuned + 1)); continue; }
	# A device of just that size is one whose segments cannot grow as far; the run fits all the same.
	peak=$(one peak_reserved "$TMP/own")
	if [ "$(one verdict "$TMP/own")" = fits ]; then
		"$VRAMCAST" sim "$f" --json --no-advice --capacity "$peak" --context 0 > "$TMP/other" 2> /dev/null
		[ "$(one peak_reserved "$TMP/other")" = "$peak" ] && [ "$(one verdict_low "$TMP/other")" = fits ] || bad="$bad $f does not fit $peak" just=no
	fi
	less=$((peak - 2097152))
	[ $less -gt 0 ] && "$VRAMCAST" sim "$f" --json --no-advice --capacity $less --context 0 > "$TMP/other" 2> /dev/null
	if [ $less -le 0 ] || [ "$(one verdict "$TMP/other")" != fits ]; then small=$((small + 1)); else bad="$bad $f fits $less"; fi
	"$VRAMCAST" tune "$f" --json --top 1 > "$TMP/tune" 2> /dev/null
	now=$(sed -n '/"now": {/,/}/s/^ *"peak_reserved": \([0-9]*\),*$/\1/p' "$TMP/tune" | head -n 1)
	[ "$now" = "$(one peak_reserved "$TMP/own")" ] && tuned=$((tuned + 1)) || bad="$bad $f: tune says $now now"
done
[ $files -gt 40 ] && pass "$files recordings" || fail "more than 40 recordings" "$files"
[ $same = $files ] && pass "a setting that cannot matter changes nothing" || fail "a setting that cannot matter changes nothing ($same of $files)" "$bad"
[ $small = $files ] && pass "a card smaller than what was reserved does not fit" || fail "a card smaller than what was reserved does not fit ($small of $files)" "$bad"
[ $just = yes ] && pass "a card that holds what was reserved is large enough" || fail "a card that holds what was reserved is large enough" "$bad"
[ $tuned = $files ] && pass "tune begins where sim does" || fail "tune begins where sim does ($tuned of $files)" "$bad"
# A setting under which it needs a hundred times as much: the ends lie around the best estimate, and neither is absurd.
"$VRAMCAST" sim tests/whatif/train-capacity-60-500004.vct --torch 2.11.0 --conf large_segment_size_mb:40000 --context 0 --json --no-advice > "$TMP/out" 2> /dev/null
ends=$(tr -d ' \n' < "$TMP/out" | sed -n 's/.*"runs":.*"interval":\[\([0-9]*\),\([0-9]*\)\],"level".*/\1 \2/p')
best=$(one peak_reserved "$TMP/out")
[ "${ends% *}" -le "$best" ] && [ "$best" -le "${ends#* }" ] && [ "${ends#* }" -le $((2 * best)) ] && pass "an interval far from the recording" ||
	fail "an interval far from the recording" "$ends around $best"
finish
