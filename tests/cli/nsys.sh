#!/bin/sh
# nsys.sh - SQLite exports of Nsight Systems, written by SQLite itself: what the driver gave out is what the tracer saw.
. tests/support/tap.sh
command -v python3 > /dev/null && python3 -c 'import sqlite3' 2> /dev/null || { skip "reports of Nsight Systems" "no python3 with sqlite3"; finish; }
run info traces/decomfl.vct --json
peak=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
"$VRAMCAST" dump traces/decomfl.vct > "$TMP/dump"
for page in 512 4096 65536; do
	rm -f "$TMP/r.sqlite"; python3 tests/support/nsys.py "$TMP/dump" "$TMP/r.sqlite" $page
	run info "$TMP/r.sqlite" --json; expect "pages of $page bytes: reserved is what the recording reserved ($peak)" 0 "\"peak_reserved\": $peak,"
done
expect "the card is known" 0 '"gpu": "Tesla T4"'
check "calls that asked the device and were refused are failures; those of the host are not" grep -q '"ooms": 2' "$TMP/out"
check "a free of what was there before is counted" grep -q '1 frees are of memory from before' "$TMP/out"
run dump "$TMP/r.sqlite"
segments() { sed -n 's/^.* \(segment_[a-z]*\) .*\(size=[0-9]*\).*/\1 \2/p' "$1"; }
segments "$TMP/dump" > "$TMP/a"; segments "$TMP/out" > "$TMP/b"
check "segments come in the order of time" cmp "$TMP/a" "$TMP/b"
check "pinned memory is none of the device's" grep -q 'outside_alloc .*label=pinned host memory' "$TMP/out"
run sim "$TMP/r.sqlite"; expect "it holds no requests, and says so" 6 'no request was recorded'
gzip -c "$TMP/r.sqlite" > "$TMP/r.sqlite.gz"; run info "$TMP/r.sqlite.gz" --json; expect "packed by gzip" 0 "\"peak_reserved\": $peak,"
python3 -c 'import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute("create table t (a)"); d.commit()' "$TMP/other.sqlite"
run info "$TMP/other.sqlite"; expect "a database without that table" 1 '' 'without the table CUDA_GPU_MEMORY_USAGE_EVENTS; record with nsys profile --cuda-memory-usage=true'
# Two processes may have the same addresses; a pool of cudaMallocAsync says what it holds.
python3 - "$TMP/pool.sqlite" <<'P'
import sqlite3, sys
d = sqlite3.connect(sys.argv[1])
d.execute("create table CUDA_GPU_MEMORY_USAGE_EVENTS (start, globalPid, deviceId, address, bytes, memKind, memoryOperationType, localMemoryPoolAddress, localMemoryPoolSize, localMemoryPoolUtilizedSize)")
d.executemany("insert into CUDA_GPU_MEMORY_USAGE_EVENTS values (?,?,?,?,?,?,?,?,?,?)", [
    (10, 1, 0, 4096, 1 << 20, 2, 0, None, None, None), (11, 2, 0, 4096, 3 << 20, 2, 0, None, None, None),
    (12, 1, 0, 4096, 1 << 20, 2, 1, None, None, None), (13, 2, 0, 9000, 5, 2, 0, 77, 32 << 20, 5)])
d.commit()
P
run info "$TMP/pool.sqlite" --json; expect "two processes are added up" 0 '"peak_reserved": 4194304,'
check "the pool's size is the driver's" grep -q '"driver_pool_reserved": 33554432,' "$TMP/out"

# Damage at any byte is one sentence or an answer, never a crash.
rm -f "$TMP/r.sqlite"; head -n 400 "$TMP/dump" > "$TMP/short"; python3 tests/support/nsys.py "$TMP/short" "$TMP/r.sqlite" 512
cat > "$TMP/damage.py" <<'P'
import random, subprocess, sys
good = open(sys.argv[2], "rb").read()
random.seed(1)
for i in range(150):
    bad = bytearray(good)
    for _ in range(random.randint(1, 4)):
        bad[random.randrange(len(bad))] = random.randrange(256)
    bad = bad[:random.randrange(len(bad))] if i % 5 == 0 else bad
    open(sys.argv[3], "wb").write(bad)
    done = subprocess.run([sys.argv[1], "info", sys.argv[3]], capture_output=True, text=True, timeout=20)
    assert done.returncode in (0, 1), (i, done.returncode, done.stderr)
    assert done.returncode == 0 or done.stderr.count("\n") == 1, done.stderr
P
check "150 damaged files: an answer or one sentence" python3 "$TMP/damage.py" "$VRAMCAST" "$TMP/r.sqlite" "$TMP/bad.sqlite"
finish
