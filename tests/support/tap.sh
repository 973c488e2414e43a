# tap.sh - sourced by the shell tests: ok/nok lines, and helpers to run the program as a user would.
# $VRAMCAST is the program, $TMP a private folder. With STOP=1 the first failure ends the test.
: "${TMP:?is the private folder of a test}" # rm -rf "$TMP"/x must not begin at the root
n=0; failed=0
pass() { n=$((n + 1)); echo "ok $n - $1"; }
fail() { n=$((n + 1)); failed=1; echo "not ok $n - $1"; shift; for l in "$@"; do printf '%s\n' "$l" | sed 's/^/#   /' | head -n 30; done; [ -z "$STOP" ] || exit 1; }
skip() { n=$((n + 1)); echo "ok $n - $1 # SKIP $2"; }
# check NAME COMMAND... : passes when the command succeeds
check() { name=$1; shift; if "$@" > "$TMP/check.log" 2>&1; then pass "$name"; else fail "$name" "command: $*" "$(cat "$TMP/check.log")"; fi; }
# run ARGS... : the program; output in $out, errors in $err, code in $rc
run() { "$VRAMCAST" "$@" > "$TMP/out" 2> "$TMP/err"; rc=$?; tap_read; }
if [ -n "$BASH_VERSION" ]; then tap_read() { out=$(< "$TMP/out"); err=$(< "$TMP/err"); } # without processes
else tap_read() { out=$(cat "$TMP/out"); err=$(cat "$TMP/err"); }; fi
# expect NAME RC [PATTERN-OF-STDOUT [PATTERN-OF-STDERR]] : judge the last run
expect() {
	if [ "$rc" != "$2" ]; then fail "$1" "exit code $rc, expected $2" "$err" "$out"
	elif [ -n "$3" ] && ! printf '%s\n' "$out" | grep -qE -- "$3"; then fail "$1" "stdout lacks: $3" "$out"
	elif [ -n "$4" ] && ! printf '%s\n' "$err" | grep -qE -- "$4"; then fail "$1" "stderr lacks: $4" "$err"
	else pass "$1"; fi
}
# Is the program built with sanitizers? Its address space cannot be limited then, nor its libraries preloaded.
sanitized() { ! (ulimit -v 4000000; "$VRAMCAST" --version > /dev/null 2>&1); }
# Has that python a PyTorch for CUDA? To import it takes two seconds.
has_cuda_torch() { "$1" -c 'import importlib.util as u, os, sys
s = u.find_spec("torch"); sys.exit(not (s and os.path.exists(os.path.join(os.path.dirname(s.origin), "lib/libtorch_cuda.so"))))' 2> /dev/null; }
# own TOOL: is it here, and does what it runs or makes load our libraries? Not where ARCH is another processor's: qemu runs these.
own() { command -v "$1" > /dev/null && [ "${ARCH:-$(uname -m)}" = "$(uname -m)" ]; }
finish() { echo "1..$n"; exit $failed; }
