#!/bin/bash
# bisect.sh - which commit or which release made a program need more. The program is one in C on a stand-in for PyTorch's
# allocator (tests/tracer/torch_standin/train.c).
. tests/support/tap.sh
. tests/support/standin.sh
command -v git > /dev/null || { skip "bisect" "no git"; finish; exit; }
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir "$TMP/repo" "$TMP/repo/sub"; cd "$TMP/repo/sub" || exit 1; git -C .. init -q
commit() { git add -A; git commit -qm "$1"; }
bisect() { run bisect -g rtx3060-12g "$@"; }
json() { printf '%s' "$out" | "$py" -c "import json, sys; d = json.load(sys.stdin); print($1)"; }
write() { printf '#!/bin/sh\n# %s\n%s\nexec %s --batch %s\n' "$1" "$3" "$train" "$2" > run.sh; }
write one 4; commit "the first"; first=$(git rev-parse --short=12 HEAD)
for i in 2 3; do write "step $i" 4; commit "step $i"; done
write broken 4 'exit 9'; commit "does not run"
write wider 4 'export WORKSPACE=200'; commit "a wider workspace"; culprit=$(git rev-parse --short=12 HEAD)
for i in 6 7 8; do write "step $i" 4 'export WORKSPACE=200'; commit "step $i"; done
echo mine > untracked; echo '# edited' >> run.sh
bisect --good "$first" --bad HEAD -- sh run.sh
expect "the commit that needs more is named" 4 "commit $culprit is the first that needs more: .* reserved; a wider workspace"
expect "and that its parent does not run" 4 'what lies between .* does not run'
expect "with the first request that differs" 4 'only B makes this allocation'; expect "and the whole difference" 4 'vramcast diff [0-9a-f]{8} [0-9a-f]{8}'
check "the user's own tree is as it was" test "$(tail -n 1 run.sh) $(cat untracked) $(git worktree list | wc -l)" = '# edited mine 1'
rm -f "$RUNS"; bisect --good "$first" --bad HEAD --json -o "$TMP/diff.svg" -- sh run.sh
check "as JSON" test "$(json "d['first_bad'], d['bad_reserved'] - d['good_reserved'], d['first_difference']['kind']")" = "$culprit $((200 << 20)) only_in_b"
printf '%s' "$out" > "$TMP/bisect.json"
check "as its schema says" "$py" "$B/../tests/python/schema.py" bisect "$TMP/bisect.json"
check "a picture of it" grep -q '<svg' "$TMP/diff.svg"; ran "what was run is not run again" 0
bisect --good "$first" --bad HEAD --budget 2GiB -- sh run.sh; expect "no regression where the budget suffices" 0 "no regression: $first reserves"
bisect --good "$first" --bad HEAD~5 -- sh run.sh; expect "nor where nothing grew" 0 'no regression'
bisect --good HEAD --bad "$first" --budget 600MiB -- sh run.sh; expect "a good one that is none" 2 '' 'HEAD needs more than the budget, too'
git checkout -q .; cd ..; git bisect start HEAD "$first" > /dev/null 2>&1
git bisect run "$VRAMCAST" bisect --step -q --budget 600MiB -g rtx3060-12g -- sh sub/run.sh > "$TMP/said" 2>&1
check "by hand: git bisect run" grep -q "^$culprit" "$TMP/said"; git bisect reset -q > /dev/null 2>&1; cd sub || exit 1
bisect -- sh run.sh; expect "two ends are wanted" 2 '' '--good and --bad name two ends'
bisect --good x --bad y --step -- sh run.sh; expect "--step wants a budget" 2 '' '--step needs --budget'
bisect --good "$first" --bad HEAD -- sh "$PWD/run.sh"; expect "files of the user's tree are not those of a commit" 2 '' 'name files of the repository from the folder'
(cd "$TMP/own" && "$VRAMCAST" bisect -g t4 --good a --bad b -- sh x > said 2>&1); check "elsewhere there are no commits" grep -q 'no repository of git' "$TMP/own/said"

if "$py" -c 'import venv, ensurepip' 2> /dev/null; then
	export PIP_NO_INDEX=1 PIP_FIND_LINKS=$TMP/wheels PIP_DISABLE_PIP_VERSION_CHECK=1; mkdir "$TMP/wheels"
	PYTHONPATH=$B/../tests/support "$py" - "$TMP/wheels" << 'P'
from wheels import wheel
for n in range(1, 9):
    wheel("layers", f"1.{n}", {"layers.py": "import sys\n" + ("sys.exit(3)\n" if n == 4 else "") + f"wide = {2 if n < 6 else 3}\n"})
P
	printf 'import os, layers\nos.execv("%s", ["train", "--batch", str(layers.wide)])\n' "$train" > versions.py
	bisect --package layers --good 1.1 --bad 1.8 -- "$py" versions.py
	expect "the release of a package" 4 'layers 1\.6 is the first that needs more'
	bisect --package layers --good 1.1 --bad 1.5 -- "$py" versions.py; expect "none of them" 0 'no regression'
	bisect --package layers --good 1.8 --bad 1.1 --budget 600MiB -- "$py" versions.py; expect "one end is no good one" 0 'no regression'
	bisect --package nothing --good 1.1 --bad 1.2 -- "$py" versions.py; expect "a package that there is not" 125 '' 'could not be installed'
	if /usr/bin/python3 -m pip --version > /dev/null 2>&1; then # it may not install anything where the distribution manages it
		check "the distribution's own Python names the releases" test "$(/usr/bin/python3 "$B/../python/env.py" "$TMP" versions layers 1.1 1.8 | wc -l)" = 8
	else
		skip "the distribution's own Python" "no pip"
	fi
else
	skip "releases" "no venv"
fi
finish
