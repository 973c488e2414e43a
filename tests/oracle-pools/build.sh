#!/bin/sh
# build.sh cupy|mindspore - what check.sh needs, below $ORACLE_CACHE. cupy: the wheel of $ORACLE_CUPY (0.13 GB, unpacked 0.3 GB) with
# numpy. mindspore: the libraries out of the wheel of 2.0.0 (0.95 GB, of which 0.4 GB are kept). Needs gcc, g++, pip, and for mindspore
# a shared libpython3.
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}/$1
mkdir -p "$cache" || exit 1
device() { gcc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -fPIC -shared -I"$top" -o "$cache/device.so" "$top/simulator/replay/device.c" "$top/common/error.c"; }

cupy() {
	version=${ORACLE_CUPY:-14.2.0}
	[ -d "$cache/$version/cupy" ] && [ -d "$cache/$version/numpy" ] && return 0
	rm -rf "$cache/new"
	python3 -m pip install -q --no-deps --no-compile --only-binary=:all: --target "$cache/new" "cupy-cuda12x==$version" cuda-pathfinder numpy &&
	rm -rf "${cache:?}/$version" && mv "$cache/new" "$cache/$version"
}

mindspore() {
	lib=$cache/2.0.0/mindspore/lib
	if [ ! -e "$lib/libmindspore_backend.so" ]; then
		rm -rf "$cache/new"
		python3 -m pip download --no-deps --only-binary=:all: --python-version 3.9 -q -d "$cache/new" mindspore==2.0.0 &&
		python3 - "$cache/new"/mindspore-2.0.0-*.whl "$cache/2.0.0" <<-'PY' || { rm -rf "$cache/new"; return 1; }
		import sys, zipfile
		z = zipfile.ZipFile(sys.argv[1])
		for n in z.namelist():
		    if n.startswith("mindspore/lib/lib") and n.count("/") == 2: z.extract(n, sys.argv[2])
		PY
		rm -rf "$cache/new"
	fi
	# The library refers to Python, which its process would have: any will do.
	python=$(find /lib /usr/lib /usr/local/lib "$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')" \
		-name 'libpython3.[0-9]*.so*' 2> /dev/null | head -n 1)
	[ -n "$python" ] || { echo "# no shared libpython3 (Debian package libpython3.11)"; return 1; }
	g++ -std=c++17 -O1 -D_GLIBCXX_USE_CXX11_ABI=0 -I"$top" -o "$cache/driver" "$here/mindspore_driver.cpp" "$cache/device.so" \
		"$lib/libmindspore_backend.so" -Wl,--no-as-needed "$python" -Wl,-rpath,"$cache:$lib:$(dirname "$python")" -Wl,--allow-shlib-undefined
}

device && case $1 in cupy) cupy ;; mindspore) mindspore ;; *) exit 2 ;; esac
