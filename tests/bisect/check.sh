#!/bin/bash
# check.sh - programs of this folder with a regression planted, and two without one: bisect names the commit or the release, or
# says that there is none. A line "# good" stands before the regression, a line "# bad" from then on. Needs a PyTorch built for
# CUDA (TORCH_PYTHON=python) and, for the releases of transformers, the network or its wheels in $BISECT_CACHE. ONLY=NAME: that alone.
. tests/support/tap.sh
py=${TORCH_PYTHON:-python3}; here=$PWD/tests/bisect; case $VRAMCAST in /*) ;; *) VRAMCAST=$PWD/$VRAMCAST ;; esac
has_cuda_torch "$py" || { skip "bisect of real programs" "no PyTorch built for CUDA in $py"; finish; }
cache=${BISECT_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-bisect}; mkdir -p "$cache/env" "$TMP/cache/vramcast"
export XDG_CACHE_HOME="$TMP/cache" PIP_DISABLE_PIP_VERSION_CHECK=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
wanted() { [ -z "$ONLY" ] || [ "$ONLY" = "$1" ]; }
json() { python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print(*[$1])" "$TMP/out"; }
# as PROGRAM good|bad : the file as it is before, or after
as() { case $2 in good) sed '/# bad$/d; s/  # good$//' "$here/$1.py" ;; bad) sed '/# good$/d; s/  # bad$//' "$here/$1.py" ;; esac; }
said() { echo "# $1: $(json "d['words']" 2> /dev/null)"; }

# repository PROGRAM N: eight commits, of which the N-th brings the regression (9: none does); $first and $culprit name them
repository() {
	mkdir "$TMP/repository.$1.$2"; cd "$TMP/repository.$1.$2" || exit 1; git init -q; culprit=None
	for i in 1 2 3 4 5 6 7 8; do
		{ as "$1" "$([ "$i" -lt "$2" ] && echo good || echo bad)"; echo "small = torch.zeros($i * 1000, device='cuda')"; } > train.py
		git add -A; git commit -qm "revision $i"
		[ "$i" != 1 ] || first=$(git rev-parse --short=12 HEAD)
		[ "$i" != "$2" ] || culprit=$(git rev-parse --short=12 HEAD)
	done
}
while read -r program at; do
	wanted "$program" || continue
	repository "$program" "$at"; run bisect -q -g rtx4090 --good "$first" --bad HEAD --json -- "$py" train.py; cd "$OLDPWD" || exit 1
	expect "$program: $([ "$at" = 9 ] && echo none of 8 commits || echo one of 8 commits)" "$([ "$at" = 9 ] && echo 0 || echo 4)"
	[ "$at" = 9 ] || check "... it is commit $at" test "$(json "d['first_bad']")" = "$culprit"; [ "$at" = 9 ] || said "$program"
	[ "$program" != layout ] || check "... advice that was tried takes it back" test "$(json "[t['peak_reserved'] < 1.02 * d['good_reserved'] for t in d['tried'] if t['helps']]")" = "[True]"
done << 'E'
kept_graph 6
workspace 3
dtype 2
growing_list 8
cache 5
layout 4
cache 9
E

# releases NAME N: eight releases of a package `layers` as wheels, from the N-th on with another default
releases() {
	mkdir -p "$TMP/wheels.$2"; export PIP_NO_INDEX=1 PIP_FIND_LINKS="$TMP/wheels.$2"; rm -rf "$cache"/env/layers==*
	for i in 1 2 3 4 5 6 7 8; do
		as package_default "$([ "$i" -lt "$2" ] && echo good || echo bad)" > "$TMP/layers.py"
		PYTHONPATH=tests/support python3 -c 'import sys; from wheels import wheel; wheel("layers", sys.argv[2], {"layers.py": open(sys.argv[3]).read()})' \
			"$TMP/wheels.$2" "1.$i" "$TMP/layers.py"
	done
}
ln -s "$cache/env" "$TMP/cache/vramcast/env"
for at in 4 9; do
	wanted package_default || continue
	releases layers $at; run bisect -q -g rtx4090 --package layers --good 1.1 --bad 1.8 --json -- "$py" "$here/uses_package.py"
	if [ $at = 9 ]; then expect "a package: no release needs more" 0
	else expect "a package: one of 8 releases has another default" 4; check "... it is 1.$at" test "$(json "d['first_bad'], d['last_good']")" = "1.4 1.3"; said layers; fi
done
unset PIP_NO_INDEX PIP_FIND_LINKS; rm -rf "$cache"/env/layers==*

# what transformers says of itself: attention of Llama is fused from 4.36.0 on (its release notes), so that what is older needs more
if wanted llama; then
	run bisect -q -g rtx4090 --package transformers --good 4.36.2 --bad 4.35.0 --json -- "$py" "$here/llama.py"
	expect "transformers: an older release needs more" 4
	check "... the last one without fused attention" test "$(json "d['first_bad'], d['last_good']")" = "4.35.2 4.36.0"; said transformers
fi
finish
