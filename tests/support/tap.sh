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
run() { "$VRAMCAST" "$@" > "$TMP/out" 2> "$TMP/err"; rc=$?; tap_read; tap_said "$@"; }
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
# All that a run said and wrote is what it was when somebody last looked: tests/answers/said has a line for each, a checksum
# and the arguments, and - where it differs between two times, with no more to hold on to. `make answers` writes them;
# KEEP=DIR keeps the texts, of two trees to compare. What is not written down is not judged, nor is what starts programs or
# looks at the machine; of pictures that others' programs make only that they were made.
tap_root=$PWD; tap_version=$(sed -n "s/^VERSION := //p" Makefile); tap_name=$(basename "$(dirname "$0")")-$(basename "$0" .sh)
tap_text() { # ARGS...: what the last run said and wrote
	{ echo "$rc $out"; echo "$err"; tap_last=; for tap_arg; do case "$tap_last $tap_arg" in *.png|*.pdf) ;; "-o "*) [ ! -f "$tap_arg" ] || cat "$tap_arg" ;; esac; tap_last=$tap_arg; done; } |
		LC_ALL=C sed "s|$TMP|TMP|g; s|$tap_root|TREE|g; s|$tap_version|VERSION|g"
}
tap_said() {
	case $1 in sim|export|info|estimate|explain|fit|plot|serve|sweep|dump|help|diff|report|epoch|ranks|plan|tune|reduce|list|schema|completions|manpage|gpus) ;; *) return ;; esac
	case " $* " in *" -- "*|*" /bin/"*|*" /usr/"*) return ;; esac
	case $* in
	*"$TMP"*|*"$tap_root"*|*\\*|*"
"*)	tap_key=$(echo "$*" | tr '\n' ' ' | sed "s|$TMP|TMP|g; s|$tap_root|TREE|g") ;;
	*) tap_key="$* " ;; # without processes
	esac
	tap_sum=$(tap_text "$@" | cksum)
	echo "${tap_sum%% *} $tap_key" >> "$TMP/.all"
	[ -z "$KEEP" ] || { mkdir -p "$KEEP/$tap_name"; { echo "$tap_key"; tap_text "$@"; } > "$KEEP/$tap_name/$(grep -c . "$TMP/.all")"; }
}
finish() {
	tap_held=$tap_root/tests/answers/said/$tap_name.txt
	[ "$SAID" != write ] || [ ! -e "$TMP/.all" ] || LC_ALL=C sort -u -k 2 -k 1,1 "$TMP/.all" > "$tap_held"
	if [ "${ARCH:-x86_64}" = "$(uname -m)" ] && [ -e "$tap_held" ] && [ -e "$TMP/.all" ]; then
		awk '{ k = $0; sub(/^[^ ]* /, "", k) } NR == FNR { known[k] = 1; ok[$0] = 1; if ($1 == "-") free[k] = 1; next }
			known[k] && !free[k] && !ok[$0] { print k }' "$tap_held" "$TMP/.all" > "$TMP/.other"
		if [ "$SAID" = again ]; then
			awk '{ k = $0; sub(/^[^ ]* /, "", k) } FILENAME == ARGV[1] { differs[$0] = 1; next } !(k in differs) { print; next } !done[k]++ { print "- " k }' \
				"$TMP/.other" "$tap_held" > "$TMP/.new" && cp "$TMP/.new" "$tap_held" && pass "what differs is marked"
		elif [ -s "$TMP/.other" ]; then fail "what it says is what it was (when a change is meant: make answers)" "$(cat "$TMP/.other")"
		else pass "what it says is what it was"; fi
	fi
	echo "1..$n"; exit $failed
}
