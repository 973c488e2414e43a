#!/bin/sh
# check.sh - random operations through RMM's own pool_memory_resource, of several releases, and through the
# model.
#   ORACLE_RMM="25.10.0 ..." releases            ORACLE_OPS=1000000   operations per release
#   ORACLE_SEED=1            first seed          ORACLE_CACHE=DIR     headers and drivers (outside the tree)
#   ORACLE_KEEP=DIR          where scripts that differ go
here=$(dirname "$0")
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}"
versions=${ORACLE_RMM:-24.12.1 25.10.0 26.10.0}
keep=${ORACLE_KEEP:-$BUILD/oracle-rmm-found}; play=$BUILD/tests/oracle-rmm-play
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
# shellcheck disable=SC2086
"$here/build.sh" $versions
. tests/support/oracle.sh
failed=0
for v in $versions; do
	driver=$ORACLE_CACHE/rmm/$v/driver
	if [ -x "$driver" ] && random "$driver" pool; then
		echo "ok - librmm $v: addresses, refusals, their words and what the device gave are those of rmm_pool"
	else
		echo "not ok - librmm $v"; failed=$((failed + 1))
	fi
done
[ $failed = 0 ]
