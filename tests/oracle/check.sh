#!/bin/sh
# check.sh - random operations through the real allocator of several PyTorch releases and through the model.
#   ORACLE_VERSIONS="2.9.1 ..."   releases           ORACLE_OPS=1000000   operations per release
#   ORACLE_SEED=1                 first seed         ORACLE_CACHE=DIR     wheels and built oracles (outside the tree)
#   ORACLE_KEEP=DIR               where differences go, shrunk
here=$(dirname "$0")
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}"
versions=${ORACLE_VERSIONS:-2.0.1 2.3.1 2.4.1 2.6.0 2.8.0 2.9.1 2.10.0 2.12.1 2.13.0 2.15.0}
keep=${ORACLE_KEEP:-$BUILD/oracle-found}; mkdir -p "$keep"
# shellcheck disable=SC2086
"$here/build.sh" $versions
passed=0; failed=0
for v in $versions; do
	o=$ORACLE_CACHE/build/$v/oracle
	if [ ! -x "$o" ]; then
		echo "not ok - torch $v: no oracle could be built"; failed=$((failed + 1)); continue
	fi
	if "$BUILD/tests/oracle-fuzz" "$o" "$v" "${ORACLE_OPS:-1000000}" "${ORACLE_SEED:-1}" "$keep"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
# What was found goes on as a vector: found scripts are replayed by `make check` once they lie in tests/golden/vectors.
for s in "$keep"/found_*.txt; do
	[ -e "$s" ] && echo "# a regression vector: $s (tests/oracle/keep.sh $s)"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
