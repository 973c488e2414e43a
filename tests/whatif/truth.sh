#!/bin/sh
# truth.sh - what-ifs against what the real allocator of PyTorch did with five orders of addresses (README.md): the truth
# lies in the span that is said, "exact" is never wrong, and no certain verdict is.
. tests/support/tap.sh
D=tests/whatif
value() { sed -n "/\"runs\": \[/,\$s/^ *\"$1\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p" "$TMP/out" | head -n 1; } # of the answer
bound() { tr -d ' \n' < "$TMP/out" | sed -n 's/.*"runs":.*"interval":\[\([0-9]*\),\([0-9]*\)\],"level".*/\'"$1"'/p'; }
rank() { case $1 in fits) echo 0 ;; flushes) echo 1 ;; oom) echo 2 ;; *) echo -1 ;; esac; }
judge() { # LOW HIGH VERDICTS: of the real allocator; says what is wrong of the answer
	low=$(bound 1) high=$(bound 2) best=$(value peak_reserved) verdict=$(value verdict) level=$(value level)
	: "${low:=$best}" "${high:=$best}"
	first=$(rank "$verdict") last=$first
	[ "$verdict" != undecided ] || { first=$(rank "$(value verdict_low)") last=$(rank "$(value verdict_high)"); }
	[ "$verdict" = oom ] || [ "$2" = 0 ] || { [ "$low" -le "$1" ] && [ "$2" -le "$high" ]; } || echo "the truth is $1 to $2, said was $low to $high ($level)"
	[ "$level" != exact ] || [ "$low" = "$high" ] || echo "exact, and yet $low to $high"
	for v in $3; do
		k=$(rank "$v"); [ "$first" -le "$k" ] && [ "$k" -le "$last" ] || echo "the truth is $v, said was $verdict ($level)"
	done
}
while IFS='|' read -r file options low high verdicts release; do
	case $file in '#'*) continue ;; esac
	eval "run sim $D/$file --context 0 --json --no-advice $options"
	wrong=$(judge "$low" "$high" "$verdicts")
	if [ -z "$wrong" ]; then pass "torch $release, $file $options"
	else fail "torch $release, $file $options" "$wrong"; fi
done < $D/truth.txt
finish
