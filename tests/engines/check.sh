#!/bin/bash
# check.sh [ENGINE...] - the examples of examples/engines on the engines themselves, with parts that are killed at random:
# what comes out has to be what one sweep writes, byte for byte. What is fetched lies in ENGINES_CACHE, outside the tree:
# parallel   Debian's package parallel, unpacked
# spark      pyspark and py4j of PyPI in a virtual environment; needs a Java that is here
# ray        ray of PyPI in a virtual environment
# slurm      Debian's slurmctld, slurmd, slurm-client and what they need, unpacked; runs on the loopback, needs root
# kubernetes no engine: the manifest's own command, with the environment that an indexed job gives it
. tests/support/tap.sh
cache=${ENGINES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-engines}
top=$PWD; mkdir -p "$cache" "$TMP/bin"
VRAMCAST=$(realpath "$VRAMCAST")
export REAL=$VRAMCAST STARTS=$TMP/starts VRAMCAST
install -m 755 tests/engines/killed.sh "$TMP/bin/vramcast"
export PATH=$TMP/bin:$PATH
trace=$top/traces/lm-train-ctx128.vct
words=("$trace" --no-verify --vary gpu=t4,l4,rtx4090,a100-40g-sxm --vary 'conf=|expandable_segments:True' --vary torch=2.4..2.13
	--vary fraction=0.30,0.35,0.41,0.46,0.52,0.57,0.63,0.68,0.74,0.85)
runs=800
"$REAL" sweep -q --json -j 2 "${words[@]}" > "$TMP/whole" || { fail "one sweep"; finish; }
check "one sweep makes $runs runs" test "$(wc -l < "$TMP/whole")" = $runs

# judge ENGINE FILE : the same bytes, and some were killed on the way
judge() {
	check "$1: the same bytes as one sweep" cmp "$TMP/whole" "$2"
	check "$1: nothing lost, nothing doubled" "$REAL" reduce -q "$2" --runs $runs -o "$TMP/again"
	echo "# $1: $(grep -c start "$STARTS") starts, $(grep -c killed "$STARTS") killed"
	check "$1: some were killed" grep -q killed "$STARTS"
}
# unpack FOLDER PACKAGE... : Debian's packages, without installing them
unpack() {
	local to=$1; shift
	[ -e "$to/done" ] && return
	mkdir -p "$to/debs" && (cd "$to/debs" && apt-get download -q "$@" > ../log 2>&1) || return 1
	for deb in "$to"/debs/*.deb; do dpkg -x "$deb" "$to" || return 1; done
	touch "$to/done"
}
# wheels FOLDER REQUIREMENT... : a virtual environment
wheels() {
	local to=$1; shift
	[ -e "$to/done" ] || { python3 -m venv "$to" && "$to/bin/pip" install -q "$@" > "$to/log" 2>&1 && touch "$to/done"; }
}

try_parallel() {
	unpack "$cache/parallel" parallel || { skip "parallel" "cannot fetch it"; return; }
	for parts in 3 16; do
		: > "$STARTS"
		PATH=$cache/parallel/usr/bin:$PATH PERL5LIB=$cache/parallel/usr/share/perl5 JOBS=2 RETRIES=40 \
			examples/engines/parallel.sh $parts "$TMP/parallel$parts" "${words[@]}" > "$TMP/log" 2>&1 || cat "$TMP/log"
		judge "GNU parallel, $parts parts" "$TMP/parallel$parts/all.jsonl"
	done
}
try_spark() {
	command -v java > /dev/null || { skip "spark" "no Java"; return; }
	wheels "$cache/spark" pyspark==3.5.1 || { skip "spark" "cannot fetch it"; return; }
	for parts in 3 12; do
		: > "$STARTS"
		PYSPARK_SUBMIT_ARGS="--master local[2,40] --conf spark.ui.enabled=false pyspark-shell" SPARK_LOCAL_IP=127.0.0.1 \
			timeout 300 "$cache/spark/bin/python" examples/engines/spark_sweep.py $parts "$TMP/spark$parts" "${words[@]}" \
			> "$TMP/log" 2>&1 || tail -5 "$TMP/log"
		judge "Spark, $parts parts" "$TMP/spark$parts"
	done
}
try_ray() {
	wheels "$cache/ray" ray==2.40.0 || { skip "ray" "cannot fetch it"; return; }
	: > "$STARTS"
	KILL_PARENT=1 RAY_USAGE_STATS_ENABLED=0 timeout 300 "$cache/ray/bin/python" \
		examples/engines/ray_sweep.py 8 "$TMP/ray" "${words[@]}" > "$TMP/log" 2>&1 || tail -5 "$TMP/log"
	judge "Ray, 8 parts" "$TMP/ray"
	echo "# Ray: $(grep -c worker "$STARTS") workers were killed with them"
}
try_kubernetes() {
	local args i tries
	: > "$STARTS"; mkdir -p "$TMP/k8s/results"
	args=$(python3 tests/engines/manifest.py examples/engines/sweep.yaml) || { fail "kubernetes: the manifest"; return; }
	cp "$trace" "$TMP/k8s/run.vct"
	args=${args//\/data/$TMP/k8s}
	for i in 0 1 2 3 4 5 6 7; do
		for tries in $(seq 40); do JOB_COMPLETION_INDEX=$i JOB_COMPLETIONS=8 sh -c "$args" 2> /dev/null && break; done
	done
	"$REAL" reduce -q "$TMP"/k8s/results/part-*.jsonl -o "$TMP/k8s/all" || :
	"$REAL" sweep -q --json "$TMP/k8s/run.vct" --vary gpu=t4,l4 --vary torch=2.0..2.15 > "$TMP/k8s/whole"
	check "kubernetes: the pods' command: the same bytes as one sweep" cmp "$TMP/k8s/all" "$TMP/k8s/whole"
}
# The job that annotates another one: what it tells Kubernetes for each exit code. Programs stand for vramcast and kubectl.
try_annotate() {
	local args d=$TMP/annotate code
	args=$(python3 tests/engines/manifest.py examples/engines/annotate.yaml 'kind: Job' 'kind: RoleBinding' \
		'verbs: [get, patch]' 'serviceAccountName: vramcast') || { fail "annotate: the manifest"; return; }
	mkdir -p "$d"
	cat > "$d/vramcast" <<-S
		#!/bin/sh
		while [ "\$1" != --report ]; do shift; done
		printf '"peak_used": %d,\\n' 7 21 9 > "\$2"
		exit "\$(cat "$d/code")"
	S
	printf '#!/bin/sh\necho "$*" >> "%s/told"\n' "$d" > "$d/kubectl"
	chmod +x "$d/vramcast" "$d/kubectl"
	for code in 0 3; do
		echo $code > "$d/code"; rm -f "$d/told"
		PATH=$d:$PATH JOB=train sh -c "$args"
		check "annotate: exit code $code and the largest peak are written down" \
			grep -qx "annotate --overwrite job train vramcast/peak-bytes=21 vramcast/exit-code=$code" "$d/told"
	done
	check "annotate: a job that does not fit is not started" test "$(wc -l < "$d/told")" = 1
	echo 0 > "$d/code"; PATH=$d:$PATH JOB=train sh -c "$args"
	check "annotate: one that fits is" grep -qx 'patch job train -p {"spec":{"suspend":false}}' "$d/told"
}
. tests/engines/slurm.sh
# one of them, or all: words without spaces
# shellcheck disable=SC2086
[ "$#" -gt 0 ] || set -- ${F:-parallel spark ray kubernetes annotate slurm}
for engine; do "try_$engine"; done
finish
