#!/bin/sh
# build.sh - what check.sh needs, below $ORACLE_CACHE/cupy: the wheel of $ORACLE_CUPY (0.13 GB, unpacked 0.3 GB) with numpy, and
# the scripted device as a library. Needs gcc, pip and a Python that the wheel is made for.
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}/cupy
version=${ORACLE_CUPY:-14.2.0}
if [ ! -d "$cache/$version/cupy" ] || [ ! -d "$cache/$version/numpy" ]; then
	rm -rf "$cache/new"
	python3 -m pip install -q --no-deps --no-compile --only-binary=:all: --target "$cache/new" "cupy-cuda12x==$version" cuda-pathfinder numpy || exit 1
	mkdir -p "$cache" && rm -rf "${cache:?}/$version" && mv "$cache/new" "$cache/$version" || exit 1
fi
gcc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -fPIC -shared -I"$top" -o "$cache/device.so" "$top/simulator/replay/device.c" "$top/common/error.c"
