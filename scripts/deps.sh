#!/bin/sh
# deps.sh - install what is missing to build and test vramcast on Debian or Ubuntu; says what it does.
# DEPS=skip leaves the machine alone. Without root and sudo it prints the one line to run.
[ "$DEPS" = skip ] && exit 0
need=''
want() { # want PACKAGE COMMAND... : add PACKAGE unless COMMAND succeeds
	p=$1; shift
	"$@" >/dev/null 2>&1 || need="$need $p"
}
header() { for d in /usr/include /usr/local/include /usr/include/*-linux-gnu; do [ -f "$d/$1" ] && return 0; done; return 1; }

if [ -z "$CC" ] || [ "$CC" = cc ]; then want gcc command -v cc; fi
want libc6-dev header stdio.h
want binutils command -v objdump
want pkg-config command -v pkg-config
want libzstd-dev header zstd.h
want zlib1g-dev header zlib.h
want libcmocka-dev header cmocka.h
want universal-ctags command -v ctags
want zstd command -v zstd
want libxml2-utils command -v xmllint
want python3 command -v python3
[ -n "$need" ] || exit 0

cmd="apt-get install -y --no-install-recommends$need"
if ! command -v apt-get >/dev/null 2>&1; then
	echo "vramcast needs (Debian names):$need" >&2
	echo "install them with your package manager, then run make again (DEPS=skip skips this check)" >&2
	exit 1
fi
if [ "$(id -u)" = 0 ]; then as=''
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then as='sudo '
elif command -v sudo >/dev/null 2>&1 && [ -t 0 ]; then as='sudo '
else
	echo "these packages are missing:$need" >&2
	echo "run this as root, then make again:" >&2
	echo "  apt-get update && $cmd" >&2
	exit 1
fi
echo "installing:$need" >&2
${as}apt-get update -qq >&2 || echo "apt-get update failed; trying with the lists at hand" >&2
DEBIAN_FRONTEND=noninteractive ${as}apt-get install -y -qq --no-install-recommends $need >&2
