#!/bin/bash
# run.sh LIST - are deliberate mistakes noticed? Applies the mutations of LIST one at a time to a copy of the tree, builds
# it, and runs the tests until one fails; a compiler that refuses, or a test that takes longer than LIMIT seconds,
# notices too. A line of LIST is: room, file, text as it is (once in the file), text as it becomes, [name], between tabs.
#   TRUST=1  the tests are known to pass unmutated: do not run them first
#   QUICK=1  only the tests that belong to the room     ROOM=x  only rooms whose name contains x     JOBS=2
#   OUT=FILE the table                                  MOST=N  only the first N
# Every tested copy must pass unmutated: a test that does not is left out, and said.
cd "$(dirname "$0")/../.." || exit 1
list=$(realpath "${1:?usage: run.sh LIST}")
LIMIT=${LIMIT:-120} JOBS=${JOBS:-2} CC=${CC:-cc} OUT=$(realpath -m "${OUT:-/dev/null}")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
export DEPS=skip CCACHE_NOHASHDIR=1
unset MAKEFLAGS MFLAGS MAKELEVEL BUILD VRAMCAST UPDATE

units() { for u in "$@"; do echo "build/tests/$u"; done; }
cli() { for c in "$@"; do echo "tests/cli/$c.sh"; done; }
# The tests of a room, the likeliest first.
of_room() {
	case $1 in
	simulator/predict) echo tests/ladders/ladders.sh; units test_family test_laws test_align test_workspaces test_sorting test_loops test_single test_reduction; cli lengths evaluation sweep trust estimate fit whatif seeds
		echo tests/answers/answers.sh ;;
	simulator/anatomy | simulator/rewrite | simulator/transforms) echo tests/answers/answers.sh; units test_transforms test_foreach test_formulas test_reduction
		cli anatomy limits; echo tests/transforms/recorded.sh tests/ladders/ladders.sh; cli plot seeds whatif estimate ;;
	simulator/models) echo tests/golden/golden.sh build/tests/conformance; units test_rules test_torch_snapshot test_device_window; cli sim ;;
	simulator/replay) units test_engine test_infer test_device_window test_cards test_source; echo tests/golden/golden.sh build/tests/conformance; cli sim failures snapshot ledger ;;
	simulator/sources) units test_codec test_torch_snapshot test_pickle test_source test_fuzz_corpus test_infer; cli recordings snapshots snapshot bad_input trace_format formats ;;
	simulator/observers) cli sim plot ledger formats; units test_visual_golden test_engine; echo tests/golden/golden.sh ;;
	simulator/session) cli sim trust whatif evaluation seeds failures usage; echo tests/answers/answers.sh tests/ladders/ladders.sh ;;
	simulator/search) cli fit sweep tune; units test_journal ;;
	simulator/advise) cli advice explain limits diff; units test_explain test_diff ;;
	simulator/time) units test_time; cli time ;;
	tracer) units test_meta test_codec; printf '%s\n' tests/tracer/*.sh | grep -v '/check_\|/bench_\|/lib.sh' ;;
	nullgpu) printf 'tests/nullgpu/%s.sh\n' device cudnn stage ;;
	visualize) units test_visual test_visual_golden test_visual_fuzz; cli plot formats; echo tests/golden/golden.sh ;;
	commands) cli usage sim bad_input plot fit sweep formats ;;
	common) units test_codec test_io test_json test_pickle test_param test_opt test_emit test_error test_meta test_exchange test_journal; cli trace_format bad_input ;;
	esac | tr ' ' '\n'
}
everything() { # of_room first, then all that make check runs, but scripts/check-*, sanitized copies and browsers
	{ of_room "$1"; [ "$QUICK" ] || cat "$work/all"; } | awk '!seen[$0]++'
}
build() { make -s -j1 CC="$CC" all $1 > "$log" 2>&1; } # [TARGET]
passes() { # TEST
	case $1 in build/tests/*) build "$1" || return 1 ;; tests/ladders/*) build build/tests/ladders || return 1 ;; tests/golden/golden.sh) build build/tests/golden-replay || return 1 ;; esac
	BUILD=build VRAMCAST=build/vramcast JOBS=1 timeout -k 5 "$LIMIT" scripts/run-tests.sh "$1" > "$log" 2>&1
}
# Replace what stands once in the file; fails when it does not.
apply() { # FILE OLD NEW
	OLD=$2 NEW=$3 awk 'BEGIN { old = ENVIRON["OLD"]; new = ENVIRON["NEW"] }
		(p = index($0, old)) { n++; $0 = substr($0, 1, p - 1) new substr($0, p + length(old)) }
		{ print } END { exit n != 1 }' "$1" > "$1.new" && cat "$1.new" > "$1"
	rc=$?; rm -f "$1.new"; return $rc
}
worker() { # NUMBER: every JOBSth line
	cd "$work/$1" || exit 1
	log=$work/log$1; i=0
	while IFS=$'\t' read -r room file old new name; do
		i=$((i + 1))
		[ $((i % JOBS)) = $(($1 % JOBS)) ] || continue
		cp -p "$file" "$work/kept$1"; by=
		if ! apply "$file" "$old" "$new"; then
			result=misplaced
		elif ! build; then
			result=noticed by="the compiler"
		else
			result=survived
			for t in $(everything "$room"); do
				grep -qxF "$t" "$work/leftout" && continue
				passes "$t" || { result=noticed by=$t; break; }
			done
		fi
		cat "$work/kept$1" > "$file"
		printf '%s\t%s\t%s\t%s\t%s\n' "$result" "$room" "$file" "${name:-$old  ->  $new}" "$by" >> "$work/results"
		printf '%-9s %s: %s  [%s]\n' "$result" "$file" "${name:-$old  ->  $new}" "$by"
	done < "$work/list"
}

grep -v '^#' "$list" | grep . | awk -F '\t' -v room="$ROOM" 'room == "" || index($1, room)' | head -n "${MOST:-100000}" > "$work/list"
make -s -pn DEPS=skip check-all 2> /dev/null | sed -n 's/^\(UNIT\|CLI\|TESTS\) :\{0,1\}= //p' | tr ' ' '\n' | grep . |
	grep -v 'address-undefined\|/browser.sh' > "$work/all"
touch "$work/leftout" "$work/results"
for ((j = 1; j <= JOBS; j++)); do
	mkdir "$work/$j"; git ls-files -co --exclude-standard | tar cf - -T - 2> /dev/null | tar xf - -C "$work/$j"
	(cd "$work/$j" && log=$work/log$j && build) || { tail -n 20 "$work/log$j"; echo "the tree does not build"; exit 1; }
done
cd "$work/1" && log=$work/log1
[ "$TRUST" ] || for t in $(cut -f1 "$work/list" | sort -u | while read -r room; do everything "$room"; done | awk '!seen[$0]++'); do
	passes "$t" || { echo "$t" >> "$work/leftout"; echo "left out, for it fails on the tree as it is: $t"; }
done
for ((j = 1; j <= JOBS; j++)); do worker $j & done; wait
table() {
	awk -F '\t' '{ n[$2]++; if ($1 == "noticed") y[$2]++; if ($1 == "misplaced") m[$2]++; if ($1 == "survived") s[$2] = s[$2] (s[$2] == "" ? "" : "; ") $4 }
		END { for (r in n) printf "| %s | %d | %d | %s |\n", r, n[r] - m[r], y[r], s[r] }' "$work/results" | LC_ALL=C sort
}
{
	echo "| room | mutations | noticed | survived |"; echo "|---|---|---|---|"; table
	awk -F '\t' '$1 != "misplaced" { n++; y += $1 == "noticed" } END { printf "\n%d of %d mutations are noticed (%.0f %%).\n", y, n, n ? 100 * y / n : 0 }' "$work/results"
	awk -F '\t' '$1 == "misplaced" { print "not in its file exactly once: " $3 ": " $4 }' "$work/results"
} | tee "$OUT"
awk -F '\t' '{ n++; y += $1 == "noticed" } END { exit !(n && y >= 0.9 * n) }' "$work/results"
