#!/bin/sh
# advice.sh - what sim says would have helped, and how much larger the batch may be: every claim is simulated again.
. tests/support/tap.sh
gpt=tests/recordings/gpt.vct lm=traces/lm-train-ctx128.vct
claims() { # "verdict how" of each advice of the last run
	printf '%s\n' "$out" | awk '/"advice": \[/ { on = 1 } on && /"how": "/ { h = $0; sub(/.*"how": "/, "", h); sub(/",$/, "", h) }
		on && /"verdict":/ { split($0, f, "\""); print f[4], h }'
}
again() { # NAME TRACE OPTION... : the option that each advice names gives the verdict that it names
	name=$1; trace=$2; shift 2
	run sim $trace --no-verify --json "$@"
	claims > "$TMP/claims"; n=$(grep -c . "$TMP/claims"); bad=0
	while read -r verdict how; do
		case "$how" in -g*) set -- ;; esac
		"$VRAMCAST" sim $trace --no-verify --no-advice --json "$@" $how > "$TMP/again" 2>&1
		grep -q "\"verdict\": \"$verdict\"" "$TMP/again" || { bad=$((bad + 1)); echo "# $how: not $verdict"; }
	done < "$TMP/claims"
	[ "$n" -gt 0 ] && [ "$bad" = 0 ] && pass "$name: $n pieces of advice, each as simulated" ||
		fail "$name" "$n pieces of advice, $bad wrong" "$(cat "$TMP/claims")"
}
again "out of memory" $gpt --capacity 6500MiB
again "flushes" $lm --capacity 60000MiB
run sim $lm --no-verify --capacity 60000MiB
expect "settings come first, with the line to paste" 0 'export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True'
[ "$(printf '%s\n' "$out" | sed -n 's/^  [0-9]*\. \(let segments\|an optimizer with 8-bit\|two cards\|a larger card\).*/\1/p' | tr '\n' ,)" = \
	"let segments,an optimizer with 8-bit,two cards,a larger card," ] &&
	pass "then code, then hardware" || fail "then code, then hardware" "$out"
for pair in a100-40g-sxm/h100-80g-pcie mi100-32g/mi210-64g; do # the program was written for its maker's libraries
	run sim $lm --no-verify -g "${pair%/*}"
	expect "a larger card than ${pair%/*} is of the same maker" 3 "$lm -g ${pair#*/}"
done
run sim $lm --no-verify --capacity 60000MiB --conf max_split_size_mb:512
printf '%s' "$out" | grep -q 'ALLOC_CONF=max_split_size_mb:512,' && ! printf '%s' "$out" | grep -q 'max_split_size_mb:128' &&
	pass "own settings are kept" || fail "own settings are kept" "$out"
run sim traces/decomfl.vct --no-verify --capacity 1700MiB
[ "$rc" = 3 ] && ! printf '%s' "$out" | grep -qi 'optimizer = \|adapters' &&
	pass "no change of training where nothing trains" || fail "no change of training where nothing trains" "$out"
# The line under each advice is the whole command, and pasting it gives that advice's peak.
cp $gpt "$TMP/it's mine.vct"
run sim "$TMP/it's mine.vct" --no-verify --capacity 8000MiB --context 400MiB --set batch=4 --force
printf '%s\n' "$out" | awk '/^  [0-9]+\. /{ match($0, /[0-9.]+ [KMG]iB( \(| reserved)/); peak = substr($0, RSTART, RLENGTH); sub(/ (reserved|\()$/, "", peak) }
	/^       vramcast sim /{ sub(/^ *vramcast/, ""); print peak "|" $0 }' > "$TMP/lines"
bad=0
while IFS='|' read -r peak line; do
	eval "\"\$VRAMCAST\" $line --no-verify --no-advice --assume best" > "$TMP/again" 2>&1 && grep -q "reserved by PyTorch  *$peak\$" "$TMP/again" ||
		{ bad=$((bad + 1)); echo "# not $peak: $line"; }
done < "$TMP/lines"
n=$(grep -c . "$TMP/lines")
[ "$n" -gt 3 ] && [ "$bad" = 0 ] && pass "$n lines to paste, each gives its peak" || fail "lines to paste" "$n lines, $bad wrong" "$out"
# What is there already is not advised, nor adapters where hardly a layer is linear.
r=tests/transforms/recordings
run sim "$r/gpt_--precision_amp.vct" --no-verify --capacity 1400MiB --context 0
[ "$rc" = 0 ] || [ "$rc" = 3 ] && printf '%s' "$out" | grep -q '^  1\. ' && ! printf '%s' "$out" | grep -q '^  [0-9]*\. autocast' &&
	pass "a run under autocast is not told to use it" || fail "autocast twice" "$out"
run sim $r/gpt.vct --no-verify --capacity 2000MiB --context 0
expect "one in float is" "$rc" '^  [0-9]*\. autocast to bf16'
run sim $r/gpt.vct --no-verify --capacity 1000MiB --context 0 -x precision:to=amp
printf '%s' "$out" | grep -q '^  1\. ' && ! printf '%s' "$out" | grep -q '^  [0-9]*\. autocast' &&
	pass "nor is one that is asked about with it" || fail "autocast beside -x precision" "$out"
run sim $r/conv.vct --no-verify --capacity 700MiB --context 0
printf '%s' "$out" | grep -q '^  1\. ' && ! printf '%s' "$out" | grep -q 'adapters' &&
	pass "a convolutional net gets no adapters" || fail "adapters of convolutions" "$out"
# Room: from one recording, and from two.
run sim $gpt --no-verify -g rtx4090; expect "one recording tells how far the batch may grow" 0 '32 % of the card is used: .*batch.*one recording'
run sim traces/attention.vct --no-verify -g t4
expect "where the batch is not known it says how to tell" 0 'TRACE@batch=N'
run sim $gpt --no-verify --capacity 7180MiB --context 0
expect "at 99 % it says what a hundredth less would do" 0 'risky: 100.0 % of the card is used. With 71.80 MiB less .* runs out of memory'
again "risk" $gpt --capacity 7180MiB --context 0
L=tests/ladders/recordings
two="$L/gpt-amp_batch0004_torch2.9.1.vct@batch=4 $L/gpt-amp_batch0008_torch2.9.1.vct@batch=8"
again "two recordings" "$two" --set batch=12 --capacity 7GiB
run sim $two --no-verify --set batch=12 --capacity 7GiB
expect "accumulation, checkpointing, offload, a smaller batch" 3 'gradient accumulation: 2 parts of 6'
for w in 'activation checkpointing' save_on_cpu 'a batch of [0-9]* instead of 12' 'a larger card'; do
	printf '%s\n' "$out" | grep -q "$w" && pass "among it: $w" || fail "among it: $w" "$out"
done
run sim $two --no-verify --set batch=12 --capacity 30GiB --json
n=$(printf '%s\n' "$out" | sed -n 's/.*"at_least": \([0-9]*\),*/\1/p')
run sim $two --no-verify --no-advice --set batch=$n --capacity 30GiB; expect "a batch of $n does fit" 0
run sim $two --no-verify --no-advice --set batch=$((n + 8)) --capacity 30GiB; expect "eight more do not" 3
# People at a terminal see how far the search is; the line is gone at its end. Others see nothing.
cat > "$TMP/terminal.py" <<'EOF'
import os, pty, sys
m, s = pty.openpty()
if not os.fork():
    os.dup2(os.open('/dev/null', os.O_WRONLY), 1); os.dup2(s, 2); os.execv(sys.argv[1], sys.argv[1:])
os.close(s)
try:
    while True: os.write(1, os.read(m, 4096))
except OSError: pass
EOF
VRAMCAST_PROGRESS=now; export VRAMCAST_PROGRESS # else only what takes longer than a second is shown
seen() { python3 "$TMP/terminal.py" "$VRAMCAST" sim $gpt@batch=1 --no-verify "$@" | tr '\r' '\n' > "$TMP/seen"; }
seen --capacity 5GiB
grep -q '^looking for changes that would help: 3 of [0-9]*, 0 s' "$TMP/seen" && ! tail -n 1 "$TMP/seen" | grep -q '[^ ]' &&
	pass "a terminal shows how far it is" || fail "a terminal shows how far it is" "$(cat "$TMP/seen")"
# And the verdict before that; what stands there in the end is what everybody else gets.
sed 's/os.dup2(os.open(.*O_WRONLY), 1)/os.dup2(s, 1)/' "$TMP/terminal.py" > "$TMP/whole.py"
python3 "$TMP/whole.py" "$VRAMCAST" sim $gpt@batch=1 --no-verify --capacity 5GiB | sed "s,\x1b\[[0-9;]*m,,g" | tr '\r' '\n' > "$TMP/whole"
awk '/^torch .*: runs out of memory/ && !v { v = NR } /^looking for changes/ && !l { l = NR } END { exit !(v && l && v < l) }' "$TMP/whole" &&
	[ "$(grep -c '^torch .*: runs out of memory' "$TMP/whole")" = 1 ] && pass "the verdict comes first, and once" ||
	fail "the verdict comes first, and once" "$(cat "$TMP/whole")"
run sim $gpt@batch=1 --no-verify --capacity 5GiB
[ "$(grep -v '^looking\|^ *$\|^next: ' "$TMP/whole" | grep -v '[▁▂▃▄▅▆▇█]')" = "$(printf '%s\n' "$out" | grep -v '^ *$')" ] && pass "the rest is the same" ||
	fail "the rest is the same" "$(cat "$TMP/whole")"
seen -q --capacity 5GiB; [ ! -s "$TMP/seen" ] && pass "not with -q" || fail "not with -q" "$(cat "$TMP/seen")"
run sim $gpt@batch=1 --no-verify --capacity 5GiB; [ -z "${err##next: vramcast *}" ] && pass "nor to a file" || fail "nor to a file" "$err"
finish
