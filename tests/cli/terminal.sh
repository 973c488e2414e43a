#!/bin/sh
# terminal.sh - at home in a terminal: colours, pipes that close, completions, messages about slips of the hand.
. tests/support/tap.sh
t=traces/attention.vct
on_terminal() { # the first line of sim there, escapes as text. VARIABLE=VALUE...
	env TERM=xterm "$@" script -qc "$VRAMCAST sim $t -g h200 --no-advice" /dev/null 2> /dev/null < /dev/null | head -n 1 | cat -v
}
if command -v script > /dev/null; then
	case $(on_terminal NO_COLOR=) in *'[32m'*) pass "an empty NO_COLOR says nothing" ;; *) fail "an empty NO_COLOR says nothing" ;; esac
	for v in NO_COLOR=1 TERM=dumb; do
		case $(on_terminal $v) in *'[3'*) fail "$v: no colours" ;; *h200*|*H200*) pass "$v: no colours" ;; *) fail "$v: no output" ;; esac
	done
else
	skip "colours on a terminal" "no script"
fi
escapes() { grep -q "$(printf '\033')" "$TMP/out"; }
for w in "--color never" --color=never; do
	# shellcheck disable=SC2086
	run sim $t -g h200 --no-advice $w; expect "$w is taken" 0 'H200: fits'; check "and is followed" sh -c '! grep -q "$(printf "\033")" "$1"' - "$TMP/out"
done
run sim $t -g h200 --no-advice --color always; check "--color always colours" escapes
run sim $t -g h200 --no-advice --color; check "so does --color alone" escapes
run --color=always sim $t -g h200 --no-advice; check "in front of the command, too" escapes
run sim $t --color=pink; expect "a colour it does not know" 2 '' "--color is always, never or auto, not 'pink'"
run sim $t --quiet=yes; expect "a switch takes no value" 2 '' '--quiet takes no value'
run sim $t --verify --no-verify; expect "a switch and its opposite" 2 '' '--verify and --no-verify exclude each other'

for c in "dump traces/decomfl.vct" "export traces/decomfl.vct --to csv -o -"; do
	# shellcheck disable=SC2086
	{ "$VRAMCAST" $c 2> "$TMP/err"; echo $? > "$TMP/code"; } | head -n 1 > /dev/null
	[ "$(cat "$TMP/code")" = 141 ] && [ ! -s "$TMP/err" ] && pass "${c%% *} | head ends without a word" ||
		fail "${c%% *} | head ends without a word" "$(cat "$TMP/code")" "$(cat "$TMP/err")"
done

# each line of the completion for fish is also a command of this shell, as far as quotes go
"$VRAMCAST" completions fish > "$TMP/c.fish"
check "the completion for fish closes its quotes" sh -n "$TMP/c.fish"
if command -v fish > /dev/null; then check "fish reads it" fish -n "$TMP/c.fish"; else skip "fish reads it" "no fish"; fi

printf '{"timestamp":0,"input_length":10,"output_length":5}\n' > "$TMP/q.jsonl"
for o in block-size max-num-seqs max-num-batched-tokens; do
	run serve "$TMP/q.jsonl" --blocks 100 --$o 0; expect "serve --$o 0 is named" 2 '' "--$o starts at 1"
done
run schema sim fit; expect "two schemas at once" 2 '' "one document at a time: 'vramcast schema sim'"
run export $t --to svg -o "$TMP/x"; expect "an extension is no format" 2 '' 'that is an extension, .*FILE.svg.*; written so are timeline'
run sim $t -x checkpoint,lora; expect "two transforms in one -x" 2 '' 'as in -x checkpoint -x lora'
run dryrun -g rtx4090 -- /bin/true; case $err in
*'/bin/true is no Python program'*) pass "dryrun says whose Python it looked at" ;;
*'has no PyTorch'*) fail "dryrun says whose Python it looked at" "$err" ;;
*) skip "dryrun says whose Python it looked at" "python3 has PyTorch" ;;
esac
L=tests/ladders/recordings; a=$L/mlp_batch0016_torch2.9.1.vct; b=$L/mlp_batch0032_torch2.9.1.vct
run fit $a@batch=16 $a@batch=16 -g h200; expect "one recording twice" 2 '' 'two recordings have the same parameters: leave one out'
run fit $a@batch=16 $L/resnet50_batch0008_torch2.9.1.vct@batch=8 -g h200; expect "two programs" 2 '' 'not of one configuration'
run sim $a@batch=16 --set seq=4; expect "a value that the recording lacks" 2 '' 'the recording does not say its seq; name it, as FILE@seq=VALUE'
run sim $a@batch=16,seq=8 $b@batch=32,seq=8 --set seq=16; expect "a value in which they are equal" 2 '' 'do not differ in seq: add one that does, or give one of them alone'
finish
