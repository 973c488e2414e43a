#!/bin/sh
# check_whatif.sh - random whole programs, recorded from the real allocator of several PyTorch releases; capacity and
# settings are changed, and what vramcast says is judged by what the real allocator then does.
#   WHATIF_VERSIONS="2.9.1 ..."  releases          WHATIF_CASES=3000   how many       WHATIF_SEED=1   the first one
#   WHATIF_FAMILY=train|infer|walk|phases          WHATIF_CUT=0|35|60|80              only those
#   WHATIF_CHANGE=capacity|settings|both|split|no-effect|roundup|expandable|gc|default   only those
#   WHATIF_JOBS=2                processes         WHATIF_CSV=FILE     one row for each case
#   KEEP=DIR                     recordings, scripts and truth of cases that fail
#   ORACLE_CACHE=DIR             built oracles; what they said is kept in its folder whatif, by script
here=$(dirname "$0")
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}"
versions=${WHATIF_VERSIONS:-2.0.1 2.1.2 2.3.1 2.4.1 2.6.0 2.8.0 2.9.1 2.10.0 2.11.0 2.12.1 2.13.0 2.15.0}
[ -z "$KEEP" ] || mkdir -p "$KEEP" || exit 1
# shellcheck disable=SC2086
"$here/build.sh" $versions || { echo "not ok - an oracle could not be built"; exit 1; }
# An oracle that was built from an older tree takes any order of addresses that it does not know for the first one.
probe=$(mktemp -d); trap 'rm -rf "$probe"' EXIT
printf 'vramcast-golden 1\ntotal 85899345920\nva window\nm 1 512 0\n' > "$probe/s"
for v in $versions; do
	"$ORACLE_CACHE/build/$v/oracle" "$probe/s" "$probe/r" "$probe/n" && grep -q '^A 7f7ffe000000' "$probe/r" ||
		{ echo "not ok - the oracle of torch $v was built from another tree: delete $ORACLE_CACHE/build/$v/oracle"; exit 1; }
done
# shellcheck disable=SC2086
"$BUILD/tests/oracle-whatif" "$ORACLE_CACHE" "$VRAMCAST" "${WHATIF_CASES:-3000}" "${WHATIF_SEED:-1}" $versions
