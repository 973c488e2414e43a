#!/bin/sh
# build.sh VERSION... - the oracle of each PyTorch release: fetches the wheel (0.5 - 0.9 GB, 5 MB are kept) and compiles the
# driver against its headers. Everything goes below $ORACLE_CACHE, outside the tree. Needs g++ and pip; a wheel that already
# lies in $WHEELS is used as it is.
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}
wheels=${WHEELS:-$cache/wheels}
mkdir -p "$cache" || exit 1

fetch() { # VERSION
	t=$cache/torch/$1
	[ -e "$t/torch/lib/libc10_cuda.so" ] && return 0
	set -- "$1" "$wheels"/torch-"$1"-*.whl
	if [ ! -e "$2" ]; then
		mkdir -p "$cache/new"
		python3 -m pip download --no-deps --only-binary=:all: -q -d "$cache/new" "torch==$1" || return 1
		set -- "$1" "$cache"/new/torch-"$1"-*.whl
	fi
	mkdir -p "$t"
	python3 - "$2" "$t" <<'PY' || return 1
import sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
keep = ("torch/lib/libc10.so", "torch/lib/libc10_cuda.so", "torch/include/c10/", "torch/include/torch/headeronly/", "torch/lib/libgomp")
for n in z.namelist():
    if n.startswith(keep): z.extract(n, sys.argv[2])
PY
	rm -rf "$cache/new"
}

# Names that the library asks for and our stand-ins do not define become stubs that say "not supported".
stubs() { # LIBRARY PATTERN OBJECT
	{ nm -D --undefined-only "$1" | sed 's/.* //; s/@.*//'; strings "$1"; } | grep -E "$2" | sort -u > "$d/want"
	nm --defined-only "$3" | sed 's/.* //' | sort -u > "$d/have"
	comm -23 "$d/want" "$d/have" | sed 's/.*/__attribute__((visibility("default"))) int &(void) { return 801; }/'
}

build() { # VERSION
	t=$cache/torch/$1/torch; d=$cache/build/$1; mkdir -p "$d"
	tv=$(echo "$1" | awk -F. '{print $1 * 100 + $2}')
	rt=$(readelf -d "$t/lib/libc10_cuda.so" | grep -o 'libcudart[^]]*')
	case $rt in *.11.0) cuda=11070 ;; *.12) cuda=12080 ;; *) cuda=13000 ;; esac
	abi=0; nm -DC --defined-only "$t/lib/libc10.so" | grep -q 'basic_string.*__cxx11' && nm -D --defined-only "$t/lib/libc10.so" | grep -q 'c105ErrorC.*cxx11' && abi=1
	[ "$tv" -ge 207 ] && abi=1
	std=c++17; [ "$tv" -ge 212 ] && std=c++20
	c="gcc -std=c11 -D_GNU_SOURCE -DVERSION=$cuda -O2 -fPIC -fvisibility=hidden -I$here -I$top"
	$c -c -o "$d/runtime.o" "$here/runtime.c" && $c -c -o "$d/cuda.o" "$here/driver.c" && $c -DNVML -c -o "$d/nvml.o" "$here/driver.c" || return 1
	stubs "$t/lib/libc10_cuda.so" '^cuda[A-Z][A-Za-z0-9_]+$' "$d/runtime.o" > "$d/stubs_runtime.c"
	stubs "$t/lib/libc10_cuda.so" '^cu[A-Z][A-Za-z0-9_]+$' "$d/cuda.o" > "$d/stubs_cuda.c"
	stubs "$t/lib/libc10_cuda.so" '^nvml[A-Z][A-Za-z0-9_]+$' "$d/nvml.o" > "$d/stubs_nvml.c"
	echo "$rt { *; };" > "$d/map"
	gcc -w -shared -fPIC -o "$d/$rt" "$d/runtime.o" "$d/stubs_runtime.c" -Wl,-soname,"$rt" -Wl,--version-script="$d/map" -ldl &&
	gcc -w -shared -fPIC -o "$d/libcuda.so.1" "$d/cuda.o" "$d/stubs_cuda.c" -Wl,-soname,libcuda.so.1 &&
	gcc -w -shared -fPIC -o "$d/libnvidia-ml.so.1" "$d/nvml.o" "$d/stubs_nvml.c" -Wl,-soname,libnvidia-ml.so.1 || return 1
	for f in "$here/gpu.c" "$top/tests/golden/script.c" "$top/simulator/replay/device.c" "$top/common/io.c" "$top/common/unpack.c" \
		"$top/common/error.c"; do
		$c -I"$top/tests/golden" -c -o "$d/$(basename "$f" .c).o" "$f" || return 1
	done
	g++ -O2 -w -std=$std -DTV="$tv" -DORACLE_CUDA=$cuda -D_GLIBCXX_USE_CXX11_ABI=$abi -I"$t/include" -I"$here/include" -I"$here" \
		-I"$top/tests/golden" -I"$top" -o "$d/oracle" "$here/oracle.cpp" "$d/gpu.o" "$d/script.o" "$d/device.o" "$d/io.o" "$d/unpack.o" "$d/error.o" \
		-rdynamic -Wl,--disable-new-dtags -Wl,-rpath,"$d:$t/lib" -L"$t/lib" -L"$d" -lc10_cuda -lc10 -l:"$rt" \
		-Wl,--no-as-needed -l:libcuda.so.1 -l:libnvidia-ml.so.1 -Wl,--allow-shlib-undefined -lz -lzstd -ldl 2> "$d/log"
}

bad=0
for v in "$@"; do
	stamp=$cache/build/$v/oracle
	if [ -e "$stamp" ] && [ -z "$(find "$here"/oracle.cpp "$here"/gpu.[ch] "$here"/runtime.c "$here"/driver.c "$here"/include \
		"$top/simulator/replay/device.c" "$top"/tests/golden/script.[ch] -newer "$stamp" -name '*.[ch]*')" ]; then
		continue
	fi
	if fetch "$v" && build "$v"; then
		echo "# oracle of torch $v built"
	else
		echo "# no oracle of torch $v: $(head -c 600 "$cache/build/$v/log" 2>/dev/null | tr '\n' ' ')"; bad=1
	fi
done
exit $bad
