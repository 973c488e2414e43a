#!/bin/bash
# run.sh LIST - are deliberate mistakes noticed? Applies the mutations of LIST one at a time to a copy of the tree, builds
# what changed, and runs the tests of the room until one fails; a compiler that refuses notices, too. What survives meets
# all other tests of make check. A line of LIST is: room, file, text as it is (once in the file), text as it becomes,
# [name], between tabs.
#   TRUST=1  the tests are known to pass unmutated: do not run them first
#   QUICK=1  only the tests that belong to the room     ROOM=x  only rooms whose name contains x     JOBS=2
#   OUT=FILE the table       MOST=N  only the first N       ONLY=x  only lines that contain x       LIMIT=seconds of a test
# A test that fails unmutated is left out, and said. Sanitized copies, browsers and checks of style are not run.
cd "$(dirname "$0")/../.." || exit 1
list=$(realpath "${1:?usage: run.sh LIST}")
LIMIT=${LIMIT:-300} JOBS=${JOBS:-2} CC=${CC:-cc} OUT=$(realpath -m "${OUT:-/dev/null}")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export DEPS=skip CCACHE_NOHASHDIR=1 CFLAGS=-O1 STOP=1
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES T F V COV SAN BUILD VRAMCAST UPDATE

units() { for u in "$@"; do echo "build/tests/$u"; done; }
cli() { for c in "$@"; do echo "tests/cli/$c.sh"; done; }
# The tests of a room, the likeliest first.
of_room() {
	case $1 in
	simulator/predict) units test_family test_convolutions test_laws test_align test_workspaces test_step_sizes test_single test_reduction
		echo tests/answers/answers.sh tests/ladders/ladders.sh; cli convolutions cannot_tell sweep trust estimate fit whatif seeds ;;
	simulator/anatomy | simulator/rewrite | simulator/transforms) units test_transforms test_autocast test_period test_layers test_foreach test_formulas test_reduction; cli anatomy
		echo tests/transforms/recorded.sh tests/answers/answers.sh; cli limits; echo tests/ladders/ladders.sh; cli plot seeds whatif estimate ;;
	simulator/models) echo tests/golden/golden.sh build/tests/conformance tests/whatif/truth.sh; units test_known test_past_runs; echo tests/oracle-bfc/bfc.sh tests/oracle-rmm/rmm.sh
		units test_bfc test_pools test_free_blocks test_rmm test_cuda_async test_rules test_torch_snapshot test_device_window; cli sim ;;
	simulator/replay) units test_past test_past_runs test_known test_engine test_peaks test_infer test_device_window test_cards test_source; echo tests/golden/golden.sh build/tests/conformance; cli sim failures snapshot ledger ;;
	simulator/sources) units test_codec test_torch_snapshot test_pickle test_source test_fuzz_corpus test_infer; cli recordings snapshots snapshot nsys rmm_log bad_input trace_format formats ;;
	simulator/observers) cli sim plot ledger formats failures advice; units test_visual_golden test_engine test_drawn; echo tests/golden/golden.sh ;;
	simulator/session) echo tests/whatif/truth.sh; cli invariants verdict trust whatif convolutions tune sim; echo tests/answers/answers.sh; cli trust evaluation seeds failures usage; echo tests/ladders/ladders.sh ;;
	simulator/search) units test_vary test_choice; cli fit fit_find fit_plan sweep tune ranks epoch; units test_journal; cli words ;;
	simulator/serving) cli serve ;;
	simulator/packing) units test_packing; cli plan ;;
	allocator) units test_arena; echo tests/plan/allocator.sh ;;
	simulator/advise) cli advice explain limits diff; units test_explain test_diff ;;
	simulator/findings) cli findings sim verdict; units test_drawn ;;
	simulator/time) units test_time; cli time numbers whatif ;;
	tracer) units test_cupti_clock test_meta test_codec; printf '%s\n' tests/tracer/pressure.sh tests/tracer/*.sh | grep -v '/check_\|/bench_\|/lib.sh' ;;
	nullgpu) printf 'tests/nullgpu/%s.sh\n' device cudnn stage plans; printf '%s\n' tests/nullgpu/*.sh | grep -v /bench_; printf 'tests/tracer/%s.sh\n' cupti_records cupti_shared ;;
	visualize) units test_visual test_visual_golden test_visual_fuzz; cli plot formats; echo tests/golden/golden.sh; cli snapshot snapshots; units test_drawn test_extremes ;;
	commands) cli convolutions estimate usage bad_input sim fit sweep plot formats failures answers terminal; echo tests/nullgpu/stage.sh tests/plan/allocator.sh tests/tracer/processes.sh tests/tracer/command.sh ;;
	common) units test_convolutions test_codec test_io test_json test_pickle test_param test_opt test_emit test_error test_meta test_exchange test_journal; cli trace_format bad_input ;;
	esac | tr ' ' '\n'
}
likely() { of_room "$1" | awk '!seen[$0]++' | grep -vxFf "$work/leftout"; } # the tests of a room
others() { of_room "$1" | cat - "$work/leftout" | grep -vxFf - "$work/all"; } # all that make check runs beside them
build() { make -s -j1 CC="$CC" "${@:-all}" > "$log" 2>&1; } # [TARGET...]
passes() { # TEST; 2: it took too long
	case $1 in build/tests/*) build all "$1" || return 1 ;; tests/ladders/*) build all build/tests/ladders || return 1 ;; tests/golden/golden.sh) build all build/tests/golden-replay || return 1 ;;
	tests/oracle-*/*.sh) play=${1%/*}; build all "build/tests/${play##*/}-play" || return 1 ;; esac
	BUILD=build VRAMCAST=build/vramcast JOBS=1 timeout -k 5 "$LIMIT" scripts/run-tests.sh "$1" > "$log" 2>&1; rc=$?
	[ $rc -lt 124 ] || return 2
	return $rc
}
# Replace what stands once in the file; fails when it does not.
apply() { # FILE OLD NEW
	OLD=$2 NEW=$3 awk 'BEGIN { old = ENVIRON["OLD"]; new = ENVIRON["NEW"] }
		(p = index($0, old)) { n++; $0 = substr($0, 1, p - 1) new substr($0, p + length(old)) }
		{ print } END { exit n != 1 }' "$1" > "$1.new" && cat "$1.new" > "$1"
	rc=$?; rm -f "$1.new"; return $rc
}
try() { # COPY TESTS ROOM FILE OLD NEW NAME: says who noticed, to $work/results
	local start=$SECONDS kept=$work/kept$1 by='' result=survived t rc name=${7:-$5  ->  $6}
	cp -p "$4" "$kept"
	if ! apply "$4" "$5" "$6"; then
		result=misplaced
	elif ! build; then
		result=noticed by="the compiler"
	else
		for t in $($2 "$3"); do
			passes "$t"; rc=$?
			[ $rc = 0 ] && continue
			result=noticed by=$t; [ $rc != 2 ] || by="$t (took too long)"
			break
		done
	fi
	cat "$kept" > "$4"
	printf '%s\t%s\t%s\t%s\t%s\n' "$result" "$3" "$4" "$name" "$by" >> "$work/results"
	printf '%-9s %4d s  %s: %s  [%s]\n' "$result" $((SECONDS - start)) "$4" "$name" "$by"
}
# The workers take the next line of a list as soon as they are done with one.
next() { # LIST: the next line
	flock "$work/lock" sh -c 'head -n 1 "$1"; sed -i 1d "$1"' sh "$1"
}
worker() { # COPY TESTS LIST
	cd "$work/$1" || exit 1
	log=$work/log$1
	while line=$(next "$3"); [ "$line" ]; do
		IFS=$'\t' read -r room file old new name <<< "$line"
		try "$1" "$2" "$room" "$file" "$old" "$new" "$name"
	done
}
workers() { # TESTS LIST
	for ((j = 1; j <= JOBS; j++)); do worker $j "$1" "$2" & done; wait
}
unmutated() { # TESTS: those of the list's rooms that fail are left out
	[ "$TRUST" ] && return
	cut -f1 "$2" | sort -u | while read -r room; do $1 "$room"; done | awk '!seen[$0]++' > "$work/first"
	(cd "$work/1" && log=$work/log1 && build all unit-tests build/tests/ladders build/tests/golden-replay; BUILD=build VRAMCAST=build/vramcast JOBS=$JOBS xargs scripts/run-tests.sh < "$work/first") |
		sed -n 's/^---- //p' | grep -v ' tests did not' | tee -a "$work/leftout" | sed 's/^/left out, for it fails on the tree as it is: /'
}

touch "$work/leftout" "$work/results" "$work/lock"
grep -v '^#' "$list" | grep . | awk -F '\t' -v room="$ROOM" -v only="$ONLY" '(room == "" || index($1, room)) && (only == "" || index($0, only))' | head -n "${MOST:-100000}" > "$work/list"
make -s -pn DEPS=skip check-all 2> /dev/null | sed -n 's/^\(UNIT\|CLI\|TESTS\) :\{0,1\}= //p' | tr ' ' '\n' | grep . |
	grep -v 'address-undefined\|/browser.sh' > "$work/all"
copy() {
	mkdir "$work/$1"; git ls-files -co --exclude-standard | tar cf - -T - 2> /dev/null | tar xf - -C "$work/$1"
	cd "$work/$1" && log=$work/log$1 && build || { tail -n 20 "$work/log$1"; echo "the tree does not build"; exit 1; }
}
for ((j = 1; j <= JOBS; j++)); do (copy $j) || exit 1; done
cp "$work/list" "$work/todo"
unmutated likely "$work/list"; workers likely "$work/todo"
if [ ! "$QUICK" ]; then
	awk -F '\t' 'NR == FNR { if ($1 == "survived") s[$3 "\t" $4] = 1; next } { n = $5 == "" ? $3 "  ->  " $4 : $5 } ($2 "\t" n) in s' "$work/results" "$work/list" > "$work/todo"
	grep -v '^survived' "$work/results" > "$work/kept"; mv "$work/kept" "$work/results"
	echo "$(grep -c . "$work/todo") survived the tests of their room"
	[ ! -s "$work/todo" ] || { unmutated others "$work/todo"; workers others "$work/todo"; }
fi
table() {
	awk -F '\t' '{ n[$2]++; if ($1 == "noticed") y[$2]++; if ($1 == "misplaced") m[$2]++
		if ($1 == "survived") { t = $4; gsub(/\|/, "\\|", t); sub(/.*\//, "", $3); s[$2] = s[$2] (s[$2] == "" ? "" : "; ") $3 ": `" t "`" } }
		END { for (r in n) printf "| %s | %d | %d | %s |\n", r, n[r] - m[r], y[r], s[r] }' "$work/results" | LC_ALL=C sort
}
{
	echo "| room | mutations | noticed | survived |"; echo "|---|---|---|---|"; table
	awk -F '\t' '$1 != "misplaced" { n++; y += $1 == "noticed" } END { printf "\n%d of %d mutations are noticed (%.0f %%).\n", y, n, n ? 100 * y / n : 0 }' "$work/results"
	awk -F '\t' '$1 == "misplaced" { print "not in its file exactly once: " $3 ": " $4 }' "$work/results"
} | tee "$OUT"
awk -F '\t' '{ n++; y += $1 == "noticed" } END { exit !(n && y >= 0.9 * n) }' "$work/results"
