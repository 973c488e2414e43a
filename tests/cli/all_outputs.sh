#!/bin/sh
# all_outputs.sh - recordings of several kinds in every picture and format, and what each command that takes one says of them:
# what is written is what it was.
. tests/support/tap.sh
R=tests/recordings S=tests/snapshots
extension() {
	case $1 in
	braille|flame_text) echo txt ;; owners_dot) echo dot ;; html|csv|jsonl|json|folded|pprof|minimalloc|pickle) echo "$1" ;;
	perfetto) echo pftrace ;; chrome) echo trace ;; openmetrics) echo prom ;; markdown) echo md ;; junit) echo xml ;; *) echo svg ;;
	esac
}
sinks=$("$VRAMCAST" list sinks | sed -n 's/^  \([a-z_]*\) .*/\1/p')
written() { # RECORDING OPTION...
	bad=
	for s in $sinks; do
		run plot "$@" -t "$s" -o "$TMP/$s.$(extension "$s")"
		[ "$rc" = 0 ] && [ -s "$TMP/$s.$(extension "$s")" ] || bad="$bad $s: $err"
	done
	[ -z "$bad" ] && pass "$* in every format" || fail "$* in every format" "$bad"
}
written $S/streams.pickle.gz
written $S/graphs-expandable.pickle.gz --capacity 30MiB
written $R/h100/unet-4.vct -g rtx3060-12g --capacity 500MiB
written traces/lm-train-ctx128.vct -g a100-40g-sxm -x accumulate:micro=2

answered() { # RECORDING
	bad=
	for c in info sim tune plan dump; do for as in "" --json; do
		[ "$c $as" != "dump --json" ] || continue
		# shellcheck disable=SC2086
		run $c $as "$1"
		[ "$rc" = 0 ] || [ "$rc" = 3 ] || [ "$rc" = 6 ] || bad="$bad $c $as: $err"
	done; done
	[ -z "$bad" ] && pass "$1: what commands say" || fail "$1: what commands say" "$bad"
}
for f in $S/streams.pickle.gz $S/graphs-expandable.pickle.gz $S/torch-2.13.py.pickle.gz $R/h100/moe-4.vct $R/h100/compiled.vct \
	$R/h100/scaler.vct $R/leak-blocks.vct $R/leak-graph.vct $R/fraction.vct $R/first-step.vct $R/devices.vct traces/decomfl.vct; do answered $f; done
# Sweeps over one and two values, with intervals.
H=$R/h100
run sweep -q $H/unet-4.vct@batch=4 $H/unet-12.vct@batch=12 --vary batch=4,8,16,24,48 -g t4 -o "$TMP/one.jsonl"
run sweep -q $H/unet-4.vct@batch=4 $H/unet-12.vct@batch=12 --vary batch=4,8,16,24,48 --vary capacity=1GiB,2GiB,4GiB -o "$TMP/two.jsonl"
for f in one two; do for look in 1200 600; do
	run plot "$TMP/$f.jsonl" -o "$TMP/$f.svg" --width $look --theme dark; expect "$f varied, $look pixels" 0
done; done
for p in gpt moe unet; do
	run diff --json $R/h100/$p-4.vct $R/h100/$p-12.vct; expect "$p: what differs" 0
	run diff $R/h100/$p-4.vct $R/h100/$p-12.vct -o "$TMP/diff.svg"; expect "$p: for people" 0
	run ranks --json $R/h100/$p-4.vct $R/h100/$p-12.vct $R/h100/$p-24.vct; expect "$p: as ranks" 0
done
# What makes each of several programs fit, and the largest of its values that does.
found() { # OPTION... : an answer, or a sentence that there is none
	run fit -q "$@"; case $rc in 0|1|3|6) ;; *) bad="$bad $*: $rc $err" ;; esac
}
bad=
for p in gpt llama moe t5 unet; do for c in 1500MiB 400MiB; do found --find checkpoint --capacity $c $H/$p-12.vct; done; done
found --find anything --capacity 1GiB $H/unet-12.vct
for p in gpt style t5; do
	found -g t4 $H/$p-4.vct@batch=4 $H/$p-12.vct@batch=12
	found -g t4 --json --target 50..60% --multiple 3 --most 200 $H/$p-4.vct@batch=4 $H/$p-12.vct@batch=12
done
for o in "--most 17" "--among 5,11,23" "--capacity 600MiB" "--capacity 200MiB" "--capacity 2GiB --json" "--capacity 1GiB --target 20..30%"; do
	# shellcheck disable=SC2086
	found -g t4 $o $H/unet-4.vct@batch=4 $H/unet-12.vct@batch=12
done
[ -z "$bad" ] && pass "what fits is found" || fail "what fits is found" "$bad"
finish
