#!/bin/sh
# check.sh - random operations through TensorFlow's own BFCAllocator, of several releases, and through the model.
#   ORACLE_TF="2.21.0 ..."   releases            ORACLE_OPS=1000000   operations per release
#   ORACLE_SEED=1            first seed          ORACLE_CACHE=DIR     wheels' libraries and drivers (outside the tree)
#   ORACLE_KEEP=DIR          where scripts that differ go
here=$(dirname "$0")
export ORACLE_CACHE="${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}" TF_CPP_MIN_LOG_LEVEL=3
versions=${ORACLE_TF:-2.12.1 2.16.2 2.21.0}
keep=${ORACLE_KEEP:-$BUILD/oracle-bfc-found}; play=$BUILD/tests/oracle-bfc-play
t=$(mktemp -d) || exit 1
trap 'rm -rf "$t"' EXIT
# shellcheck disable=SC2086
"$here/build.sh" $versions
failed=0

. tests/support/oracle.sh

# The words of 2.21: its log without times and places, without the lists between the warning and the sums.
words() {
	TF_CPP_MIN_LOG_LEVEL=0 "$driver" "$here/vectors/full.txt" 2>&1 > /dev/null | sed -n '/ran out of memory/,$p' |
		sed 's/^[IW][0-9]* [^]]*\] //' | grep -vE '^(BFCAllocator dump|Bin |Next region|InUse at|Free  at|  Size:| *Summary of|[0-9]+ Chunks of)' > "$t/real"
	"$play" -t "$here/vectors/full.txt" | diff "$t/real" - > "$t/diff" && return 0
	sed 's/^/# /' "$t/diff"; return 1
}

for v in $versions; do
	driver=$ORACLE_CACHE/tensorflow/$v/driver
	if [ -x "$driver" ] && random "$driver"; then
		echo "ok - tensorflow $v: addresses, sizes, statistics and regions are the model's"
	else
		echo "not ok - tensorflow $v"; failed=$((failed + 1))
	fi
	[ "$v" = 2.21.0 ] || continue
	if words; then echo "ok - tensorflow $v: and the words"; else echo "not ok - tensorflow $v: the words"; failed=$((failed + 1)); fi
done
[ $failed = 0 ]
