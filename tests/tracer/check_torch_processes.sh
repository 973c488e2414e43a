#!/bin/sh
# check_torch_processes.sh - real PyTorch on the CPU in several processes: DataLoader workers that are
# forked or spawned, ranks of torchrun, a program killed with its recorder. A trace for each process, and
# in each as many events as PyTorch's own memory profiler counts there. TORCH_ENVS: folders with bin/python3.
. tests/tracer/lib.sh
[ -n "$TORCH_ENVS" ] || { skip "PyTorch in several processes" "TORCH_ENVS names no Python with PyTorch"; finish; }
export CUDA_VISIBLE_DEVICES= COUNTS="$TMP/counts" OMP_NUM_THREADS=1
host=$(uname -n)
# A CUDA build without the libraries of a GPU starts with those of the null GPU.
on() { if [ -n "$null" ]; then PATH=$env/bin:$PATH "$VRAMCAST" dryrun --no-record -q -g rtx4090 -- "$@"; else PATH=$env/bin:$PATH "$@"; fi; }
record() { rm -rf "$TMP"/t*.vct "$COUNTS"; mkdir -p "$COUNTS"; on timeout 400 "$VRAMCAST" record -q -o "$TMP/t.vct" "$@" > "$TMP/out" 2> "$TMP/err"; rc=$?; }
# counted TRACE: "PID allocs frees" between its marks; memory that another process made counts in the first
# process only: in a worker it is freed by a thread of PyTorch's that the profiler does not see
counted() {
	"$VRAMCAST" dump "$1" | awk -v pid="$(field "$1" pid)" -v shared="$2" '/count from here/ { on = 1 } /count to here/ { on = 0 } on { n[$3]++ }
		END { print pid, n["alloc"] + shared * n["outside_alloc"], n["free"] + shared * n["outside_free"] }'
}
# same NAME PROCESSES: each process has its trace, with what it counted itself
same() {
	got=$(for t in "$TMP"/t*.vct; do counted "$t" "$([ "$t" = "$TMP/t.vct" ] && echo 1 || echo 0)"; done | grep -v ' 0 0$' | sort)
	asked=$(grep -xE '[0-9]+ [0-9]+ [0-9]+' "$TMP/out" | sort)
	if [ "$rc $got" = "0 $asked" ] && [ "$(echo "$got" | wc -l)" = "$2" ]; then pass "$1: $2 processes, $(echo "$got" | awk '{ n += $2 + $3 } END { print n }') events, each one in the trace of its process"
	else fail "$1: $2 processes, each event in the trace of its process" "exit code $rc" "$got" "asked:" "$asked" "$(tail -n 3 "$TMP/err")"; fi
	equal "$1: none dropped, every header names the host" "$(for t in "$TMP"/t*.vct; do echo "$(field "$t" dropped) $(field "$t" host)"; done | sort -u)" "0 $host"
}
for env in $TORCH_ENVS; do
	null=; "$env/bin/python3" -c 'import torch' 2> /dev/null || null=yes
	name=$(basename "$env")
	on python3 -c 'import torch' 2> /dev/null || { skip "$name" "its PyTorch does not start"; continue; }
	for how in fork spawn; do
		record -- python3 tests/tracer/torch_workers.py "$how"
		same "$name, workers by $how" 5
	done
	record -- python3 -m torch.distributed.run --nproc-per-node 2 --master-port "$((20000 + $$ % 20000))" tests/tracer/torch_workers.py rank
	same "$name, torchrun" 2
	equal "$name, torchrun: names and numbers of the ranks" "$(for r in 0 1; do field "$TMP/t.rank$r.vct" rank; done | tr '\n' ' ')" "0 1 "

	# Program and recorder die together in the middle of a training run.
	rm -rf "$TMP"/t* "$TMP/ready"
	cat > "$TMP/loop.py" << 'LOOP'
import ctypes, sys, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 8))
optimizer = torch.optim.AdamW(model.parameters())
for i in range(10 ** 9):
    model(torch.randn(32, 64)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if i == 50:
        open(sys.argv[1], "w").close()
LOOP
	on sh -c 'echo $$ > "$1.pid"; exec "$2" record -q -o "$1" -- sh -c '\''echo $$ > "$1.pid2"; exec python3 "$2" "$3"'\'' sh "$1" "$3" "$4"' sh "$TMP/t.vct" "$VRAMCAST" "$TMP/loop.py" "$TMP/ready" > "$TMP/err" 2>&1 &
	job=$!
	for i in $(seq 1200); do [ -e "$TMP/ready" ] && break; sleep 0.1; done
	victim=$(cat "$TMP/t.vct.pid2")
	kill -9 "$(cat "$TMP/t.vct.pid")" "$victim"
	wait "$job" 2> /dev/null
	for i in $(seq 200); do grep -q '\.vcj' "/proc/$victim/maps" 2> /dev/null || break; sleep 0.05; done
	journal=$(ls "$TMP"/t.vct.journal/*.vcj)
	before=$(field "$journal" events)
	run sim --no-verify "$journal"
	[ "$rc" = 0 ] && [ "$before" -gt 1000 ] && pass "$name, killed: info and sim read the journal, $before events" || fail "$name, killed: info and sim read the journal" "$before" "$err"
	for i in $(seq 200); do # a killed process lets go of its files a moment later
		run recover "$TMP/t.vct"
		case $err in *"still writes it"*) sleep 0.05 ;; *) break ;; esac
	done
	equal "$name, killed: recover makes the trace of it" "$rc $(field "$TMP/t.vct" events)" "0 $before"
done
finish
