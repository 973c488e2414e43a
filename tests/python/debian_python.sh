#!/bin/sh
# debian_python.sh VERSION FOLDER - a Python that this Debian does not have yet (3.14): the packages of Debian's unstable, fetched
# by apt with lists of its own and laid open in FOLDER, with their own libc beside them. Nothing is installed. Needs patchelf.
set -e
version=$1 to=$2
[ -x "$to/bin/python$version" ] && exit 0
command -v patchelf > /dev/null && command -v apt-get > /dev/null || { echo "wants apt-get and patchelf"; exit 1; }
mkdir -p "$to/apt/lists/partial" "$to/apt/cache/archives/partial" "$to/apt/etc" "$to/open" "$to/bin"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian sid main" > "$to/apt/sources.list"
: > "$to/apt/status"
apt() {
	command=$1; shift
	command "$command" -o Dir::Etc::sourcelist="$to/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$to/apt/lists" \
		-o Dir::State::status="$to/apt/status" -o Dir::Cache="$to/apt/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none -qq "$@"
}
apt apt-get update
packages="python$version python$version-minimal libpython$version-stdlib libpython$version-minimal python$version-venv python3-pip-whl
	libc6 libgcc-s1 libexpat1 zlib1g libssl3t64 libbz2-1.0 libffi8 liblzma5 libsqlite3-0 libuuid1 libzstd1 libncursesw6 libtinfo6 libreadline8t64"
(cd "$to/apt/cache/archives" && apt apt-get download $packages)
for deb in "$to"/apt/cache/archives/*.deb; do dpkg-deb -x "$deb" "$to/open"; done
rm -rf "$to/apt"
# venv takes pip from where the package would have put it.
sed -i "s|'/usr/share/python-wheels/'|'$to/open/usr/share/python-wheels/'|" "$to/open/usr/lib/python$version"/_sysconfigdata_*.py
# Its own loader and libraries first; what is preloaded into it finds them, too.
lib=$to/open/usr/lib/x86_64-linux-gnu
cp "$to/open/usr/bin/python$version" "$to/open/usr/bin/python.new"
patchelf --set-interpreter "$lib/ld-linux-x86-64.so.2" --force-rpath --set-rpath "$lib" "$to/open/usr/bin/python.new"
mv "$to/open/usr/bin/python.new" "$to/open/usr/bin/python$version"
ln -s "../open/usr/bin/python$version" "$to/bin/python$version"
