#!/bin/sh
# build.sh RELEASE... - the XPU allocator of each PyTorch release, compiled from its source against a stand-in for SYCL. The source
# comes from $XPU_SOURCE/RELEASE (a tree with c10/xpu), else from Debian's source package of that release (apt-get source; needs
# deb-src lines). Headers and libc10 come from the CPU part of the official wheel (tests/oracle/build.sh). All of it stays below
# $ORACLE_CACHE, outside the tree. Needs g++, pip, apt-get.
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}

source_of() { # RELEASE
	s=${XPU_SOURCE:-$cache/xpu}/$1
	[ -e "$s/c10/xpu/XPUCachingAllocator.cpp" ] && return 0
	mkdir -p "$cache/xpu/new" "$s" && (cd "$cache/xpu/new" && apt-get source --download-only -qq "pytorch=$(
		apt-cache showsrc pytorch | sed -n "s/^Version: \($1+dfsg.*\)/\1/p" | head -n 1)" > /dev/null) &&
		tar xf "$cache"/xpu/new/pytorch_"$1"+dfsg.orig.tar.* -C "$s" --strip-components=1 --wildcards '*/c10/xpu/*'
	r=$?
	rm -rf "$cache/xpu/new"
	return $r
}

build() { # RELEASE
	t=$cache/torch/$1/torch; d=$cache/build-xpu/$1; mkdir -p "$d"
	tv=$(echo "$1" | awk -F. '{print $1 * 100 + $2}')
	abi=0; [ "$tv" -ge 207 ] && abi=1
	std=c++17; [ "$tv" -ge 212 ] && std=c++20
	for f in simulator/replay/device.c common/error.c; do
		gcc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -I"$top" -c -o "$d/$(basename "$f" .c).o" "$top/$f" || return 1
	done
	mkdir -p "$d/source/c10/xpu" && cp "$s"/c10/xpu/XPUCachingAllocator.* "$d/source/c10/xpu" || return 1
	g++ -O1 -w -std=$std -DTV="$tv" -D_GLIBCXX_USE_CXX11_ABI=$abi -I"$here/include" -I"$d/source" -I"$t/include" -I"$top" -o "$d/driver" \
		"$here/driver.cpp" "$s/c10/xpu/XPUCachingAllocator.cpp" "$d/device.o" "$d/error.o" \
		-Wl,--disable-new-dtags -Wl,-rpath,"$t/lib" -L"$t/lib" -lc10 2> "$d/log"
}

bad=0
for v in "$@"; do
	d=$cache/build-xpu/$v/driver
	[ -e "$d" ] && [ -z "$(find "$here" "$top/simulator/replay/device.c" -newer "$d" -name '*.[chp]*')" ] && continue
	if [ -e "$cache/torch/$v/torch/lib/libc10.so" ] || "$top/tests/oracle/build.sh" "$v" > /dev/null; then :; fi
	if source_of "$v" && build "$v"; then
		echo "# driver of torch $v for XPU built"
	else
		echo "# no driver of torch $v for XPU: $(head -c 600 "$cache/build-xpu/$v/log" 2> /dev/null | tr '\n' ' ')"; bad=1
	fi
done
exit $bad
