#!/bin/sh
# record_programs.sh - tests/programs/record.sh on programs that only say they have recorded: what it moves when, and
# what makes it stop. Neither PyTorch nor a dry run is needed.
. tests/support/tap.sh
command -v python3 > /dev/null || { skip "recording programs" "no python3"; finish; }
mkdir -p "$TMP/site/torch/utils" "$TMP/programs" "$TMP/cache"
for f in torch/__init__ torch/utils/__init__ torch/utils/checkpoint starts_cuda; do : > "$TMP/site/$f.py"; done
cat > "$TMP/site/torch/__init__.py" << 'END'
import sys
class cuda:
    def is_initialized():
        return "starts_cuda" in sys.modules
END
# Its recording has the name that was asked for if it is the first, and is there when the program has ended. The last
# one waits until the one before it is in the cache.
cat > "$TMP/programs/some.py" << 'END'
import os, sys, time
size, work = int(sys.argv[-1]), os.environ["WORK"]
before = os.path.join(os.environ["CACHE"], "some/some_size%04d.vct" % (size - 1))
for _ in range(100 if size == 3 else 0):
    time.sleep(0 if os.path.exists(before) else 0.1)
with open(f"{work}.vct" if size == 1 else f"{work}.{os.getpid()}.vct", "w") as f:
    f.write("waited in vain" if size == 3 and not os.path.exists(before) else str(size))
END
cat > "$TMP/vramcast" << 'END'
#!/bin/sh
[ "$1" != export ] || exec cp "${4%@*}" "$6"
echo run >> "$CACHE/runs"
while [ "$1" != -- ]; do [ "$1" != -o ] || WORK=${2%.vct}; shift; done
shift; export WORK; exec "$@"
END
chmod +x "$TMP/vramcast"
cp tests/programs/record.sh "$TMP/programs/" && mkdir "$TMP/transforms" && cp tests/transforms/many.py "$TMP/transforms/"
echo 'some | size | 1 2 3' > "$TMP/list"
record() { # ARGUMENT... : as run does
	env VRAMCAST="$TMP/vramcast" CACHE="$TMP/cache" PYTHON=python3 PYTHONPATH="$TMP/site" "$@" > "$TMP/out" 2> "$TMP/err"
	rc=$?; tap_read
}
record LADDERS="$TMP/none" bash "$TMP/programs/record.sh" ladders
expect "a list that is not there is no success" 2 '' 'there is no list .*/none'
record LADDERS="$TMP/list" PRELOAD=starts_cuda bash "$TMP/programs/record.sh" ladders
expect "a module that initialises CUDA is named" 2 '' 'importing starts_cuda has initialised CUDA'
[ "$(grep -c run "$TMP/cache/runs")" = 1 ] && pass "and nothing is tried again" || fail "nothing is tried again" "$(cat "$TMP/cache/runs")"
rm -rf "$TMP/cache/some"
record LADDERS="$TMP/list" bash "$TMP/programs/record.sh" full
expect "three programs of one process" 0
[ "$(cat "$TMP"/cache/some/some_size000?.vct | tr '\n' ' ')" = "123" ] && pass "what a program has recorded is there while others run" ||
	fail "what a program has recorded is there while others run" "$(head "$TMP"/cache/some/*)"
finish
