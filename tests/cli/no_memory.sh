#!/bin/bash
# no_memory.sh - wherever memory is asked for, and for each way to get there, there may be none: the program ends by itself, and
# does not crash or hang (tests/support/no_memory.c).
. tests/support/tap.sh
own cc && ! sanitized || { skip "without memory" "no cc of this processor, or a sanitized program"; finish; exit; }
cc -O1 -w -fPIC -shared -o "$TMP/none.so" tests/support/no_memory.c
R=tests/recordings T=tests/transforms/recordings
without() { # ARGUMENT...
	rm -rf "$TMP/none"; mkdir "$TMP/none"
	NO_MEMORY="$TMP/none" timeout 60 env LD_PRELOAD="$TMP/none.so" "$VRAMCAST" "$@" > /dev/null 2>&1
	ended=$(grep -c . "$TMP/none/ended"); all=$((all + ended))
	crashed=$(grep '^signal' "$TMP/none/ended" | while read -r _ s _ frames; do
		echo "signal $s at $(addr2line -sfe "$VRAMCAST" $(for f in $frames; do printf '0x%x ' $((f - 1)); done) 2> /dev/null | paste - - | tr '\t\n' ' ,')"; done)
	[ "$ended" -gt 20 ] && [ -z "$crashed" ] && pass "$1, $ended times without memory" || fail "$1, $ended times without memory" "$crashed"
}
without info $R/gpt-4-dry.vct
without info tests/snapshots/torch-2.9.py.pickle.gz
without report $R/eval-4-8.vct -o "$TMP/x.html"
without export $R/oom.vct --to pickle -o "$TMP/x.pickle" --no-verify
without plan $R/encoder.vct
without diff $R/eval-4-8.vct $R/eval-8-16.vct
without ranks $R/two-devices.vct
for x in accumulate checkpoint fsdp lora offload ddp pp:stages=2; do
	without sim $T/gpt.vct -x $x --no-verify --no-advice
done
pass "$all in all"
finish
