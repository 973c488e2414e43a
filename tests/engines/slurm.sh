# slurm.sh - sourced by check.sh: Slurm on the loopback, unpacked and not installed, with a node of two processors.
# No credentials: auth/none and cred/none are for a machine alone with itself.
slurm_start() {
	local d=$1 name; name=$(hostname -s)
	mkdir -p "$d/state" "$d/spool" "$d/log" "$d/etc"
	cat > "$d/etc/slurm.conf" <<-C
		ClusterName=loopback
		SlurmctldHost=$name(127.0.0.1)
		SlurmctldPort=26817
		SlurmdPort=26818
		AuthType=auth/none
		CredType=cred/none
		PluginDir=$lib/slurm-wlm
		SlurmUser=root
		SlurmdUser=root
		StateSaveLocation=$d/state
		SlurmdSpoolDir=$d/spool
		SlurmctldPidFile=$d/ctld.pid
		SlurmdPidFile=$d/d.pid
		SlurmctldLogFile=$d/log/ctld
		SlurmdLogFile=$d/log/d
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		SchedulerParameters=sched_interval=1,batch_sched_delay=0
		JobAcctGatherType=jobacct_gather/none
		ReturnToService=2
		MpiDefault=none
		CliFilterPlugins=lua
		NodeName=$name NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
		PartitionName=all Nodes=$name Default=YES MaxTime=INFINITE State=UP
	C
	cp examples/engines/cli_filter.lua "$d/etc/cli_filter.lua"
	export SLURM_CONF=$d/etc/slurm.conf
	"$root/usr/sbin/slurmctld-wlm" -D > "$d/log/ctld.out" 2>&1 & ctld=$!
	"$root/usr/sbin/slurmd-wlm" -D -d "$root/usr/sbin/slurmstepd-wlm" -N "$name" > "$d/log/d.out" 2>&1 & slurmd=$!
	trap slurm_stop EXIT
	for name in $(seq 40); do
		"$root/usr/bin/sinfo" -h -o %T 2> /dev/null | grep -q idle && return 0
		sleep 0.5
	done
	tail -n 5 "$d"/log/*
	return 1
}
slurm_stop() { kill "$slurmd" "$ctld" 2> /dev/null; wait "$slurmd" "$ctld" 2> /dev/null; }

try_slurm() {
	local root=$cache/slurm lib=$cache/slurm/usr/lib/x86_64-linux-gnu d=$TMP/slurm
	[ "$(id -u)" = 0 ] || { skip "slurm" "needs root"; return; }
	unpack "$root" slurmctld slurmd slurm-client slurm-wlm-basic-plugins libhwloc15 liblua5.1-0 munge libmunge2 ||
		{ skip "slurm" "cannot fetch it"; return; }
	export LD_LIBRARY_PATH=$lib/slurm-wlm:$lib
	: > "$STARTS"; mkdir -p "$d"
	if slurm_start "$d"; then
		(cd "$d" && RETRIES=40 timeout 120 "$root/usr/bin/sbatch" --wait --array=1-8 "$top/examples/engines/sweep.sbatch" 8 \
			"$d/results" "${words[@]}") > "$TMP/log" 2>&1 || { cat "$TMP/log" "$d"/*.out; tail -n 5 "$d"/log/*; }
		LD_LIBRARY_PATH='' "$REAL" reduce -q "$d"/results/part-*.jsonl -o "$d/all" || :
		judge "Slurm, an array of 8" "$d/all"
		slurm_auto "$d"
		slurm_filter "$d"
	else
		fail "slurm: it starts" "$(cat "$d"/log/*)"
	fi
	slurm_stop
	unset LD_LIBRARY_PATH SLURM_CONF
}

# --shard auto: an array that starts and steps otherwise, and the ranks of a job.
slurm_auto() {
	local line; line=$(printf '%q ' "$REAL" sweep -q --json "${words[@]}" --shard auto)
	(cd "$1" && timeout 60 "$root/usr/bin/sbatch" --wait -o /dev/null --array=10-14:2 --wrap "$line > auto-\$SLURM_ARRAY_TASK_ID") > "$TMP/log" 2>&1
	check "Slurm: an array from 10 to 14 in steps of 2 is three parts" test "$(ls "$1"/auto-1[024] | wc -l)" = 3
	"$REAL" reduce -q "$1"/auto-* --runs $runs -o "$1/auto"
	check "Slurm: --shard auto reads the array" cmp "$1/auto" "$TMP/whole"
	timeout 60 "$root/usr/bin/srun" -n 2 sh -c "$line > $1/rank-\$SLURM_PROCID" > "$TMP/log" 2>&1
	check "Slurm: neither rank of srun does all of it" test "$(cat "$1"/rank-? | wc -l)" = $runs
	"$REAL" reduce -q "$1"/rank-? --runs $runs -o "$1/ranks"
	check "Slurm: --shard auto reads the ranks of srun" cmp "$1/ranks" "$TMP/whole"
}

# The filter: what it says of a dry run decides whether the job is queued. A program stands for vramcast here, because no
# PyTorch is needed to see which exit code does what; `dryrun` itself has tests of its own.
slurm_filter() {
	local sbatch=$root/usr/bin/sbatch code
	mkdir -p "$1/filter"
	printf '#!/bin/sh\necho "$*" > "%s/asked"\necho "needs 90 GiB"\nexit $(cat "%s/code")\n' "$1" "$1" > "$1/filter/vramcast"
	chmod +x "$1/filter/vramcast"
	for code in 0 1 3; do
		echo $code > "$1/code"; rm -f "$1/asked"
		PATH=$1/filter:$PATH "$sbatch" -o /dev/null --comment='vramcast: -g t4 -- python train.py --batch 64' --wrap true > "$1/said" 2>&1
		echo "$? $(cat "$1/asked")" > "$1/result"
		case $code in
		3) check "Slurm: a job that would run out of memory is refused" sh -c "! grep -q '^0' '$1/result' && grep -q 'needs 90 GiB' '$1/said' && ! grep -q Submitted '$1/said'" ;;
		*) check "Slurm: exit code $code queues the job" grep -q Submitted "$1/said" ;;
		esac
		check "Slurm: it asked with the job's own words" grep -q -- 'dryrun .*-g t4 -- python train.py --batch 64' "$1/asked"
	done
	rm -f "$1/asked"
	PATH=$1/filter:$PATH "$sbatch" -o /dev/null --wrap true > "$1/said" 2>&1
	check "Slurm: a job that says nothing is not asked about" sh -c "grep -q Submitted '$1/said' && [ ! -e '$1/asked' ]"
}
