#!/bin/sh
# extending.sh - docs/extending.md is true: in a copy of this tree a source, a transform, a model, an
# observer, a sink and a command are each one file and one row, rebuild two objects, and are found by the program.
. tests/support/tap.sh
LC_ALL=C; export LC_ALL
copy=$TMP/copy; mkdir "$copy"
case $BUILD in /*) objects=build ;; *) objects=$BUILD ;; esac
tar cf - --exclude=__pycache__ Makefile vramcast.c commands common nullgpu python scripts simulator tests tracer visualize |
	tar xf - -C "$copy"
mkdir "$copy/$objects"
(cd "$BUILD" && find . -path ./tests -prune -o \( -name '*.o' -o -name '*.d' -o -name '*.a' -o -name config.mk -o -name flags.txt -o -name objects.txt \) -print |
	tar cf - -T -) | tar xf - -C "$copy/$objects"
unset MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL
build() { (cd "$copy" && make DEPS=skip BUILD="$objects" "$objects/vramcast" ${1:+"$objects/$1"}) > "$TMP/make.log" 2>&1; }
VRAMCAST=$copy/$objects/vramcast

# plug KIND FOLDER TABLE MACRO: the file, the row, and what that rebuilds
plug() {
	if [ "$1" = model ]; then sed -n '/^```c$/,/^```$/{/^```/d;p}' docs/extending.md; else cat "tests/extending/toy_$1.c"; fi > "$copy/$2/toy.c"; echo "VC_$4(toy)" >> "$copy/$3"
	build $5 || { fail "a $1 builds" "$(cat "$TMP/make.log")"; return; }
	rebuilt=$(grep -c '^  CC ' "$TMP/make.log")
	[ "$rebuilt" -le 2 ] && pass "a $1 is one file and one row, and rebuilds $rebuilt objects" ||
		fail "a $1 is one file and one row" "$rebuilt objects rebuilt" "$(grep '^  CC ' "$TMP/make.log")"
}
build || { fail "the copy builds" "$(cat "$TMP/make.log")"; finish; }
check "a copy of the tree has nothing to build" sh -c "! grep -q '^  CC ' '$TMP/make.log'"
t=tests/recordings/gpt.vct

plug transform simulator/transforms simulator/transforms/transforms.def TRANSFORM
run sim $t -x toy --no-advice; expect "a transform without a margin says that nobody knows how far off it is" 0 'toy: how far off its answer may be was never measured'
run sim $t -x toy --no-advice --json; expect "and is of level unknown" 0 '"level": "unknown"'
run sim $t -x toy -x checkpoint --no-advice --json; expect "also beside one whose margin is known" 0 '"level": "unknown"'
run sim $t -x checkpoint --no-advice --json; expect "which is bounds alone" 0 '"level": "bounds"'
run sim $t -x fraction:f=0.9 --no-advice --json; expect "while one that the recording decides is bounds with nothing open, for no change is exact" 0 '"interval": null,'

plug model simulator/models simulator/models/models.def MODEL tests/conformance
check "the battery of models takes one that keeps its regions" "$copy/$objects/tests/conformance"
run sim $t -m toy --no-advice; expect "and answers are in its own name" 0 'reserved by toy'
check "a policy is less than a hundred lines" [ "$(wc -l < "$copy/simulator/models/toy.c")" -lt 100 ]
run sim $t -m all --no-advice; expect "and it stands beside all others" 0 '^  toy .* fits '
sed -i 's/\.keeps_regions = true, //' "$copy/simulator/models/toy.c"; build tests/conformance
"$copy/$objects/tests/conformance" toy > "$TMP/battery" 2>&1
check "one that does not say so is told the name of the flag" grep -q 'keeps_regions' "$TMP/battery"

plug source simulator/sources simulator/sources/sources.def SOURCE
echo toy > "$TMP/trace"; run info "$TMP/trace"; expect "a source reads its format" 0 'toy'
plug observer simulator/observers simulator/observers/observers.def OBSERVER
plug sink visualize/sinks visualize/sinks/sinks.def SINK
run plot "$TMP/trace" -o "$TMP/out.toy"; expect "a sink is found by its extension" 0
check "and writes what its observer saw" grep -qx '1 requests' "$TMP/out.toy"
plug command commands commands/commands.def COMMAND
run toy "$TMP/trace"; expect "a command is found by its name" 0 '^2 events'
finish
