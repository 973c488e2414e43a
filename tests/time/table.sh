#!/bin/bash
# table.sh DIR [K] - how well the time of a step is predicted: recordings NAME-KNOB-VALUE.vct in DIR, from the K
# lowest values of each ladder (2) all others; one line per prediction, medians at the end.
# Recordings of dry runs will do (vramcast dryrun -o).
V=${VRAMCAST:-build/vramcast}; dir=${1:?usage: table.sh DIR [K]}; k=${2:-2}
field() { sed -n "s/^ *\"$1\": \([-0-9.e]*\),*\$/\1/p" | head -n 1; }
for ladder in $(ls "$dir" | sed -n 's/-[0-9]*\.vct$//p' | sort -u); do
	knob=${ladder##*-}
	values=$(ls "$dir" | sed -n "s/^$ladder-\([0-9]*\)\.vct\$/\1/p" | sort -n)
	low=$(printf '%s\n' $values | head -n "$k")
	from=$(for v in $low; do printf '%s ' "$dir/$ladder-$v.vct@$knob=$v"; done)
	for v in $(printf '%s\n' $values | tail -n +$((k + 1))); do
		truth=$("$V" info "$dir/$ladder-$v.vct" --no-verify --json | field step_ns)
		json=$("$V" sim $from --set "$knob=$v" --no-verify --no-advice --json)
		said=$(printf '%s\n' "$json" | field step_ns)
		ends=$(printf '%s\n' "$json" | tr -d '\n ' | sed -n 's/.*"interval_ns":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p')
		echo "$ladder $v ${truth:-0} ${said:-0} ${ends:-0 0}"
	done
done | awk -v k="$k" '
	function abs(x) { return x < 0 ? -x : x }
	BEGIN { printf "%-18s %6s %12s %12s %8s  %s\n", "ladder", "value", "recorded ms", "predicted ms", "error", "interval ms" }
	!$3 || !$4 { printf "%-18s %6s  unknown\n", $1, $2; lost++; next }
	{ e = ($4 - $3) / $3 * 100; lo = $5 ? $5 : $4; hi = $6 ? $6 : $4
	  inside += $3 >= lo * 0.999 && $3 <= hi * 1.001; n++
	  for (i = n; i > 1 && all[i - 1] > abs(e); i--) all[i] = all[i - 1]
	  all[i] = abs(e)
	  printf "%-18s %6s %12.3f %12.3f %+7.2f%%  %.3f .. %.3f\n", $1, $2, $3 / 1e6, $4 / 1e6, e, lo / 1e6, hi / 1e6 }
	END { if (n) printf "from the %d lowest: %d predictions, median error %.2f %%, worst %.2f %%, %d inside the interval, %d unknown\n", k, n,
	      (all[int((n + 1) / 2)] + all[int(n / 2) + 1]) / 2, all[n], inside, lost }'
