#!/bin/sh
# build.sh RELEASE... - the XPU allocator of each PyTorch release, compiled from its source against a stand-in for SYCL. The source
# comes from $XPU_SOURCE/RELEASE (a tree with c10/xpu), else from Debian's source package of that release (apt-get source; where
# there are no deb-src lines, with some of its own). Headers and libc10 come from the CPU part of the official wheel (tests/oracle/build.sh). All of it stays below
# $ORACLE_CACHE, outside the tree. Needs g++, pip, apt-get.
here=$(cd "$(dirname "$0")" && pwd); top=$(cd "$here/../.." && pwd)
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}

# apt as it is set up, when it offers the source of the release; else with source lines of our own, in folders of our own, for
# the archive that this machine takes its Debian packages from.
apt_for() { # RELEASE: options in $apt, version in $package
	a=$cache/xpu/apt; apt=
	package=$(apt-cache showsrc pytorch 2> /dev/null | sed -n "s/^Version: \($1+dfsg.*\)/\1/p" | head -n 1)
	[ -z "$package" ] || return 0
	key=$(ls /usr/share/keyrings/debian-archive-keyring.* 2> /dev/null | head -n 1)
	archive=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2> /dev/null |
		sed -n 's,^URIs: *\([^ ]*/debian\)/* *$,\1,p; s,^deb .*\(http[^ ]*/debian\)/* .*,\1,p' | head -n 1)
	[ "$key" ] && [ "$archive" ] || { why="apt offers no source of PyTorch $1 (no deb-src line), and no archive of Debian is set up"; return 1; }
	mkdir -p "$a/lists/partial" "$a/archives/partial" || return 1
	for suite in trixie sid; do echo "deb-src [signed-by=$key] $archive $suite main"; done > "$a/list"
	apt="-o Dir::State::lists=$a/lists -o Dir::Cache=$a -o Dir::Etc::sourcelist=$a/list -o Dir::Etc::sourceparts=-"
	# shellcheck disable=SC2086
	apt-get $apt -qq update > "$a/log" 2>&1
	# shellcheck disable=SC2086
	package=$(apt-cache $apt showsrc pytorch 2>> "$a/log" | sed -n "s/^Version: \($1+dfsg.*\)/\1/p" | head -n 1)
	[ "$package" ] || { why="Debian's archive offers no source of PyTorch $1$(sed -n "s/^E:/:/p" "$a/log" | tail -n 1)"; return 1; }
}

source_of() { # RELEASE
	s=${XPU_SOURCE:-$cache/xpu}/$1
	[ -e "$s/c10/xpu/XPUCachingAllocator.cpp" ] && return 0
	[ -z "$XPU_SOURCE" ] || { why="$s/c10/xpu is not there"; return 1; }
	command -v apt-get > /dev/null || { why="its source is not there (XPU_SOURCE=DIR), and apt-get neither"; return 1; }
	apt_for "$1" || return 1
	# shellcheck disable=SC2086
	mkdir -p "$cache/xpu/new" "$s" && (cd "$cache/xpu/new" && apt-get $apt source --download-only -qq "pytorch=$package" > log 2>&1) &&
		tar xf "$cache"/xpu/new/pytorch_"$1"+dfsg.orig.tar.* -C "$s" --strip-components=1 --wildcards '*/c10/xpu/*'
	r=$?
	[ $r = 0 ] || why="the source package pytorch=$package did not come: $(tail -n 1 "$cache/xpu/new/log")"
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
	d=$cache/build-xpu/$v/driver; why=
	[ -e "$d" ] && [ -z "$(find "$here" "$top/simulator/replay/device.c" -newer "$d" -name '*.[chp]*')" ] && continue
	if [ -e "$cache/torch/$v/torch/lib/libc10.so" ] || "$top/tests/oracle/build.sh" "$v" > /dev/null; then :; fi
	if source_of "$v" && build "$v"; then
		echo "# driver of torch $v for XPU built"
	else
		echo "# no driver of torch $v for XPU: ${why:-$(head -c 600 "$cache/build-xpu/$v/log" 2> /dev/null | tr '\n' ' ')}"; bad=1
	fi
done
exit $bad
