#!/bin/sh
# build.sh RELEASE... - the driver of each TensorFlow release: fetches the CPU wheel (0.2 - 0.3 GB; the library and the headers,
# 0.3 GB, are kept) and compiles driver.cpp against it. Everything goes below $ORACLE_CACHE, outside the tree. Needs g++ and pip.
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}/tensorflow

fetch() { # RELEASE
	[ -e "$cache/$1/tensorflow/libtensorflow_framework.so.2" ] && return 0
	mkdir -p "$cache/new" &&
	python3 -m pip download --no-deps --only-binary=:all: --python-version 3.11 -q -d "$cache/new" "tensorflow-cpu==$1" &&
	python3 - "$cache/new/tensorflow_cpu-$1"-*.whl "$cache/$1" <<'PY' || { rm -rf "$cache/new"; return 1; }
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
for n in z.namelist():
    if n.startswith(("tensorflow/include/", "tensorflow/libtensorflow_framework.so.2")): z.extract(n, sys.argv[2])
PY
	rm -rf "$cache/new"
}

# The header tells which rule holds after a refusal of the device: it keeps a flag where only the first one is backed off from.
build() { # RELEASE
	d=$cache/$1/tensorflow; rule=always
	grep -rqs started_backpedal_ "$d"/include/tsl/framework/bfc_allocator.h "$d"/include/tensorflow/tsl/framework/bfc_allocator.h && rule=once
	for f in simulator/replay/device.c common/error.c; do
		gcc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -I"$top" -c -o "$cache/$1/$(basename "$f" .c).o" "$top/$f" || return 1
	done
	g++ -std=c++17 -O1 -w -DRELEASE="\"$1\"" -DBACKPEDAL="\"$rule\"" -I"$d/include" -I"$top" -o "$cache/$1/driver" "$here/driver.cpp" \
		"$cache/$1/device.o" "$cache/$1/error.o" "$d/libtensorflow_framework.so.2" -Wl,-rpath,"$d"
}

bad=0
for v in "$@"; do
	stamp=$cache/$v/driver
	[ -e "$stamp" ] && [ -z "$(find "$here/driver.cpp" "$here/build.sh" "$top/simulator/replay/device.c" -newer "$stamp")" ] && continue
	if fetch "$v" && build "$v"; then
		echo "# driver of tensorflow $v built"
	else
		echo "# no driver of tensorflow $v"; bad=1
	fi
done
exit $bad
