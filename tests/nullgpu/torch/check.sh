#!/bin/sh
# check.sh - make check-torch: real PyTorch versions on the null GPU, under the real tracer.
# TORCH="2.9.1 newest" chooses versions. Not part of make check: the first run downloads them.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
here=tests/nullgpu/torch
check_sentence() { # NAME COMMAND...: the sentence it prints becomes part of the name
	name=$1; shift
	if said=$("$@" 2>&1); then pass "$name: $said"; else fail "$name" "$said"; fi
}
dry() { "$VRAMCAST" dryrun -g rtx4090 --context 500MiB "$@" > "$TMP/out" 2> "$TMP/err"; }
sim() { "$VRAMCAST" sim "$@" --json > "$TMP/sim.json" 2> "$TMP/err"; }

check_mode() { # MODE CONF
	what="$version $1 ${2:-native}"
	export PYTORCH_CUDA_ALLOC_CONF="$2"
	rm -f "$TMP"/*.vct "$TMP"/*.pickle
	if ! dry -o "$TMP/a.vct" -- "$py" $here/workload.py "$1" "$TMP/a.pickle"; then
		fail "$what runs" "$(cat "$TMP/out" "$TMP/err" | tail -n 8)"
		return
	fi
	check_sentence "$what: the snapshot replays exactly" sh -c "\"$VRAMCAST\" sim '$TMP/a.pickle' -g rtx4090 --json > '$TMP/sim.json'; '$py' $here/compare.py exact '$TMP/sim.json'"
	[ "$1" = streams ] && check_sentence "$what: frees are deferred" "$py" $here/compare.py deferred "$TMP/a.pickle"
	"$VRAMCAST" dump "$TMP/a.vct" > "$TMP/dump"
	"$VRAMCAST" dump "$TMP/a.pickle" > "$TMP/own"
	check_sentence "$what: the recording equals PyTorch's own" "$py" $here/compare.py same "$TMP/own" "$TMP/dump"
	sim "$TMP/a.vct" -g rtx4090
	check_sentence "$what: the recording replays exactly" "$py" $here/compare.py exact "$TMP/sim.json"
	cp "$TMP/a.vct" "$TMP/first.vct"
	dry -o "$TMP/a.vct" -- "$py" $here/workload.py "$1" "$TMP/a.pickle"
	check "$what: the same script gives the same recording" cmp "$TMP/first.vct" "$TMP/a.vct"
}

# A request that fails on a small card: as it was predicted from the same script on a big card, by the
# recording and by PyTorch's own; and the failed run replayed on the card it ran on. (Message, event.)
predicted() { # NAME PYTHON'S-OUTPUT SNAPSHOT TRACE SIM-OPTIONS...
	name=$1; out=$2; snapshot=$3; trace=$4; shift 4
	"$VRAMCAST" sim "$trace" "$@" --no-advice --json > "$TMP/sim.json" 2> "$TMP/err"
	"$VRAMCAST" dump "$trace" > "$TMP/dump"
	check_sentence "$name" "$py" $here/compare.py oom "$snapshot" "$out" "$TMP/sim.json" "$TMP/dump"
}
check_oom() { # CONF: scripts on a big card and on small ones, children of one process that imports PyTorch
	export PYTORCH_CUDA_ALLOC_CONF="$1"
	conf=${1:-native}; many=$TMP/many
	rm -rf "$many"; mkdir "$many"
	while read -r name script args; do
		capacities=${args#*: } args=${args%%:*}
		for capacity in - $capacities; do
			echo "$name.$capacity $capacity $here/$script $args $many/$name.$capacity.pickle"
		done
	done > "$many/list" <<-END
		workload-eager workload.py eager: 560 600 650 680 700 712
		workload-graph workload.py graph: 600 650 660
		requests-eager-1 oom.py eager 1: 1524
		requests-graph-1 oom.py graph 1: 1524
		requests-eager-2 oom.py eager 2: 1524
		requests-graph-2 oom.py graph 2: 1524
	END
	dry -o "$many/r.vct" -- "$py" $here/many.py "$many/list" "$many"
	while read -r pid run status; do
		f=$many/r.$pid.vct; [ -f "$f" ] || f=$many/r.vct # the first child to use the card
		mv "$f" "$many/$run.vct"
		capacity=${run##*.} big=$many/${run%.*}.- small=$many/$run what="$version ${run%.*} $conf"
		[ "$status" = 0 ] || grep -q '^message:' "$small.out" || { fail "$what on $capacity MiB runs" "$(tail -5 "$small.out")"; continue; }
		[ "$capacity" != - ] || continue
		card="--capacity ${capacity}MiB --context 500MiB"
		# shellcheck disable=SC2086
		{
			predicted "$what on $capacity MiB: as predicted from a bigger card" \
				"$small.out" "$small.pickle" "$big.vct" $card
			predicted "$what on $capacity MiB: as predicted from PyTorch's own record on a bigger card" \
				"$small.out" "$small.pickle" "$big.pickle" --torch "$release" $card
			predicted "$what on $capacity MiB: the recording of it, on its own card" \
				"$small.out" "$small.pickle" "$small.vct"
			check_sentence "$what on $capacity MiB: the recording of it replays exactly" \
				"$py" $here/compare.py exact "$TMP/sim.json"
			predicted "$what on $capacity MiB: PyTorch's own record of it, on its own card" \
				"$small.out" "$small.pickle" "$small.pickle" --torch "$release" $card
			check_sentence "$what on $capacity MiB: PyTorch's own record of it replays exactly" \
				"$py" $here/compare.py exact "$TMP/sim.json"
		}
	done < "$TMP/out"
	check "$version $conf: every run on a small card was compared" test "$(grep -c . "$TMP/out")" = "$(grep -c . "$many/list")"
}

# Call stacks against PyTorch's own history, in a run that ends and in one that is killed with its recorder.
check_stacks() {
	what="$version, Python $("$py" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
	export PYTORCH_CUDA_ALLOC_CONF=
	rm -rf "$TMP"/a.*
	if ! dry -o "$TMP/a.vct" --stacks py -- "$py" $here/stacks.py "$TMP/a.pickle"; then
		fail "$what: call stacks" "$(tail -5 "$TMP/err")"
		return
	fi
	"$VRAMCAST" export "$TMP/a.vct" --to pickle -o "$TMP/mine.pickle" 2> "$TMP/err"
	check_sentence "$what: call stacks as in PyTorch's own history" "$py" $here/compare.py stacks "$TMP/a.pickle" "$TMP/mine.pickle"
	rm -rf "$TMP"/a.* "$TMP/mine.pickle"
	dry -o "$TMP/a.vct" --stacks py -- "$py" $here/stacks.py "$TMP/a.pickle" kill
	for i in $(seq 100); do # nobody waits for the program: its end may take a while
		"$VRAMCAST" recover "$TMP/a.vct" > "$TMP/out" 2>> "$TMP/err" && break
		sleep 0.2
	done
	"$VRAMCAST" export "$TMP/a.vct" --to pickle -o "$TMP/mine.pickle" 2>> "$TMP/err"
	check_sentence "$what: the same after program and recorder were killed" "$py" $here/compare.py stacks "$TMP/a.pickle" "$TMP/mine.pickle"
}

# A program that allows itself a share of the card is close when that share is nearly full.
check_share() {
	export PYTORCH_CUDA_ALLOC_CONF=
	for pair in "0.22 too close to call; it fits with 0.17" "0.25 fits, 0.88"; do
		dry -o "$TMP/a.vct" -- "$py" $here/share.py "${pair%% *}"
		check "$version: of ${pair%% *} of the card: ${pair#* } GiB left" grep -q "verdict: ${pair#* } GiB left" "$TMP/err"
	done
}

# NVTX, as the program calls it, becomes marks.
check_nvtx() { # PyTorch 2.4 calls a library for them, whose stand-in does nothing
	case $version in *2.4.*) return ;; esac
	"$py" -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("nvtx"))' || "${py%/*}/pip" install -q nvtx > /dev/null 2>&1
	dry -o "$TMP/a.vct" -- "$py" $here/marks.py "$TMP/expected"
	"$VRAMCAST" dump "$TMP/a.vct" | sed -n 's/^[0-9]* [0-9]* mark device=0/mark/p' |
		sed 's/^mark flags=2 label=/begin /; s/^mark flags=3 label=/end /; s/^mark flags=3/end/; s/^mark label=/mark /' > "$TMP/marks"
	check "$version: $(cat "$TMP/out"): $(wc -l < "$TMP/expected") marks" diff "$TMP/expected" "$TMP/marks"
}

# Under backend:cudaMallocAsync the requests are the same; replayed as native they need what native needed.
requests() { "$VRAMCAST" dump "$1" | sed -n 's/ addr=.*//; s/ stream=.*//; s/^[0-9]* [0-9]* \(alloc\|free\) /\1 /p'; }
reserved() { "$VRAMCAST" sim "$@" --no-advice --json 2> "$TMP/err" | sed -n 's/.*"peak_reserved": *\([0-9]*\).*/\1/p' | head -n 1; }
check_async() {
	what="$version backend:cudaMallocAsync"
	PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync dry -o "$TMP/async.vct" -- "$py" $here/workload.py eager -
	PYTORCH_CUDA_ALLOC_CONF= dry -o "$TMP/native.vct" -- "$py" $here/workload.py eager -
	requests "$TMP/async.vct" > "$TMP/async"; requests "$TMP/native.vct" > "$TMP/native"
	check "$what: the requests are those of the native allocator ($(wc -l < "$TMP/native"))" diff "$TMP/native" "$TMP/async"
	check_sentence "$what: a replay has the driver's pools" sh -c "\"$VRAMCAST\" sim '$TMP/async.vct' | grep -oE '^cuda_async on [^:]*: fits'"
	a=$(reserved "$TMP/async.vct" --conf backend:native) b=$(reserved "$TMP/native.vct")
	if [ "$a" = "$b" ] && [ -n "$a" ]; then pass "$what: replayed as native it reserves what native reserved ($a)"
	else fail "$what: replayed as native it reserves what native reserved" "$a, native $b" "$(cat "$TMP/err")"; fi
}

check_script() { # NAME SENTENCE OPTIONS: a program that prints its own checks
	what="$version, ${3%% *}: $2"
	if dry $3 -- "$py" $here/$1.py; then pass "$what ($(grep -c '^ok' "$TMP/out") checks)"
	else fail "$what" "$(grep -v '^ok' "$TMP/out")" "$(tail -5 "$TMP/err")"; fi
}

# With values below the largest a scaler leaves steps out, which the null GPU cannot know: the verdict says so.
check_scaler() {
	dry --no-record -- "$py" $here/scaler.py
	check_sentence "$version: what a scaler would find is not known" grep -oE 'whether a gradient overflows .GradScaler.' "$TMP/err"
}

for version in ${TORCH:-2.6.0 2.9.1 2.11.0 newest}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	release=$("$py" -c 'import importlib.metadata as m; print(".".join(m.version("torch").split(".")[:2]))')
	for how in --no-record "-o $TMP/values.vct"; do
		check_script values "values, several trainings and caps" "$how"
		check_script sizes "sizes that libraries read back from the device" "$how"
	done
	check_script host "weights that are left untouched on the host" "--no-record --host-weights untouched"
	check_scaler
	check_stacks
	check_nvtx
	check_share
	check_async
	for mode in eager graph streams; do
		for conf in "" expandable_segments:True; do check_mode $mode "$conf"; done
	done
	check_oom ""
	check_oom expandable_segments:True
done
finish
