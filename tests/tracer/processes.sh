#!/bin/sh
# processes.sh - a trace for each process: workers that are forked or spawned, ranks of a launcher; which
# process each is of stands in its header. With a stand-in libc10; check_torch_processes.sh has the real one.
. tests/tracer/lib.sh
export LD_LIBRARY_PATH="$bin"
host=$(uname -n)
# each TRACE...: "PID EVENTS" of them, sorted
each() { for t in "$@"; do echo "$(field "$t" pid) $(field "$t" events)"; done | sort; }

if own python3; then
	for how in fork spawn forkserver; do
		rm -f "$TMP"/p*.vct
		LD_PRELOAD="$PWD/$bin/libc10.so" run record -q -o "$TMP/p.vct" -- python3 tests/tracer/processes.py $how 4
		equal "$how: five processes, five traces, each event in its own" "$rc $(each "$TMP"/p*.vct)" "0 $(echo "$out" | sort)"
		equal "$how: none dropped, every header names the host" "$(for t in "$TMP"/p*.vct; do field "$t" dropped; field "$t" host; done | sort | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" "5 0 5 $host "
		equal "$how: no free of memory that another process has" "$(for t in "$TMP"/p*.vct; do field "$t" unmatched_frees; done | sort -u)" 0
	done
else
	skip "fork, spawn, forkserver" "no python3"
fi

# As torchrun does it: the launcher is recorded, its ranks inherit that.
rank() { echo "RANK=$1 LOCAL_RANK=$1 WORLD_SIZE=2 '$bin/victim' exit $((1000 * ($1 + 1)))"; }
run record -o "$TMP/r.vct" -- sh -c "$(rank 0) & $(rank 1) & wait"
equal "two ranks, two traces" "$(cd "$TMP" && echo r*.vct)" "r.rank0.vct r.rank1.vct"
for r in 0 1; do
	equal "rank $r: its events, its number and its host" "$(field "$TMP/r.rank$r.vct" events) $(field "$TMP/r.rank$r.vct" rank) $(field "$TMP/r.rank$r.vct" host)" "$((1500 * (r + 1))) $r $host"
done
rm -f "$TMP"/r.*
run record -q -o "$TMP/r.vct" -- sh -c "$(rank 1); $(rank 1)"
equal "a rank that was started again: both" "$(for t in "$TMP"/r.rank1*.vct; do field "$t" events; done | tr '\n' ' ')" "3000 3000 "

# As Slurm and Open MPI do it: they start a recorder for each rank, all with the same name.
for names in SLURM_PROCID:SLURM_NTASKS OMPI_COMM_WORLD_RANK:OMPI_COMM_WORLD_SIZE RANK:WORLD_SIZE; do
	rm -f "$TMP"/r.*
	for r in 0 1; do
		env "${names%:*}=$r" "${names#*:}=2" "$VRAMCAST" record -q -o "$TMP/r.vct" -- "$bin/victim" exit $((1000 * (r + 1))) &
	done
	wait
	equal "${names%:*}: a recorder for each rank" "$(each "$TMP"/r*.vct | sed 's/.* //' | sort -n | tr '\n' ' ')$(cd "$TMP" && echo r*)" "1500 3000 r.rank0.vct r.rank1.vct"
done

ln -s "$TMP/gone" "$TMP/l.vct.journal" # of a host that has died, or of another one that shares the folder
run record -q -o "$TMP/l.vct" -- "$bin/victim" return 1000
equal "a folder of journals that leads nowhere is no obstacle" "$rc $(field "$TMP/l.vct" events)" "2 1500"
finish
