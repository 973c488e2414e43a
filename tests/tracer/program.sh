#!/bin/sh
# program.sh - a recording knows its program: what of it is written down, and what never is.
. tests/tracer/lib.sh
own python3 && python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
	{ skip "what a recording knows of its program" "no python3 for ${ARCH:-this machine}"; finish; }
repo=$PWD bin=$PWD/$bin
case $VRAMCAST in /*) ;; *) VRAMCAST=$repo/$VRAMCAST ;; esac
mkdir -p "$TMP/own" "$TMP/site-packages/torch" "$TMP/own/.git/refs/heads"; cd "$TMP/own" || exit 1
echo '__version__ = "2.9.1+standin"' > ../site-packages/torch/__init__.py
echo 'ref: refs/heads/main' > .git/HEAD
echo 0123456789abcdef0123456789abcdef01234567 > .git/refs/heads/main
echo 'SIZE = 64' > mine.py
cat > train.py << 'PY'
import ctypes, sys
import torch, mine
lib = ctypes.PyDLL(None)
f = lib._ZN3c109alloc_cpuEm
f.restype = ctypes.c_void_p
for i in range(int(sys.argv[2])):
    f(mine.SIZE)
PY
export XDG_CACHE_HOME="$TMP/cache" LD_PRELOAD="$bin/libc10.so" LD_LIBRARY_PATH="$bin"
unset PYTORCH_CUDA_ALLOC_CONF
rec() { # OPTION... -- PROGRAM...: recorded, and what info says of the program in $out
	PYTHONPATH="$TMP/site-packages" HF_TOKEN=hf_secret HF_HUB_OFFLINE=1 LD_PRELOAD="$bin/libc10.so" \
		"$VRAMCAST" record -q -o a.vct "$@" > said 2>&1; rc=$?
	LD_PRELOAD= "$VRAMCAST" info --json --no-verify a.vct > "$TMP/info"
	out=$(python3 -c 'import json, sys; print(json.dumps(json.load(open(sys.argv[1])).get("program")))' "$TMP/info")
}
expect_program() { expect "$1" 0 "$2"; }
rec --param batch=8 -- python3 train.py --batch-size 8 --layers 8 --api-token tell-nobody --api-key=tell-nobody-either
cd "$repo" || exit 1; rc=0
expect_program "the value stands behind the option of its name" '"arguments": \["python3", "train.py", "--batch-size", "\{batch\}", "--layers", "8"'
expect_program "the folder, and git's revision of it" '"folder": "'"$TMP"'/own".*"revision": "0123456789abcdef'
equal "the script and the module of the user's own have hashes, by their paths" \
	"$(printf '%s' "$out" | grep -o '/own/[a-z]*.py": "[0-9a-f]\{16\}"' | sort | sed 's/".*//' | tr '\n' ' ')" "/own/mine.py /own/train.py "
expect_program "packages have versions" '"packages": \{.*"torch": "2.9.1\+standin"'
expect_program "of the environment what is on the list" '"HF_HUB_OFFLINE": "1"'
for file in "$TMP/info" "$TMP/own/a.vct" "$TMP/cache/vramcast/programs"/*; do
	"$VRAMCAST" dump "$file" > "$TMP/text" 2> /dev/null; zstd -dcq "$file" >> "$TMP/text" 2> /dev/null; cat "$file" >> "$TMP/text"
	if grep -aqE 'hf_secret|tell-nobody' "$TMP/text"; then fail "no secret is written" "$file"; else pass "no secret is written: ${file##*/}"; fi
done
check "the folder of journals is gone" test ! -e "$TMP/own/a.vct.journal"
LD_PRELOAD= run export "$TMP/own/a.vct" --to vct --redact -o "$TMP/redacted.vct"
LD_PRELOAD= run info --json --no-verify "$TMP/redacted.vct"
if printf '%s' "$out" | grep -q '"program"'; then fail "--redact leaves it out"; else pass "--redact leaves it out"; fi
LD_PRELOAD= run export "$TMP/own/a.vct" --to vct -o "$TMP/copy.vct"
LD_PRELOAD= run info --json --no-verify "$TMP/copy.vct"; expect "a copy keeps it" 0 '"\{batch\}"'
cd "$TMP/own" || exit 1
rec --param n=3 -- python3 train.py x '{n}'
equal "what stands in braces is filled in" "$(LD_PRELOAD= "$VRAMCAST" dump a.vct | grep -c ' alloc ')" 3
rec --param n=4 -- python3 train.py 4 4
rc=0; expect_program "a value that stands twice is marked nowhere" '"train.py", "4", "4"\]'
cd "$repo" || exit 1
finish
