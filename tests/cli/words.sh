#!/bin/sh
# words.sh - one word, one meaning: options of the same name take the same kind of value in all commands, what once had another name
# still has it, and what is the same slip has the same exit code everywhere.
. tests/support/tap.sh
export XDG_CACHE_HOME=$TMP/cache
t=traces/attention.vct
"$VRAMCAST" help | awk '/^[A-Z]/ { group = $0 } /^  [a-z]/ { print (group == "" ? "none" : "in") "\t" $1 }' > "$TMP/commands"
check "each command stands in a group" sh -c '! grep -q "^none" "$1"' - "$TMP/commands"
check "to record comes first" test "$(sed -n '1,2s/.*	//p' "$TMP/commands" | tr '\n' ' ')" = "dryrun record "
cut -f 2 "$TMP/commands" | while read -r c; do
	"$VRAMCAST" help "$c" | sed -nE "s/^  (-., |    )--([a-z0-9-]+)( ([A-Z][^ ]*|[0-9.]+|[^ ]*\|[^ ]*))?( .*)?$/\2	\4	$c/p"
done | sort > "$TMP/options"
# the parts of an option's value that name a kind; how many may be given, and formats of --as, differ from command to command
awk -F'\t' '
function kind(s) { sub(/\[.*/, "", s); sub(/\|all$/, "", s); sub(/:.*/, "", s); return s == "CARD" ? "NAME" : s }
$1 == "context" && $3 == "estimate" { next } # of a model: tokens, as everybody says
$1 == "as" || ($1 == "to" && $3 ~ /^(dump|export)$/) { next } # dump --from --to: the first and the last event
!($1 in known) { known[$1] = kind($2); at[$1] = $3; next }
known[$1] != kind($2) { print "--" $1 ": " at[$1] " takes " (known[$1] == "" ? "nothing" : known[$1]) ", " $3 " " ($2 == "" ? "nothing" : $2) }' "$TMP/options" > "$TMP/twice"
[ ! -s "$TMP/twice" ] && pass "an option takes the same kind of value in every command" || fail "an option takes the same kind of value in every command" "$(cat "$TMP/twice")"
# old NAME NEW... -- OLD...: the old spelling is not shown, and does what the new one does
echo '{"model_type": "llama", "hidden_size": 256, "intermediate_size": 704, "num_attention_heads": 4, "num_hidden_layers": 2, "num_key_value_heads": 4, "vocab_size": 320}' > "$TMP/config.json"
printf '{"timestamp":0,"input_length":10,"output_length":5}\n' > "$TMP/q.jsonl"
old() {
	new=$1; shift; before=$1; shift
	"$VRAMCAST" "$@" $new > "$TMP/new" 2>&1; a=$?
	"$VRAMCAST" "$@" $before > "$TMP/old" 2>&1; b=$?
	[ "$a" = 0 ] || sed -i "s/${new%% *}/${before%% *}/g" "$TMP/new" # in a sentence
	if [ "$a" = "$b" ] && cmp -s "$TMP/new" "$TMP/old" && ! "$VRAMCAST" help "$1" | grep -q -- "^  .*${before%% *} "; then pass "$1 $before is $new"
	else fail "$1 $before is $new" "exit codes $a and $b" "$(head -n 3 "$TMP/new")" "$(head -n 3 "$TMP/old")"; fi
}
old "--config $TMP/config.json" "--model $TMP/config.json" estimate
old "--config $TMP/config.json" "--model $TMP/config.json" serve "$TMP/q.jsonl" -g l4
old "--devices 2" "--gpus 2" estimate --params 7e9 --layers 32 --hidden 4096 --zero 1
old "--as csv" "--csv" sim $t --no-advice
old "--as csv" "--csv" serve "$TMP/q.jsonl" --blocks 100
old "--as table" "--table" sweep $t --vary torch=2.6
old "--as markdown" "--markdown" diff $t $t
old "--axis event" "--x event" plot $t -o -
old "--allocator none" "--device none" record
old "--window 5..4" "--steps 5..4" record
run sim $t --no-advice --as json; expect "--as json is --json" 0 '"schema": "vramcast.sim/1"'
run sim $t --as cvs; expect "a format that there is not" 2 '' '--as cvs: must be one of table\|csv\|json'
run diff $t $t --as csv; expect "or not of this command" 2 '' '--as csv: must be one of table\|json\|markdown'
run sim $t --no-advice --capacity 3GiB --fail-above 2GiB; expect "budgets are sizes, too" 3
run sim $t --no-advice -g l4 --fail-above 2GiB; expect "and are held to" 4 '' ''
run sim $t --no-advice --fail-above 2GiB; expect "without a card" 4 'over the budget: 3.52 GiB used, --fail-above 2GiB allows 2.00 GiB'
# a file that is not there is 1, whoever looks for it
for c in "info" "dump" "sim" "sweep --vary torch=2.6" "fit -g l4" "fit --find checkpoint -g l4" "fit --find anything -g l4" "tune -g l4" "plan" \
	"ranks" "plot -o -" "report -o $TMP/r.html" "export --to csv -o -" "explain" "reduce" "serve --blocks 9" "recover" \
	"estimate --config" "estimate --params 7B --layers 2 --hidden 256 -g all --prices" "sim $t -g all --prices"; do
	run $c "$TMP/none.vct"; expect "$c: a file that is not there" 1 '' 'none.vct'
done
# every card, and what cards cost
printf 'name,price\nl4,0.8\nrtx4090,0.3 # of June\nt4,0.4\n' > "$TMP/prices"
run sim $t --no-advice -g all --prices "$TMP/prices" --json; expect "of all cards the cheapest that fits" 0 '"cheapest": "rtx4090"'
run sim $t --no-advice -g all --prices "$TMP/prices" --as csv
check "the list's come first, in the order of their prices" test "$(sed 1d "$TMP/out" | cut -d, -f3 | head -n 3 | tr '\n' ' ')" = "GeForce RTX 4090 Tesla T4 NVIDIA L4 "
run fit $t@batch=4 -g all --prices "$TMP/prices"; expect "fit asks all of them, too" 0 'the cheapest that fits +rtx4090, 0.3'
run sim $t --prices "$TMP/prices" -g l4; expect "prices of one card" 2 '' '--prices goes with -g all'
run sim $t -g all -g l4; expect "every card and one more" 2 '' 'leave the other -g out'
finish
