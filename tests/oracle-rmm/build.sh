#!/bin/sh
# build.sh RELEASE... - the driver of each RMM release: fetches the wheel of librmm (4 MB: headers, in later ones a small library),
# that of the logger it wants and NVIDIA's CUDA runtime headers, and compiles driver.cpp against them. Everything goes below
# $ORACLE_CACHE, outside the tree. Needs g++ and pip.
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}/rmm
runtime=12.9.79

fetch() { # FOLDER REQUIREMENT
	[ -e "$cache/$1/.whole" ] && return 0
	rm -rf "$cache/$1.new" && mkdir -p "$cache/$1.new" &&
	python3 -m pip download --no-deps --only-binary=:all: --python-version 3.11 --platform manylinux_2_28_x86_64 \
		--platform manylinux2014_x86_64 -q -d "$cache/$1.new" "$2" &&
	(cd "$cache/$1.new" && python3 -m zipfile -e ./*.whl . && rm ./*.whl && touch .whole) &&
	mv "$cache/$1.new" "$cache/$1" && return 0
	rm -rf "$cache/$1.new"; return 1
}

# The value of the parameter `release` is the last of its choices that is not newer.
build() { # RELEASE
	d=$cache/$1/librmm; std=17; libs="-L$d/lib64 -lspdlog -lfmt"; path=$d/lib64; logger=$cache
	[ ! -e "$d/include/rmm/mr/detail/pool_memory_resource_impl.hpp" ] || std=20
	for as in 26.10 25.12 25.4 24.12; do [ "$(printf '%s\n' $as "$1" | sort -V | head -n 1)" = $as ] && break; done
	wants=$(sed -n 's/^Requires-Dist: \(rapids-logger.*\)/\1/p' "$cache/$1"/librmm_cu12-*/METADATA | tr -d ' ')
	if [ -n "$wants" ]; then
		fetch "logger-${wants##*=}" "$wants" || return 1
		logger=$cache/logger-${wants##*=}/rapids_logger
		libs="-DHAS_LIBRARY $d/lib64/librmm.so $logger/lib64/librapids_logger.so"; path=$path:$logger/lib64
	fi
	for f in simulator/replay/device.c common/error.c; do
		gcc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -I"$top" -c -o "$cache/$1/$(basename "$f" .c).o" "$top/$f" || return 1
	done
	# shellcheck disable=SC2086
	g++ -std=c++$std -O1 -w -rdynamic -fno-access-control -DNDEBUG -DRELEASE="\"$1\"" -DAS="\"$as\"" -DSPDLOG_ACTIVE_LEVEL=SPDLOG_LEVEL_OFF -DSPDLOG_FMT_EXTERNAL \
		-DRMM_LOG_ACTIVE_LEVEL=RAPIDS_LOGGER_LOG_LEVEL_OFF -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE -I"$d/include" \
		-I"$d/include/rapids/libcudacxx" -I"$d/include/rapids" -I"$logger/include" -I"$cache/runtime/nvidia/cuda_runtime/include" -I"$top" \
		-o "$cache/$1/driver" "$here/driver.cpp" "$cache/$1/device.o" "$cache/$1/error.o" $libs -Wl,-rpath,"$path"
}

bad=0
for v in "$@"; do
	stamp=$cache/$v/driver
	[ -e "$stamp" ] && [ -z "$(find "$here/driver.cpp" "$here/build.sh" "$top/simulator/replay/device.c" -newer "$stamp")" ] && continue
	if fetch runtime "nvidia-cuda-runtime-cu12==$runtime" && fetch "$v" "librmm-cu12==$v" && build "$v"; then
		echo "# driver of librmm $v built"
	else
		echo "# no driver of librmm $v"; bad=1
	fi
done
exit $bad
