#!/bin/sh
# check.sh - random servers, planned by SGLang's own code and by the model.
#   ORACLE_SGLANG="0.5.23 ..."   releases            ORACLE_OPS=500000   servers per release
#   ORACLE_SEED=1                seed                ORACLE_CACHE=DIR    SGLang's Python files (outside the tree)
here=$(dirname "$0")
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}"
versions=${ORACLE_SGLANG:-0.5.21 0.5.22 0.5.23}; play=$BUILD/tests/oracle-sglang-play
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
# shellcheck disable=SC2086
"$here/build.sh" $versions
failed=0
for v in $versions; do
	"$play" -r "${ORACLE_SEED:-1}" "${ORACLE_OPS:-500000}" > "$t/s"
	python3 "$here/judge.py" "$ORACLE_CACHE/sglang/$v" "$t/s" > "$t/r" 2> "$t/err" && "$play" -v "$t/s" "$t/r" > "$t/out" && r=ok || { r="not ok"; failed=1; }
	sed '$d; s/^/# /' "$t/out"; tail -n 3 "$t/err" | sed 's/^/# /'
	echo "$r - SGLang $v: $(tail -n 1 "$t/out")"
done
exit $failed
