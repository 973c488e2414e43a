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
dry() { timeout 900 "$VRAMCAST" dryrun -q -g a100-80g-sxm "$@" > "$TMP/out" 2> "$TMP/err"; }
for version in ${TORCH:-2.9.1 newest}; do
	py=$(torch_env "$version") || { skip "$version" "cannot be installed: $(tail -1 "$TMP/pip.log")"; continue; }
	for way in ${WAYS:-ddp zero1 fsdp1 fsdp2 hsdp tp tp_fsdp tp_fsdp+device cp pp ep objects objects+device accelerate \
			accelerate_fsdp lightning megatron deepspeed0 deepspeed1 deepspeed2 deepspeed3}; do
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
	rm -f "$TMP"/real.*vct "$TMP"/role.*vct
	dry --ranks 4 -o "$TMP/real.vct" -- "$py" "$program" pp_shapes
	dry --world 4 --roles -o "$TMP/role.vct" -- "$py" "$program" pp_shapes
	for rank in 0 2 3; do
		check "$version: stage $rank hears the shapes from a stage that was played" \
			same "$TMP/real.rank$rank.vct" "$TMP/role.rank$rank.vct"
	done
	dry --world 1024 --roles --report "$TMP/roles.json" -o "$TMP/roles.vct" -- "$py" "$program" tp_fsdp
	check "$version: the roles of a job on 512 x 2 cards are played" \
		test "$(grep -c '"world": 1024' "$TMP/roles.json")" -ge 4
done
finish
