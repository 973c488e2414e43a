#!/bin/sh
# check.sh - random operations through CuPy's memory pool, and through the model.
#   ORACLE_CUPY=14.2.0   release of CuPy    ORACLE_OPS=1000000   operations
#   ORACLE_SEED=1        first seed         ORACLE_CACHE=DIR     the unpacked wheel (outside the tree)
#   ORACLE_KEEP=DIR      where scripts that differ go
here=$(dirname "$0"); pool=cupy
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}"
export ORACLE_CUPY="${ORACLE_CUPY:-14.2.0}"
keep=${ORACLE_KEEP:-$BUILD/oracle-$pool-found}; play=$BUILD/tests/oracle-pools-play; each=2000; batch=50
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
name="CuPy $ORACLE_CUPY"
set -- env "PYTHONPATH=$ORACLE_CACHE/cupy/$ORACLE_CUPY" python3 "$here/cupy_driver.py" "$ORACLE_CACHE/cupy/device.so"
"$here/build.sh" || { echo "not ok - $name could not be fetched"; exit 1; }
seed=${ORACLE_SEED:-1}; ops=0; refused=0; back=0; different=0; scripts=0
while [ "$ops" -lt "${ORACLE_OPS:-1000000}" ] && [ "$different" -lt 5 ]; do
	pairs=
	for k in $(seq "$seed" $((seed + batch - 1))); do
		"$play" -r "$k" $each 3 > "$t/s$k"; pairs="$pairs $t/s$k $t/r$k"
	done
	# shellcheck disable=SC2086
	timeout 600 "$@" $pairs > "$t/log" 2>&1 || { echo "# the driver failed: $(tail -n 1 "$t/log")"; different=5; }
	# shellcheck disable=SC2086
	"$play" "$pool" $pairs > "$t/out" || { mkdir -p "$keep"; cp "$t"/[sr][0-9]* "$keep"; sed '$d; s/^/# /' "$t/out"; }
	read -r n _ o _ f _ b _ _ _ d _ <<-END
		$(tail -n 1 "$t/out" | tr -d ,)
	END
	[ -n "$o" ] || { echo "# nothing was compared: $(cat "$t/out")"; different=5; break; }
	scripts=$((scripts + n)); ops=$((ops + o)); refused=$((refused + f)); back=$((back + b)); different=$((different + d))
	rm -f "$t"/[sr][0-9]*
	seed=$((seed + batch))
done
echo "# $scripts scripts, $ops operations, $refused refusals, $back regions given back, $different different"
if [ $different = 0 ]; then echo "ok - $name: addresses, sizes, totals, calls of the device and refusals are the model's"
else echo "not ok - $name"; exit 1; fi
