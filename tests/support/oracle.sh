# oracle.sh - random scripts through a driver of the real allocator and through $play, for check.sh of an oracle folder.
# Needs $play, $t (an empty folder), $keep (where scripts that differ go); $ORACLE_OPS and $ORACLE_SEED as check.sh says.
each=2000; batch=50

# Nothing is compared behind an operation in which the real one hangs, so scripts go on until there is enough.
random() { # DRIVER [PLAY-ARGUMENT]
	real=$1; kind=${2:-}; seed=${ORACLE_SEED:-1}; ops=0; scripts=0; refused=0; back=0; smaller=0; different=0
	while [ "$ops" -lt "${ORACLE_OPS:-1000000}" ] && [ "$different" -lt 5 ]; do
		set --
		for k in $(seq "$seed" $((seed + batch - 1))); do
			"$play" -r "$k" $each $kind > "$t/s$k"
			timeout 300 "$real" "$t/s$k" > "$t/r$k" 2> /dev/null || { echo "# the driver failed on seed $k"; different=$((different + 1)); }
			set -- "$@" "$t/s$k" "$t/r$k"
		done
		"$play" "$@" > "$t/out" || { mkdir -p "$keep"; cp "$t"/[sr][0-9]* "$keep"; sed '$d; s/^/# /' "$t/out"; }
		read -r n _ o _ f _ b _ _ _ s _ _ d _ <<-END
			$(tail -n 1 "$t/out" | tr -d ,)
		END
		[ -n "$o" ] || { echo "# nothing was compared: $(cat "$t/out")"; different=$((different + 5)); o=0; d=0; }
		ops=$((ops + o)); refused=$((refused + f)); back=$((back + b)); smaller=$((smaller + s)); different=$((different + d)); scripts=$((scripts + n))
		rm -f "$t"/[sr][0-9]*
		seed=$((seed + batch))
	done
	echo "# $scripts scripts, $ops operations, $refused refusals, $back regions given back, $smaller smaller regions taken, $different different"
	[ $different = 0 ]
}
