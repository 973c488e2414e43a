#!/bin/sh
# check.sh - random servers, planned by SGLang's own code and by the model; random requests, through its radix cache and admission.
#   ORACLE_SGLANG="0.5.23 ..."   releases            ORACLE_OPS=500000   servers per release, and operations
#   ORACLE_SEED=1                seed                ORACLE_CACHE=DIR    SGLang's Python files (outside the tree)
here=$(dirname "$0")
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}"
versions=${ORACLE_SGLANG:-0.5.21 0.5.22 0.5.23}; play=$BUILD/tests/oracle-sglang-play; serve=$BUILD/tests/oracle-sglang-serve
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

requests() { # RELEASE: 40 scripts at a time
	seed=${ORACLE_SEED:-1}; ops=0; back=0; hits=0
	while [ "$ops" -lt "${ORACLE_OPS:-500000}" ]; do
		set -- "$1"
		for k in $(seq "$seed" $((seed + 39))); do "$serve" -r "$k" 400 > "$t/q$k"; set -- "$@" "$t/q$k"; done
		v=$1; shift
		timeout 900 python3 "$here/judge_serve.py" "$ORACLE_CACHE/sglang/$v" "$@" 2> "$t/err" || { tail -n 3 "$t/err" | sed 's/^/# /'; return 1; }
		set --
		for k in $(seq "$seed" $((seed + 39))); do set -- "$@" "$t/q$k" "$t/q$k.real"; done
		"$serve" -v "$v" "$@" > "$t/out" || { sed 's/^/# /' "$t/out"; return 1; }
		read -r _ _ o _ b _ h _ <<-END
			$(tail -n 1 "$t/out" | tr -d ,)
		END
		ops=$((ops + o)); back=$((back + b)); hits=$((hits + h)); seed=$((seed + 40))
		rm -f "$t"/q*
		set -- "$v"
	done
	echo "# $ops operations, $back retractions, $hits tokens found, 0 lines differ"
}

for v in $versions; do
	[ "$v" = 0.5.21 ] && continue # its admission has other names
	requests "$v" && r=ok || { r="not ok"; failed=1; }
	echo "$r - SGLang $v: admissions, retractions, pages and hits are the model's"
done
exit $failed
