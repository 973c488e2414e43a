#!/bin/sh
# build.sh RELEASE... - the Python files of each SGLang release that plan its pools. Everything goes below $ORACLE_CACHE, outside the
# tree. Needs pip; a wheel that already lies in $WHEELS is used as it is.
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}/sglang
wheels=${WHEELS:-$cache/wheels}
bad=0
for v in "$@"; do
	[ -e "$cache/$v/sglang/srt/managers/schedule_policy.py" ] && continue
	set -- "$wheels"/sglang-"$v"-*.whl
	if [ ! -e "$1" ]; then
		mkdir -p "$cache/new" && python3 -m pip download --no-deps --only-binary=:all: -q -d "$cache/new" "sglang==$v" || { echo "# SGLang $v could not be fetched"; bad=1; continue; }
		set -- "$cache"/new/sglang-"$v"-*.whl
	fi
	python3 - "$1" "$cache/$v" <<'PY' || bad=1
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
for n in z.namelist():
    if n.startswith(("sglang/srt/mem_cache/", "sglang/srt/model_executor/", "sglang/srt/managers/")) and n.endswith(".py"): z.extract(n, sys.argv[2])
PY
	rm -rf "$cache/new"
done
exit $bad
