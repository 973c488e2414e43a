#!/bin/sh
# rounds.sh - who is played beside one rank of a job, how often, and what the verdict makes of it: on a program that
# uses the stand-ins without PyTorch, and says itself what PyTorch's side would say.
. tests/support/tap.sh
command -v cc > /dev/null || { skip "ranks beside one" "no cc"; finish; }
site=$TMP/site; mkdir -p "$site/torch/lib" "$TMP/private"; : > "$site/torch/__init__.py"
py=$(python3 -c "import sys; print(sys.executable)") || { skip "ranks beside one" "no python3"; finish; }
export PYTHONPATH="$site" TMPDIR="$TMP/private"
echo 'int cudaMalloc(void **p, unsigned long n); int ask(void **p, long n) { return cudaMalloc(p, n); }' > "$TMP/want.c"
cc -shared -fPIC -o "$site/torch/lib/libtorch_cuda.so" "$TMP/want.c" -L"$BUILD/nullgpu" -l:vcnull-libcudart.so.12
cat > "$TMP/use.py" <<P
import ctypes, os, sys
driver, rank = ctypes.CDLL("libcuda.so.1"), int(os.environ["RANK"])
def ask(mib):
    p = ctypes.c_void_p()
    return ctypes.CDLL("$site/torch/lib/libtorch_cuda.so", mode=2).ask(ctypes.byref(p), ctypes.c_long(mib << 20))
def stale(who):
    os.makedirs(os.environ["VRAMCAST_NULL_REPORT"] + "/world", exist_ok=True)
    open(os.environ["VRAMCAST_NULL_REPORT"] + "/world/stale.%d" % who, "w").close()
def roles(*ranks):
    with open(os.environ["VRAMCAST_NULL_ROLES"], "w") as f:
        f.write("".join("%d a role\n" % r for r in ranks))
with open("$TMP/played", "a") as f:
    f.write("%d " % rank)
times = open("$TMP/played").read().split().count(str(rank))
ask(20)
P
program() { : > "$TMP/played"; echo "$1" | cat "$TMP/use.py" - > "$TMP/program.py"; shift
	run dryrun -g rtx4090 --world 8 --capacity 1GiB --context 500MiB --no-record --report "$TMP/r.json" "$@" -- "$py" "$TMP/program.py"; }
played() { [ "$(cat "$TMP/played")" = "$1 " ] || { cat "$TMP/played"; false; }; }
verdict() { "$py" -c "
import json
r = json.load(open('$TMP/r.json'))['runs']
assert [x['verdict'] for x in r] == '$1'.split(), r"; }

program 'driver.vc_null_step()' --rank 7
expect "a rank that goes by nobody else" 0 '' 'verdict: fits'
check "... is played once, after rank 0" played '0 7'
program 'driver.vc_null_step()'
check "rank 0 is played once" played 0
program 'rank or driver.vc_null_step()' --rank 7
expect "a rank that makes no step where rank 0 made one does not fit" 0 '' 'undecided; this rank made no step of an optimizer, and rank 0 made 1'
check "... in JSON too" verdict undecided
program 'rank or driver.vc_null_step()' --rank 7 --exit-code verdict
expect "... and as an exit code" 6
program 'pass' --rank 7
expect "where nobody made a step it may" 0 '' 'verdict: fits'
program 'sys.exit(bool(ask(600)))' --rank 7
expect "a rank that runs out of memory" 1 '' 'verdict: out of memory'
check "... is not played again" played '0 7'
program 'times == 1 and rank == 7 and stale(0)' --rank 7
check "who was told something new is played again" played '0 7 0'
program 'rank == 0 and times == 2 and stale(7); rank == 7 and times == 1 and stale(0)' --rank 7
check "... and whoever it then tells something new" played '0 7 0 7'
program 'stale(7 - rank)' --rank 7
check "... but not for ever" sh -c '[ "$(wc -w < "$1")" -le 10 ]' sh "$TMP/played"
expect "... which is said" 0 '' 'what ranks tell each other, which changed with each round'
program 'roles(0, 3); times == 1 and driver.vc_null_ranks_decide(b"all_reduce, read at x.py:1")'
expect "what nobody told may be known when one of each role was played" 0 '' 'verdict: fits'
check "... and the rank again" played '0 3 0'
program 'roles(0, 3); driver.vc_null_ranks_decide(b"all_reduce, read at x.py:1")'
expect "what nobody knows is named" 0 '' 'all_reduce, read at x.py:1 \(ranks that were not played decide it\)'
check "... and the verdict does not say that it fits" verdict undecided
# To which experts tokens go is not known, nor of which class boxes are: what it is if each is taken as often, and if one of
# this rank's is taken more often.
experts='from vramcast_null_routes import SAID; driver.vc_null_bound(SAID.encode(), ctypes.create_string_buffer(1))
driver.vc_null_ranks_decide(b"a message of another rank, read at x.py:1")
ask(20 if float(os.environ["VRAMCAST_NULL_EXPERT_SKEW"].split()[0]) <= 1 else 400)'
program "$experts"
expect "what is taken of scores that nobody knows: an interval" 0 '' 'undecided; 0.53 GiB if each expert .of a detector each class. is chosen as often, 0.90 GiB if one of this rank is chosen each time, of 1.00 GiB'
check "... in JSON too" "$py" -c "
import json
r = json.load(open('$TMP/r.json'))['runs'][0]
assert (r['verdict'], r['experts_even'], r['experts_skewed']) == ('undecided', r['peak_used'], r['peak_used'] + (380 << 20)), r"
program "$experts" --expert-skew 3
expect "... with --expert-skew the other end" 0 '' 'is chosen as often, 0.90 GiB if one of this rank is chosen that many times its share'
# 20 + k x 100 MiB beside a context of 500 MiB, on a card of 1 GiB: 5.04 times is the most.
program "$(echo "$experts" | sed 's/ask(20 .*/k = float(os.environ["VRAMCAST_NULL_EXPERT_SKEW"].split()[0])\
ask(int(100 * min(max(k, 1), 32)))/')" --expert-skew 0
expect "which skew the rank survives is looked for" 0 '' 'it fits with 5 times its share, not with 5\.25'
check "... in JSON too" "$py" -c "
import json
r = json.load(open('$TMP/r.json'))['runs'][0]
assert r['skew_that_fits'] < 5.1 < r['skew_that_dies'] * 1.05 and r['skew_that_dies'] <= 1.05 * r['skew_that_fits'], r"
program "$experts" --expert-skew 0.5
expect "a skew below 1 is none" 2 '' '0 looks for the one that dies'
program 'driver.vc_null_ranks_decide(b"a message of another rank, read at x.py:1")'
check "... where no router chose there is none" "$py" -c "
import json
assert json.load(open('$TMP/r.json'))['runs'][0]['experts_skewed'] is None"
program 'roles(0, 3); rank and sys.exit(1)' --roles
expect "of roles that died none is the largest" 1 '' '1 of them ended with an error of their own, so which is the largest is not known'
program 'roles(0, 3); rank and ask(40)' --roles
expect "of those that lived one is" 0 '' 'the largest is rank 3'
program 'roles(0, 3); rank == 3 and times == 1 and stale(0)' --roles
check "roles are played again, too" played '0 3 0'
finish
