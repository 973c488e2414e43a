#!/bin/sh
# libraries.sh CACHE - zlib and zstd for the page: Debian's sources, compiled by Emscripten into CACHE/libraries.a.
set -e
[ -n "$1" ] || { echo "usage: page/libraries.sh CACHE" >&2; exit 2; }
[ ! -e "$1/libraries.a" ] || exit 0
mkdir -p "$1/apt/parts" "$1/apt/lists/partial" "$1/include" "$1/objects"
cd "$1"
# The sources are where the packages come from: the same lists, for sources.
for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/debian.sources; do
	[ -f "$f" ] && sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$f" > "apt/parts/$(basename "$f" | sed 's/sources\.list$/main.list/')"
done
apt="-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$PWD/apt/parts -o Dir::State::lists=$PWD/apt/lists"
# shellcheck disable=SC2086
{ apt-get $apt -qq update && apt-get $apt -qq source zlib libzstd; } > log 2>&1 ||
	{ echo "make page needs the sources of zlib and zstd; apt-get source said:" >&2; tail -n 3 log >&2; exit 1; }
zlib=$(ls -d zlib-*/) zstd=$(ls -d *zstd-*/)lib
cp "${zlib}zlib.h" "${zlib}zconf.h" "$zstd/zstd.h" "$zstd/zstd_errors.h" include/
compile() { # compile PREFIX FILE...
	prefix=$1; shift
	for f; do emcc -O2 -DZSTD_DISABLE_ASM -c -o "objects/$prefix$(basename "$f" .c).o" "$f"; done
}
for f in adler32 crc32 deflate inffast inflate inftrees trees zutil; do compile z_ "$zlib$f.c"; done
compile zstd_ "$zstd"/common/*.c "$zstd"/compress/*.c "$zstd"/decompress/*.c
emar rcs libraries.tmp objects/*.o && mv libraries.tmp libraries.a
