#!/bin/bash
# fit.sh - fit finds the true largest value on every recorded ladder: for capacities at, between and just
# below the recorded needs of neighbouring rungs, from the two and the three smallest rungs, the answer must be
# at least the largest rung that fits, below the next rung (which does not), and never a rung that does not fit. What is
# said to fit for certain never reaches the next rung, and what is said to be possible always reaches the largest that fits.
# The card is named where the ladder's notes name it: workspace follows its multiprocessors, and a snapshot does not say.
. tests/support/tap.sh
L=${LADDERS:-tests/ladders/recordings}
PART=2097152 # segments grow in such steps: just below a need is this much below
if [ ! -d "$L" ]; then skip "fit on ladders" "no recordings in $L"; finish; fi

number() { sed -n 's/^[ {]*"'"$2"'": \([0-9]*\),*$/\1/p' "$1" | head -n 1; }
field() { printf '%s\n' "$out" | sed -n 's/^  "'"$1"'": \([0-9]*\),*$/\1/p'; }

# LADDER KNOB VALUE NEED TORCH CARD FILE, one line per rung, in order; CARD -: nobody knows
list() {
	for f in "$L"/*.pickle.zst "$L"/*.vct; do
		[ -f "$f" ] || continue
		stem=${f##*/}; stem=${stem%.pickle.zst}; stem=${stem%.vct}
		[ -f "$L/$stem.json" ] || continue
		head=${stem%_torch*}; torch=${stem##*_torch}
		value=${head##*[!0-9]}; knob=${head%$value}; name=${knob%_*}; knob=${knob##*_}
		case $knob in batch) case $name in *_eval) knob=eval_batch; name=${name%_eval};; esac;; esac
		card=$(sed -n 's/^[ {]*"card": "\(.*\)",*$/\1/p' "$L/$stem.json")
		echo "$name-$torch:$knob $knob $((10#$value)) $(number "$L/$stem.json" peak_reserved) ${torch%%[!0-9.]*} ${card:--} $f"
	done | sort -k1,1 -k3,3n -k7,7r | awk '!seen[$1 " " $3]++'
}

# The need is not monotone (MLP: 848 MiB at 1000, 836 at 1024, both recorded): a larger answer is right when it
# is no rung that fails and fit says that smaller values fail, down to or below the rung that does.
holes() {
	printf '%s\n' "$out" | grep -q '^  "monotone": false' && [ "${fails:-0}" -gt "$want" ] && [ "$fails" -le "$next" ] || return 1
	for i in "${!x[@]}"; do [ "${x[i]}" != "$got" ] || return 1; done
}

# Does the recorded rung fit? Its peak says so; slightly above the capacity the recording itself is replayed there,
# for expandable segments give pages back before they run out (ResNet-50 at 24: 2332 MiB alone, fits into 2330).
CLOSE=67108864
fits() { # RUNG CAPACITY
	[ "${need[$1]}" -gt "$2" ] || return 0
	[ $((need[$1] - $2)) -le $CLOSE ] || return 1
	"$VRAMCAST" sim "${file[$1]}" --torch "$torch" --capacity "$2" --context 0 --no-verify --no-advice --json 2> "$TMP/err" |
		grep -q '"verdict": "fits"'
}

# capacity -> ask fit, compare with the rungs
ask() { # CAPACITY
	run fit --torch "$torch" $named "${given[@]}" --find "$knob" --capacity "$1" --context 0 --json --target 1..100%
	asked=$((asked + 1))
	got=$(field largest); got=${got:-0}
	sure=$(field certain); sure=${sure:-0}; maybe=$(field possible); maybe=${maybe:-0}
	[ "$rc" = 0 ] || [ "$rc" = 3 ] || got="none ($err)"
	want=0; next=
	for i in "${!x[@]}"; do fits "$i" "$1" && want=${x[i]}; done
	for i in "${!x[@]}"; do [ "${x[i]}" -gt "$want" ] && [ -z "$next" ] && next=${x[i]}; done
	fails=$(field smallest_failing)
	[ "$sure" != "$maybe" ] || closed=$((closed + 1))
	# What is certain answers for both rungs: the largest that fits does, and the next one does not. Or nothing is open
	# and the answer lies behind such a hole, which it names.
	if [ "$sure" -ge "$want" ] && { [ -z "$next" ] || [ "$maybe" -lt "$next" ] || { [ "$sure" = "$maybe" ] && got=$sure holes; }; }; then
		decided=$((decided + 1))
	fi
	if { [ -n "$next" ] && [ "$sure" -ge "$next" ] && ! got=$sure holes; } || [ "$maybe" -lt "$want" ]; then
		ends=$((ends + 1)); missed="$missed capacity $1: certain $sure, possible $maybe, truth $want..${next:-};"
	fi
	case $got in
	*[!0-9]*) ok=1 ;;
	*)	[ "$got" -ge "$want" ] && { [ -z "$next" ] || [ "$got" -lt "$next" ] || holes; }; ok=$? ;;
	esac
	if [ $ok != 0 ]; then
		missed="$missed capacity $1: largest $got, truth $want..${next:-};"
		wrong=$((wrong + 1))
		case $got in *[!0-9]*) ;; *) [ -n "$next" ] && [ "$got" -ge "$next" ] && over=$((over + 1));; esac
	fi
}

ladder() { # COUNT of rungs to fit from; uses x need file
	k=$1; asked=0; wrong=0; over=0; ends=0; closed=0; decided=0; missed=
	[ ${#x[@]} -gt "$k" ] || return
	given=() named=
	[ "$card" = - ] || named="-g $card"
	for ((i = 0; i < k; i++)); do given+=("${file[i]}@$knob=${x[i]}"); done
	caps=$(for ((i = k - 1; i < ${#x[@]}; i++)); do echo "${need[i]}"; done | sort -n | awk -v p=$PART '
		NR > 1 && $1 - last >= 3 * p { printf "%.0f\n%.0f\n%.0f\n", last, (last + $1) / 2, $1 - p } { last = $1 }')
	for c in $caps; do ask "$c"; done
	total=$((total + asked)); bad=$((bad + wrong)); toohigh=$((toohigh + over))
	badends=$((badends + ends)); allclosed=$((allclosed + closed)); alldecided=$((alldecided + decided))
	printf '# %-34s from %d: %2d capacities, %d wrong, %d decided, %d with nothing open%s\n' "$ladder" "$k" "$asked" "$wrong" "$decided" "$closed" "${missed:+ ($missed)}"
}

[ -n "$(list)" ] || fail "$L has recordings of ladders, each with its notes"
for k in 2 3; do
	total=0; bad=0; toohigh=0; badends=0; allclosed=0; alldecided=0; last=
	while read -r ladder knob value bytes torch card path; do
		if [ "$ladder" != "$last" ]; then
			keep=("$ladder" "$knob" "$torch" "$card")
			if [ -n "$last" ]; then ladder=$last knob=$lastknob torch=$lasttorch card=$lastcard; ladder $k; ladder=${keep[0]} knob=${keep[1]} torch=${keep[2]} card=${keep[3]}; fi
			x=() need=() file=()
		fi
		[ "$ladder" != end ] || continue
		x+=("$value"); need+=("$bytes"); file+=("$path"); last=$ladder lastknob=$knob lasttorch=$torch lastcard=$card
	done < <(list; echo "end end 0 0 0 - end")
	name="fit from the $k lowest rungs names the true largest for $((total - bad)) of $total capacities ($toohigh too high)"
	if [ $bad = 0 ]; then pass "$name"; else fail "$name"; fi
	name="what is certain and what is possible from the $k lowest holds the truth $((total - badends)) of $total times, decides both rungs $alldecided times, $allclosed times with nothing open"
	if [ $badends = 0 ]; then pass "$name"; else fail "$name"; fi
done
finish
