#!/bin/sh
# check-state.sh - no writable globals in the libraries (section names; under PIE const tables with
# pointers live in .data.rel.ro, so nm cannot tell).
lib=${BUILD:-build}/libvramcast.a
[ -f "$lib" ] || { echo "not ok 1 - state: $lib is not built"; exit 1; }
found=$(objdump -t "$lib" | grep -E '[[:space:]]O[[:space:]]+(\.data|\.bss|\.tdata|\.tbss|\*COM\*)([.][^r][^[:space:]]*)?[[:space:]]' | grep -v '\.data\.rel\.ro')
if [ -n "$found" ]; then
	echo "$found" | sed 's/^/# /'; echo "not ok 1 - state: writable globals in the libraries"; exit 1
fi
echo "ok 1 - state: the libraries have no writable globals"
