#!/bin/sh
# foreign.sh ARCH - what building for another processor and running its programs here takes, from Debian: the cross
# compiler, its libraries, and qemu, which the kernel starts for each foreign program. DEPS=skip leaves the machine alone.
arch=$1
case $arch in
aarch64) debian=arm64 machine='\xb7' ;;
x86_64) debian=amd64 machine='\x3e' ;;
*) echo "foreign.sh: '$arch' is neither aarch64 nor x86_64" >&2; exit 2 ;;
esac
[ "$arch" = "$(uname -m)" ] && exit 0
if [ "$DEPS" != skip ] && ! command -v "$arch-linux-gnu-gcc" > /dev/null; then
	echo "installing: the cross compiler for $arch, its libraries and qemu" >&2
	dpkg --add-architecture $debian && apt-get update -qq >&2 &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "gcc-$(echo $arch | tr _ -)-linux-gnu" \
			qemu-user-static libzstd-dev:$debian zlib1g-dev:$debian libcmocka-dev:$debian >&2 || exit 1
fi
# The kernel knows a foreign program by its first bytes; F keeps the emulator open, so that it is found in any root.
bin=/proc/sys/fs/binfmt_misc
[ -e $bin/register ] || mount -t binfmt_misc none $bin 2> /dev/null
if [ ! -e $bin/qemu-$arch ]; then
	mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
	printf '%s' ":qemu-$arch:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00$machine\x00:$mask:/usr/bin/qemu-$arch-static:F" \
		2> /dev/null > $bin/register || { echo "foreign.sh: this kernel starts no $arch programs (binfmt_misc): run it as root" >&2; exit 1; }
fi
