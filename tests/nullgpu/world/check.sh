#!/bin/sh
# check.sh - make check-world: each rank of a job of real PyTorch, played alone (`dryrun --world N --rank R`)
# and beside real others (`--ranks N`): the requests must be the same, one by one. TORCH="2.9.1 newest",
# RANKS="2 4" and WAYS="ddp fsdp2" choose; of more than four ranks the first, one in the middle and the last are played. DeepSpeed, Accelerate, Lightning and megatron-core are part of it where
# they are installed (PYTHONPATH). Not part of make check.
. tests/support/tap.sh
. tests/nullgpu/torch/envs.sh
program=$PWD/tests/nullgpu/world/world.py
# the package that a way needs; without it the way is left out
needs() {
	case $1 in
	deepspeed*) package=deepspeed ;; accelerate*) package=accelerate ;; lightning) package=lightning ;;
	megatron) package=megatron.core ;; *) return 0 ;;
	esac
	"$py" -c "import importlib.util as u, sys; sys.exit(not u.find_spec('${package%%.*}'))" 2> /dev/null
}
same() { "$VRAMCAST" diff "$1" "$2" | head -1 | grep -q 'the requests are the same$'; }
played() { if [ "$1" -gt 4 ]; then echo 0 $(($1 / 2 - 1)) $(($1 - 1)); else seq 0 $(($1 - 1)); fi; }
dry() { timeout 900 "$VRAMCAST" dryrun -q -g "${card:-a100-80g-sxm}" "$@" > "$TMP/out" 2> "$TMP/err"; }
for version in ${TORCH:-2.9.1 newest}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	for way in ${WAYS:-ddp zero1 fsdp1 fsdp2 hsdp tp tp_fsdp tp_fsdp+device cp pp ep ep_mask symmetric objects objects+device accelerate \
			accelerate_fsdp lightning megatron deepspeed0 deepspeed1 deepspeed2 deepspeed3}; do
		card=; [ $way != symmetric ] || card=h100-80g-sxm # an A100 has no multicast
		needs $way || { skip "$version, $way" "$package is not installed"; continue; }
		for ranks in ${RANKS:-2 4}; do
			case $way,$ranks in hsdp,2|tp_fsdp*,2) continue ;; esac
			rm -f "$TMP"/real.*vct "$TMP"/alone.*vct
			dry --ranks "$ranks" -o "$TMP/real.vct" -- "$py" "$program" "$way" ||
				{ fail "$version, $way: $ranks real ranks run" "$(tail -3 "$TMP/err")"; continue; }
			for rank in $(played "$ranks"); do
				name="$version, $way: rank $rank of $ranks asks for the same alone as beside real others"
				if dry --world "$ranks" --rank $rank -o "$TMP/alone.vct" -- "$py" "$program" "$way"; then
					check "$name" same "$TMP/real.rank$rank.vct" "$TMP/alone.rank$rank.vct"
				else fail "$name" "$(tail -3 "$TMP/err")"; fi
			done
		done
	done
	# beside a real gloo the reducer asks for 16 bytes more, and its memory lives longer
	check "$version: DistributedDataParallel over gloo runs alone" dry --world 2 --no-record -- "$py" "$program" ddp_gloo
	# whether all ranks have the same parameters, which it asks them, decides no size
	check "$version: no other rank is played for DistributedDataParallel" sh -c '"$@" 2> "$0" && ! grep -q "is played" "$0"' \
		"$TMP/err" timeout 900 "$VRAMCAST" dryrun -g a100-80g-sxm --world 8 --no-record -- "$py" "$program" ddp
	check "$version: a compiled FlexAttention runs alone" dry --world 2 --no-record -- "$py" "$program" flex
	card=; rm -f "$TMP"/real.*vct "$TMP"/role.*vct
	dry --ranks 4 -o "$TMP/real.vct" -- "$py" "$program" pp_shapes
	dry --world 4 --roles -o "$TMP/role.vct" -- "$py" "$program" pp_shapes
	for rank in 0 2 3; do
		check "$version: stage $rank hears the shapes from a stage that was played" \
			same "$TMP/real.rank$rank.vct" "$TMP/role.rank$rank.vct"
	done
	# What other ranks decide: as beside real ones, or named and undecided.
	decides() { # WAY RANK MIB VERDICT
		timeout 300 "$VRAMCAST" dryrun -q -g a100-80g-sxm --world 8 --rank "$2" --no-record --report "$TMP/r.json" -- \
			"$py" tests/nullgpu/world/decide.py "$1" > "$TMP/out" 2> "$TMP/err"
		check "$version, $1: rank $2 of 8 asks for $3 MiB: $4" sh -c '[ "$(tail -1 "$1")" = "MiB $2" ] &&
			grep -q "\"verdict\": \"$3\"" "$4"' sh "$TMP/out" "$3" "$4" "$TMP/r.json"
	}
	for rank in 0 7; do
		decides flag $rank 100 fits; decides pair $rank 100 fits; decides same $rank 100 fits; decides awaited $rank 80 fits
		decides half $rank 400 fits; decides loss $rank 3 fits
		decides store $rank 77 fits; decides announced $rank 100 fits; decides batched $rank 100 fits
		decides largest $rank 800 undecided; decides derived $rank 1601 undecided; decides host $rank 800 undecided
		decides objects $rank 107 undecided
	done
	decides growing 7 80 undecided # 130 in truth: of those between ranks 0 and 7 only rank 4 is played
	decides backward 0 40 fits; decides backward 7 40 fits
	"$VRAMCAST" dryrun -g a100-80g-sxm --world 8 --no-record -- "$py" tests/nullgpu/world/decide.py key > "$TMP/out" 2> "$TMP/err"
	check "$version: a key that nobody set is named" grep -q "no rank that was played has set the key 'default_pg/0//from5'" "$TMP/err"
	# Where a router decides it, a rank beside real ones lies between the two ends that it has alone.
	dry --world 4 --no-record --report "$TMP/r.json" -- "$py" "$program" ep
	for skew in 1 2 4; do
		dry --ranks 4 --expert-skew $skew --no-record --report "$TMP/real.json" -- "$py" "$program" ep
		check "$version, ep: experts with $skew times their share need what lies between the ends" "$py" -c "
import json
alone, real = [json.load(open('$TMP/' + name))['runs'][0] for name in ('r.json', 'real.json')]
assert alone['verdict'] == 'undecided', alone
assert alone['experts_even'] <= real['peak_used'] <= alone['experts_skewed'], (alone, real)"
	done
	dry --world 1024 --roles --report "$TMP/roles.json" -o "$TMP/roles.vct" -- "$py" "$program" tp_fsdp
	check "$version: the roles of a job on 512 x 2 cards are played" \
		test "$(grep -c '"world": 1024' "$TMP/roles.json")" -ge 4
done
finish
