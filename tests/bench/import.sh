#!/bin/bash
# import.sh - a snapshot of a gigabyte, 9 million events, to .vct: seconds of the clock and of the processor, and what is
# resident; the same packed, and one gigabyte of a profile. A part of make bench-large; needs 3 GB where temporary files lie.
free=$(df -Pk "${TMPDIR:-/tmp}" | awk 'NR == 2 { print $4 }')
[ "$free" -gt 4000000 ] || { echo "# import: less than 4 GB free in ${TMPDIR:-/tmp}"; exit 0; }
t=$(mktemp -d); trap 'rm -rf "$t"' EXIT
TIMEFORMAT='%R %U %S'
import() { # NAME FILE : the best of three
	for i in 1 2 3; do
		{ time "$VRAMCAST" export "$2" --to vct -o "$t/out.vct" > /dev/null 2>&1; } 2>&1
	done | sort -n | awk -v n="import.$1" 'NR == 1 { printf "bench %s.s %.2f s\nbench %s.cpu.s %.2f s\n", n, $1, n, $2 + $3 }'
	[ -s "$t/out.vct" ] || { echo "import.sh: $1 was not read" >&2; exit 1; }
}

"$BUILD/tests/bench-format" write 10250 "$t/a.pickle"
printf 'bench import.snapshot.bytes %d B\n' "$(wc -c < "$t/a.pickle")"
import snapshot "$t/a.pickle"
command -v python3 > /dev/null && python3 - "$VRAMCAST" "$t/a.pickle" "$t/out.vct" <<'END'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "export", sys.argv[2], "--to", "vct", "-o", sys.argv[3]], check=True, capture_output=True)
print("bench import.snapshot.rss %d MB" % (resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6))
END
command -v zstd > /dev/null && zstd -qq -1 "$t/a.pickle" -o "$t/a.zst" && import snapshot.zst "$t/a.zst" && rm "$t/a.zst"
gzip -1 -c "$t/a.pickle" > "$t/a.gz" && import snapshot.gz "$t/a.gz"
rm "$t"/a.*

# As torch.profiler writes operators with shapes, kernels and [memory].
awk 'BEGIN {
	print "{\"schemaVersion\": 1, \"traceEvents\": ["
	for (i = 0; i < 1600000; i++) {
		ts = sprintf("%d.%03d", 1428625731896 + i * 10, i % 1000)
		printf "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::addmm\",\"pid\":1,\"tid\":1,\"ts\":%s,\"dur\":%d.25,\"args\":{\"External id\":%d,\"Record function id\":0,\"Concrete Inputs\":[\"\",\"\",\"\",\"1\",\"1\",\"\"],\"Input type\":[\"float\",\"float\",\"float\",\"Scalar\",\"Scalar\",\"\"],\"Input Strides\":[[1],[768,1],[1,768],[],[],[]],\"Input Dims\":[[3072],[4096,768],[768,3072],[],[],[]],\"Ev Idx\":%d}},\n", ts, i % 90, i, i
		if (i % 4 == 0)
			printf "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"gemm_%d\",\"pid\":0,\"tid\":7,\"ts\":%s,\"dur\":12.5,\"args\":{\"device\":0,\"context\":1,\"stream\":7,\"correlation\":%d,\"registers per thread\":128,\"shared memory\":49152,\"grid\":[24,32,1],\"block\":[128,1,1]}},\n", i % 50, ts, i
		if (i % 2 == 0)
			printf "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%s,\"args\":{\"Total Reserved\":2629828608,\"Total Allocated\":%d,\"Bytes\":%d,\"Addr\":%d,\"Device Id\":0,\"Device Type\":1,\"Ev Idx\":%d}},\n", ts, i % 4 ? 1000000000 : 1012582912, i % 4 ? -12582912 : 12582912, 140000000000000 + i % 1000 * 4 - i % 4 * 4, i
	}
	print "{\"ph\":\"M\",\"name\":\"end\"}]}"
}' > "$t/profile.json"
printf 'bench import.profile.bytes %d B\n' "$(wc -c < "$t/profile.json")"
import profile "$t/profile.json"
