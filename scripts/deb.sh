#!/bin/sh
# deb.sh [DIR] - a package for Debian and Ubuntu, into DIR (dist): what `make install` installs, with Debian's flags, in the places
# where Debian wants it. Needs dpkg-dev. BUILD is a build folder of its own, so that other flags do not mix.
set -e
: "${MAKEFLAGS:=-j$(nproc)}"; export MAKEFLAGS
out=${1:-dist}; build=${BUILD:-build-deb}; tree=$build/tree
version=$(sed -n 's/^VERSION := //p' Makefile); arch=$(dpkg --print-architecture)
flags="$(dpkg-buildflags --get CFLAGS) $(dpkg-buildflags --get CPPFLAGS) $(dpkg-buildflags --get LDFLAGS) -Wl,-z,now"
[ -z "$DEB_FLAGS" ] || flags=$DEB_FLAGS
rm -rf "$tree"; mkdir -p "$tree/DEBIAN" "$out"
make BUILD="$build" CFLAGS="$flags" PREFIX=/usr DEPS=skip all
make -s BUILD="$build" CFLAGS="$flags" PREFIX=/usr DESTDIR="$tree" DEPS=skip install

# Debian's rules: nothing to debug with, libraries that nobody executes, compressed pages, what changed and under which licence.
find "$tree/usr" -type f | while read -r f; do
	case $(head -c 4 "$f" | tr -d '\177') in ELF*) strip --strip-unneeded --remove-section=.comment --remove-section=.note "$f" ;; esac
	case $f in *.so|*.so.*|*.py|*.txt|*/vcnull-alias) chmod 644 "$f" ;; esac
done
find "$tree/usr/share/man" -name '*.1' -exec gzip -9n {} +
doc=$tree/usr/share/doc/vramcast; mkdir -p "$doc"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 0)}"
date=$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
owner='vramcast developers <vramcast@example.org>'
printf 'vramcast (%s) unstable; urgency=medium\n\n  * What changed stands in changelog.gz.\n\n -- %s  %s\n' "$version" "$owner" "$date" |
	gzip -9n > "$doc/changelog.gz"
cat > "$doc/copyright" <<C
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: vramcast

Files: *
Copyright: 2026 the authors of vramcast
License: Apache-2.0
 The text of the licence is in /usr/share/common-licenses/Apache-2.0.
C
mkdir -p "$tree/usr/share/lintian/overrides"
cat > "$tree/usr/share/lintian/overrides/vramcast" <<C
# Stand-ins for libraries of CUDA: programs load them by these names, they need nothing, and they say so little that there is
# nothing to fortify. They lie in a folder that no loader looks into.
vramcast: shared-library-lacks-prerequisites *
vramcast: library-not-linked-against-libc *
vramcast: hardening-no-fortify-functions *
# It is new in Debian, and no bug is closed by it.
vramcast: initial-upload-closes-no-bugs *
C
find "$tree" -type d -exec chmod 755 {} +
find "$tree/usr/share" -type f -exec chmod 644 {} +

# What it needs of the system, found out from the files; their own neighbours are no part of it.
mkdir -p "$build/debian"; printf 'Source: vramcast\n\nPackage: vramcast\nArchitecture: any\n' > "$build/debian/control"
found=$(cd "$build" && dpkg-shlibdeps -O --ignore-missing-info tree/usr/bin/vramcast tree/usr/lib/vramcast/libvramcast_*.so tree/usr/lib/vramcast/vcnull-cudnn-plans 2> shlibs.log |
	sed -n 's/^shlibs:Depends=//p')
[ -n "$found" ] || { cat "$build/shlibs.log" >&2; exit 1; }
cat > "$tree/DEBIAN/control" <<C
Package: vramcast
Version: $version
Architecture: $arch
Maintainer: $owner
Installed-Size: $(find "$tree/usr" -type f -printf '%s\n' | awk '{ k += int(($1 + 1023) / 1024) } END { print k }')
Depends: $found
Suggests: python3
Section: devel
Priority: optional
Homepage: https://github.com/vramcast/vramcast
Description: says whether a PyTorch training run fits into the memory of a GPU
 It records what a run does to GPU memory, replays the recording under an exact
 model of PyTorch's caching allocator with the card, the batch size, the
 settings or the optimizer changed, says whether the changed run fits, and
 draws it. No GPU is needed for any of this, not even for the recording.
C
(cd "$tree" && find usr -type f -exec md5sum {} + | sort -k2 > DEBIAN/md5sums)
chmod 644 "$tree/DEBIAN/md5sums" "$tree/DEBIAN/control"
dpkg-deb --root-owner-group -Zxz -b "$tree" "$out/vramcast_${version}_$arch.deb"
