#!/bin/bash
# cards.sh - two recordings of one card predict a run at another value on other cards (cards.txt), against dry runs there:
# VRAMCAST, PYTHON, CACHE (a folder for recordings, a card each), CARDS. TAP.
set -u
here=$(cd "$(dirname "$0")" && pwd)
list=$(mktemp); trap 'rm -f "$list"' EXIT
base=a100-80g-sxm n=0 bad=0
export VRAMCAST PYTHON PATH="$(dirname "$PYTHON"):$PATH" # whose cuDNN is asked
CARD=$base CACHE=$CACHE/$base LADDERS=$here/cards.txt "$here/record.sh" full >&2
awk -F'|' '!/^#/ { n = split($3, v, " "); print $1 "|" $2 "|" v[n] "|" $4 }' "$here/cards.txt" > "$list"
figure() { sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1; }
for card in $CARDS; do
	CARD=$card CACHE=$CACHE/$card LADDERS=$list "$here/record.sh" full >&2
	equal=0 inside=0 all=0
	while IFS='|' read -r program option values _; do
		program=${program#*.} program=${program// /} option=${option// /}
		set -- $values # words are split on purpose
		name=$(printf '%s_%s%%04d.vct' "$program" "$option")
		truth=$("$VRAMCAST" sim --json --no-advice "$CACHE/$card/$program/$(printf "$name" "$3")" | figure)
		said=$("$VRAMCAST" sim --json --no-advice "$CACHE/$base/$program/$(printf "$name" "$1")" \
			"$CACHE/$base/$program/$(printf "$name" "$2")" --set "$option=$3" -g "$card")
		best=$(printf '%s\n' "$said" | figure)
		ends=$(printf '%s\n' "$said" | awk '/"interval": \[/ { getline; low = $1; getline; sub(",", "", low); print low, $1; exit }')
		ends=${ends:-$best $best}
		[ -n "$truth" ] && [ -n "$best" ] || { echo "# $card, $program: no answer"; all=$((all + 1)); continue; }
		[ "${ends% *}" -le "$truth" ] && [ "${ends#* }" -ge "$truth" ] && inside=$((inside + 1))
		[ "$best" = "$truth" ] && equal=$((equal + 1)) || echo "# $card, $program: $best said ($ends), $truth needed"
		all=$((all + 1))
	done < <(grep -v '^#' "$here/cards.txt")
	n=$((n + 1)); verdict=ok
	[ "$inside" = "$all" ] || { verdict="not ok"; bad=1; }
	echo "$verdict $n - $card: $inside of $all inside, $equal equal to the byte"
done
echo "1..$n"
exit $bad
