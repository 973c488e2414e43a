#!/bin/sh
# make-traces.sh DATA - make the sample recordings in traces/ from the public files they come from
# (traces/README.md says where each is found). DATA is a folder with those files under their names.
# Nobody needs to run this to build or test; the results are in the repository.
set -e
data=${1:?usage: scripts/make-traces.sh DATA}
v=${VRAMCAST:-build/vramcast}
one() { # one NAME SOURCE : without folders of call sites, command lines, host names
	"$v" export "$data/$2" --to vct --redact --level 19 -o "traces/$1.vct"
	n=$(wc -c < "traces/$1.vct")
	[ "$n" -lt 1048576 ] || { echo "traces/$1.vct has $n bytes, more than 1 MiB" >&2; exit 1; }
	"$v" dump "$data/$2" | sed 's/ at=.*//' > "traces/$1.a"
	"$v" dump "traces/$1.vct" | sed 's/ at=.*//' > "traces/$1.b"
	cmp "traces/$1.a" "traces/$1.b" || { echo "traces/$1.vct differs from its source" >&2; exit 1; }
	rm "traces/$1.a" "traces/$1.b"
	echo "traces/$1.vct $n bytes, the same events as $2"
}
one decomfl 'snapshots/ZidongLiu+DeComFL__memory@edd30e0.pickle'
one lm-train-ctx128 'snapshots/sidsoc12+spring2024-assignment2-systems__cs336_systems_mem_snapshot_ctx128_fp32_train.pickle'
one vllm-rl-pools 'snapshots/volcengine+verl__mem@27ee9a4.pickle'
one llm-oom 'snapshots/Yiyi-philosophy+LLM-inference__oom_snapshot.pickle'
one lm-medium-ctx1024 'snapshots/Wedsonlin+assignment2-systems__results_medium_1024_training_memory_snapshot.pickle'
one attention 'snapshots/silmont2000+assignment2-systems__mem_snapshot.pickle'
