#!/bin/sh
# check.sh - random requests through vLLM's own scheduler and block pool, of several releases, and through the model.
#   ORACLE_VLLM="0.33.0 ..."   releases            ORACLE_OPS=500000   operations per release, again with groups of layers, and with drafts
#   ORACLE_SEED=1              first seed          ORACLE_CACHE=DIR    vLLM's Python files (outside the tree)
#   ORACLE_KEEP=DIR            where scripts that differ go
here=$(dirname "$0")
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}"
versions=${ORACLE_VLLM:-0.10.2 0.23.0 0.31.0 0.32.0 0.33.0}
keep=${ORACLE_KEEP:-$BUILD/oracle-vllm-found}; play=$BUILD/tests/oracle-vllm-play; batch=40; each=400
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
# shellcheck disable=SC2086
"$here/build.sh" $versions
failed=0

random() { # RELEASE -r|-g|-d|-l
	short=${1%.*}; seed=${ORACLE_SEED:-1}; ops=0; scripts=0; out=0; hits=0; different=0
	while [ "$ops" -lt "${ORACLE_OPS:-500000}" ] && [ "$different" = 0 ]; do
		set -- "$1" "$2"
		for k in $(seq "$seed" $((seed + batch - 1))); do
			"$play" "$2" "$k" $each "$short" > "$t/s$k"
			set -- "$@" "$t/s$k"
		done
		mode=$2; shift 2
		timeout 900 python3 "$here/judge.py" "$ORACLE_CACHE/vllm/$v" "$@" 2> "$t/err" || { tail -n 3 "$t/err" | sed 's/^/# /'; return 1; }
		set --
		for k in $(seq "$seed" $((seed + batch - 1))); do set -- "$@" "$t/s$k" "$t/s$k.real"; done
		"$play" -v "$short" "$@" > "$t/out" || { mkdir -p "$keep"; cp "$t"/s* "$keep"; sed '$d; s/^/# /' "$t/out"; }
		read -r n _ o _ p _ h _ _ _ _ _ d _ <<-END
			$(tail -n 1 "$t/out" | tr -d ,)
		END
		[ -n "$o" ] || { echo "# nothing was compared: $(cat "$t/out")"; return 1; }
		scripts=$((scripts + n)); ops=$((ops + o)); out=$((out + p)); hits=$((hits + h)); different=$((different + d))
		rm -f "$t"/s*
		set -- "$v" "$mode"
		seed=$((seed + batch))
	done
	echo "# $scripts scripts, $ops operations, $out preemptions, $hits tokens found in the cache, $different lines differ"
	[ $different = 0 ]
}

for v in $versions; do
	for mode in -r -g -d -l; do
		[ $mode = -r ] || "$play" $mode 1 1 "${v%.*}" > "$t/s" 2> "$t/err" || continue # its groups are not played
		if [ -e "$ORACLE_CACHE/vllm/$v/vllm/v1/core/block_pool.py" ] && random "$v" $mode; then
			case $mode in
			-r) what="blocks, the order of the free ones, hits and preemptions are" ;;
			-g) what="the same, with groups of layers, are" ;;
			-d) what="the same, with drafts, are" ;;
			-l) what="the groups of random layers, bytes of a block, tokens and requests are" ;;
			esac
			echo "ok - vLLM $v: $what the model's"
		else
			echo "not ok - vLLM $v $mode"; failed=$((failed + 1))
		fi
	done
done
[ $failed = 0 ]
