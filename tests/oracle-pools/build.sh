#!/bin/sh
# build.sh - what check.sh needs, below $ORACLE_CACHE: the wheel of CuPy $ORACLE_CUPY (0.13 GB, unpacked 0.3 GB) with numpy. Needs gcc
# and pip.
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}/cupy
mkdir -p "$cache" || exit 1
device() { gcc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -fPIC -shared -I"$top" -o "$cache/device.so" "$top/simulator/replay/device.c" "$top/common/error.c"; }

cupy() {
	version=${ORACLE_CUPY:-14.2.0}
	[ -d "$cache/$version/cupy" ] && [ -d "$cache/$version/numpy" ] && return 0
	rm -rf "$cache/new"
	python3 -m pip install -q --no-deps --no-compile --only-binary=:all: --target "$cache/new" "cupy-cuda12x==$version" cuda-pathfinder numpy &&
	rm -rf "${cache:?}/$version" && mv "$cache/new" "$cache/$version"
}

device && cupy
