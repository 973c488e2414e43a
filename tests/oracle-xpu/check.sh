#!/bin/sh
# check.sh - random operations through PyTorch's own XPU allocator, compiled from its source, and through the torch model.
#   ORACLE_XPU="2.6.0"       releases            ORACLE_OPS=300000   operations per release
#   ORACLE_SEED=1            first seed          ORACLE_CACHE=DIR    sources and drivers (outside the tree)
#   XPU_SOURCE=DIR           sources that are already there: DIR/RELEASE/c10/xpu
here=$(dirname "$0")
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}"
versions=${ORACLE_XPU:-2.6.0}; play=$BUILD/tests/oracle-xpu-play; each=3000
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
# shellcheck disable=SC2086
"$here/build.sh" $versions
failed=0
for v in $versions; do
	driver=$ORACLE_CACHE/build-xpu/$v/driver; seed=${ORACLE_SEED:-1}; ops=0; set --
	while [ -x "$driver" ] && [ "$ops" -lt "${ORACLE_OPS:-300000}" ]; do
		"$play" -r "$seed" $each "${v%.*}" > "$t/s$seed" && timeout 60 "$driver" "$t/s$seed" || { echo "# the driver failed on seed $seed"; break; }
		set -- "$@" "$t/s$seed" "$t/s$seed.real"
		seed=$((seed + 1)); ops=$((ops + each))
	done
	if [ "$ops" -gt 0 ] && "$play" -v "${v%.*}" "$@" > "$t/out"; then
		sed 's/^/# /' "$t/out"; echo "ok - torch $v for XPU: addresses, sizes, driver calls and texts are the model's"
	else
		[ -s "$t/out" ] && sed 's/^/# /' "$t/out" | tail -n 8
		echo "not ok - torch $v for XPU"; failed=$((failed + 1))
	fi
	rm -f "$t"/s*
done
[ $failed = 0 ]
