#!/bin/sh
# stacks.sh - --stacks py, and py:N: call stacks of the first steps, then of requests that fail.
. tests/tracer/lib.sh
own python3 && python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' || { skip "call stacks of Python" "no CPython 3.9 for ${ARCH:-this machine}"; finish; }
cp -r "$bin/torch" "$TMP/torch"
printf "__version__ = '2.9.0+cu000'\n" > "$TMP/torch/version.py"
# by: what each request says of where it came from, in the order of the recording
by() { "$VRAMCAST" dump "$TMP/a.vct" | awk '$3 == "alloc" || $3 == "oom" { at = $0; if (!sub(/.* at=.*:/, "", at)) at = "-"; printf "%s:%s ", $3, at }'; }
two="alloc:ask alloc:ask "
run record -o "$TMP/a.vct" --stacks py -- python3 tests/tracer/stacks.py "$TMP/torch/lib"
equal "py: every request and every failure" "$rc $(by)" "0 $two$two$two${two}oom:ask oom:ask alloc:ask "
run record -o "$TMP/a.vct" --stacks py:2 -- python3 tests/tracer/stacks.py "$TMP/torch/lib"
equal "py:2: two steps, then the failure, but for one that was not said in time" "$rc $(by)" "0 $two${two}alloc:- alloc:- alloc:- alloc:- oom:too_much oom:- alloc:- "
expect "py:2: record says what there is" 0 "" "partial: stacks"
equal "py:2: nothing is lost" "$(field "$TMP/a.vct" dropped)" 0
run record -o "$TMP/a.vct" --stacks py:9 -- python3 tests/tracer/stacks.py "$TMP/torch/lib"
equal "py:9: more steps than there are" "$(by)" "$two$two$two${two}oom:ask oom:ask alloc:ask "

# What the null GPU's own Python does below an operation, and what stands in front of the program, is not
# the program's: the same stacks as without.
mkdir "$TMP/own"
printf 'def run(f):\n    f()\nclass Mode:\n    def __torch_dispatch__(self, f):\n        run(f)\n    def wrapped(self, f):\n        f()\n' > "$TMP/own/vramcast_null_values.py"
printf 'import ctypes, vramcast_null_values as v\nask = ctypes.PyDLL(None)._ZN3c109alloc_cpuEm\nask.restype = ctypes.c_void_p\ndef plain():\n    return ask(64)\nm = v.Mode()\ndef one():\n    m.__torch_dispatch__(plain)\ndef two():\n    m.wrapped(plain)\none()\ntwo()\n' > "$TMP/p.py"
LD_PRELOAD="$PWD/$bin/libc10.so" PYTHONPATH="$TMP/own" run record -q -o "$TMP/a.vct" --stacks py -- python3 "$TMP/p.py"
equal "a frame of the null GPU's, and what it called, are not there; one around the program's is left out" "$(by)" "alloc:one alloc:plain "
finish
