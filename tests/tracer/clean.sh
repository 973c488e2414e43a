#!/bin/sh
# clean.sh - the library in the recorded process: no invalid access (valgrind), no name that it does
# not interpose, no library but libc's. `make check-tracer-threads` adds ThreadSanitizer.
. tests/tracer/lib.sh
lib=$PWD/${BUILD:-build}/libvramcast_trace.so
export VC_CUPTI="$PWD/$bin/libcupti_standin.so" VC_DIR="$TMP/j"

allowed='_ZN3c10.*|cuda(Malloc|Free)(Async|Host)?|cudaMallocManaged|cudaHost(Alloc|(Unr|R)egister)|cudaEvent(Record|Query|Synchronize)|cudaStream(Begin|End)Capture|cudaGetDriverEntryPoint(ByVersion)?|cuMem(Create|SetAccess|Unmap|AddressFree)|cudnnBackend(((Set|Get)Attribute)|DestroyDescriptor|Execute)|_exit|_Exit|quick_exit|abort|InitializeInjection(Nvtx2)?|cupti((Uns|S)ubscribe|Enable(Callback|Domain)|Activity(RegisterCallbacks|RegisterTimestampCallback|Enable|Disable|GetNumDroppedRecords)|Finalize)|vramcast_(mark|(optimizer_)?step|start|stop|dump|failed|watch_failures|attach(_[a-z]+)?|detach)'
extra=$(nm -D --defined-only "$lib" | awk '{ print $3 }' | grep -vxE "$allowed")
equal "exports only what it interposes, two entrances, eight functions for programs and those for attaching" "$extra" ""
needs=$(objdump -p "$lib" | awk '/NEEDED/ { print $2 }' | grep -vE '^(libc|libdl|libpthread|ld-linux.*)\.so' )
equal "needs no library but libc" "$needs" ""

own valgrind || { skip "valgrind" "there is none for ${ARCH:-this machine}"; finish; }
while read -r program; do
	rm -rf "$TMP/j"; mkdir "$TMP/j"
	# shellcheck disable=SC2086
	LD_PRELOAD=$lib valgrind -q --error-exitcode=99 --trace-children=yes "$bin"/$program > "$TMP/log" 2>&1
	if [ $? = 99 ] || grep -q '^==' "$TMP/log"; then fail "valgrind: $program" "$(cat "$TMP/log")"
	else pass "valgrind: $program"; fi
done << 'LIST'
victim return 1000
victim threads 100
victim -c return 100
victim _exit 100
burst 4 20000 0.3
cupti_client
torch/lib/client 4 200
torch/lib/convolve each either kept reused failing others
steps micro 3
cupti_profiler late
LIST
# A program that is attached to and left while its threads allocate; without valgrind first, which runs one at a time.
unset VC_DIR; mkdir "$TMP/a"; equal "joined and left 50 times, beside three threads" "$(timeout 100 "$bin/attached" "$lib" "$TMP/a" 50 2>&1)" 50
rm -rf "$TMP/a"; mkdir "$TMP/a"
valgrind -q --error-exitcode=99 "$bin/attached" "$lib" "$TMP/a" 10 > "$TMP/log" 2>&1
equal "valgrind: the same 10 times" "$? $(cat "$TMP/log")" "0 10"
finish
