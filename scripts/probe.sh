#!/bin/sh
# probe.sh - ask the compiler what is here: prints a makefile fragment, tells the human on stderr.
# Compiles AND links a few lines per dependency.
try() { # try FLAGS... : does the program on stdin compile and link?
	t=$(mktemp) && ${CC:-cc} -x c - -o "$t" "$@" >/dev/null 2>&1; r=$?; rm -f "$t"; return $r
}
say() { printf '  %-9s%-5s%s\n' "$1" "$2" "$3" >&2; }
pc() { ${PKG_CONFIG:-pkg-config} "$@" 2>/dev/null; }

need() { # need NAME PKG HEADER FALLBACK_LIBS : a library the build cannot do without
	libs=$(pc --libs "$2" || echo "$4"); cfl=$(pc --cflags "$2")
	if printf '#include <%s>\nint main(void){return 0;}\n' "$3" | try $cfl $libs; then
		echo "CONFIG_CFLAGS += $cfl"; echo "CONFIG_LIBS += $libs"; say "$1" yes ''
	else
		say "$1" no "vramcast cannot be built without it; run make deps"; exit 1
	fi
}
printf 'int main(void){return 0;}\n' | try || { say compiler no "no working C compiler (CC=${CC:-cc})"; exit 1; }
say compiler yes "$(${CC:-cc} --version | head -n 1)"
need zstd libzstd zstd.h -lzstd
need zlib zlib zlib.h -lz

cm='#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <cmocka.h>\nint main(void){return 0;}\n'
cml=$(pc --libs cmocka || echo -lcmocka)
if printf "$cm" | try $(pc --cflags cmocka) $cml; then
	echo "CMOCKA_LIBS := $cml"; say cmocka yes ''
else
	say cmocka no "make check needs libcmocka-dev"
fi

found=''
for d in "$CUDA_HOME/include" "$CUDA_HOME/extras/CUPTI/include"; do
	if printf '#include <cupti.h>\nint main(void){return 0;}\n' | try -I"$d" -I"$CUDA_HOME/include"; then
		echo "CUPTI_CFLAGS := -I$d -I$CUDA_HOME/include -DHAVE_CUPTI"; found=$d; break
	fi
done
if [ -n "$found" ]; then say cupti yes "$found"; else say cupti no "not needed to build; used when a program is recorded on a GPU"; fi
