#!/bin/sh
# build.sh RELEASE... - the Python files of each vLLM release (the wheel has 0.3 - 0.5 GB; 10 MB are kept). Everything goes below
# $ORACLE_CACHE, outside the tree. Needs pip; a wheel that already lies in $WHEELS is used as it is.
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}/vllm
wheels=${WHEELS:-$cache/wheels}

fetch() { # RELEASE
	[ -e "$cache/$1/vllm/v1/core/block_pool.py" ] && return 0
	set -- "$1" "$wheels"/vllm-"$1"-*.whl
	if [ ! -e "$2" ]; then
		mkdir -p "$cache/new" && python3 -m pip download --no-deps --only-binary=:all: -q -d "$cache/new" "vllm==$1" || return 1
		set -- "$1" "$cache"/new/vllm-"$1"-*.whl
	fi
	python3 - "$2" "$cache/$1" <<'PY' || { rm -rf "$cache/new"; return 1; }
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
for n in z.namelist():
    if n.startswith(("vllm/v1/", "vllm/utils/", "vllm/config/")) and n.endswith(".py"): z.extract(n, sys.argv[2])
PY
	rm -rf "$cache/new"
}

bad=0
for v in "$@"; do
	fetch "$v" || { echo "# vLLM $v could not be fetched"; bad=1; }
done
exit $bad
