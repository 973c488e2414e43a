#!/bin/sh
# check.sh - make check-plan: PyTorch programs run by a plan on the null GPU. TORCH=2.11.0, PROGRAMS="fixed lengths".
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=tests/plan; context=500; export PYTHONWARNINGS=ignore
dry() { "$VRAMCAST" dryrun -g rtx4090 --context ${context}MiB "$@"; }
number() { tr -d ' ,' < "$1" | sed -n "s/^\"$2\":\([0-9.]*\)\$/\1/p" | head -n 1; }
stat() { awk -v k="$2" '$1 == "stats" { print $k }' "$1"; }

check_program() {
	what="$version $1"; a=$TMP/$1
	dry -o "$a.vct" -- "$py" $here/programs.py "$1" > "$a.native" 2> "$TMP/err" || { fail "$what runs without a plan" "$(tail -5 "$TMP/err")"; return; }
	"$VRAMCAST" plan "$a.vct" -o "$a.vcp" --json > "$a.json" 2> "$TMP/err" || { fail "$what is planned" "$(cat "$TMP/err")"; return; }
	if ! "$VRAMCAST" run --check --plan "$a.vcp" -- "$VRAMCAST" dryrun -g rtx4090 --context ${context}MiB --no-record -- "$py" $here/programs.py "$1" \
		> "$a.planned" 2> "$TMP/err"; then fail "$what runs by its plan" "$(tail -8 "$TMP/err")"; return; fi
	arena=$(number "$a.json" arena) pools=$(number "$a.json" elsewhere_peak)
	reserved=$(stat "$a.planned" 4) native=$(stat "$a.native" 4)
	served=$(sed -n 's/.*: \([0-9]*\) of \([0-9]*\) requests served.*/\1 of \2/p' "$TMP/err")
	check "$what: no place is given out twice" grep -q 'checked: 0 places given out twice' "$TMP/err"
	check "$what: what is computed is the same" sh -c "grep loss '$a.native' > '$TMP/x'; grep loss '$a.planned' | cmp - '$TMP/x'"
	if [ "$pools" = 0 ] && [ "$(number "$a.json" growing)" = 0 ]; then
		check "$what: $served served; reserved $reserved, arena $arena, without a plan $native" \
			awk "BEGIN { exit !($reserved <= 1.02 * $arena + 20971520) }"
	else
		check "$what: $served served; reserved $reserved, arena $arena beside private pools ($pools) and what outlives the repetition, without a plan $native" \
			[ "$reserved" -le "$native" ]
	fi
}

# A card on which the plan just fits.
check_small() {
	what="$version $1 on a card"; a=$TMP/$1
	capacity=$(($(stat "$a.planned" 4) / 1048576 + context + 2))
	if dry --no-record --capacity ${capacity}MiB -- "$py" $here/programs.py "$1" > "$TMP/out" 2> "$TMP/err"; then
		pass "$what of $capacity MiB: PyTorch's own allocator manages, too"; return
	fi
	grep -q 'OutOfMemoryError' "$TMP/err" || { fail "$what of $capacity MiB: PyTorch's own runs out" "$(tail -5 "$TMP/err")"; return; }
	"$VRAMCAST" run --plan "$a.vcp" -- "$VRAMCAST" dryrun -g rtx4090 --context ${context}MiB --no-record --capacity ${capacity}MiB -- \
		"$py" $here/programs.py "$1" > "$TMP/out" 2> "$TMP/err"
	rc=$?
	if [ $rc = 0 ]; then pass "$what of $capacity MiB: PyTorch's own allocator runs out, the plan runs"
	else fail "$what of $capacity MiB: the plan runs" "$(tail -8 "$TMP/err")"; fi
}

for version in ${TORCH:-2.11.0}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	for p in ${PROGRAMS:-values fixed lengths evaluation accumulation checkpointing amp convolutions transformer streams graphs fsdp}; do
		check_program "$p"
	done
	for p in ${SMALL:-fixed lengths evaluation amp transformer}; do
		[ -f "$TMP/$p.planned" ] && check_small "$p"
	done
done
finish
