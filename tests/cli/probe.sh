#!/bin/sh
# probe.sh - measured speeds of a card: from a recording of it and a dry run of the same program, and used by --speed.
. tests/support/tap.sh
real=tests/recordings/h100/gpt-4.vct dry=tests/recordings/gpt-4-dry.vct table=$TMP/card.speed
busy() { printf '%s' "$out" | tr -d ' \n' | sed -n 's/.*"gpu_busy":\([0-9.]*\).*"step_ns":\([0-9]*\).*/\1 \2/p' | awk '{ printf "%.0f\n", $1 * $2 / 1000 }'; }
[ -e /proc/driver/nvidia/version ] || { run probe -o $table; expect "without a card: one sentence" 1 '' 'no NVIDIA card to measure: run it on one, or name recordings'; }
run probe $real -o $table; expect "a recording without its dry run" 2 '' 'has no partner'
run probe $dry $real -o $table; expect "the wrong way round" 2 '' 'gpt-4-dry.vct is a dry run'
run probe $real $real -o $table; expect "two recordings of a card" 2 '' 'behind it stands the dry run'
# --questions: who asks the card is PyTorch; here a script stands in for it.
printf '#!/bin/sh\necho "# vramcast card 1" > "$2"; cat "$3" >> "$2"; exit "$(head -n 1 "$3")"\n' > "$TMP/python"; chmod +x "$TMP/python"
echo 0 > "$TMP/asked"; run probe --questions "$TMP/asked" --python "$TMP/python" -o "$TMP/c.vcc"; expect "a card is asked" 0 "c.vcc: what this card answered; 'vramcast dryrun --card"
check "and what it answered is kept" test "$(tr '\n' ' ' < "$TMP/c.vcc")" = '# vramcast card 1 0 '
echo 5 > "$TMP/asked"; run probe --questions "$TMP/asked" --python "$TMP/python" -o "$TMP/d.vcc"; expect "an asker that fails" 1 '' 'asking the card failed'
[ -e "$TMP/d.vcc" ] && fail "a file was written" || pass "leaves no file"
run probe --questions "$TMP/none"; expect "no questions" 1 '' "cannot open .*none.*'vramcast dryrun --questions .*none' writes it"
run probe --questions "$TMP/asked" $real $dry; expect "recordings beside them" 2 '' 'leave one out'
run probe traces/attention.vct $dry -o $table; expect "no kernels" 2 '' 'shows no steps of kernels'
[ -e $table ] && fail "a table was written" || pass "no table after an error"
run probe $real $dry -o $table; expect "a table" 0 '(8|9)[0-9] % of its kernels.* time is of kernels that the dry run has'
run sim $real --no-verify --no-advice --json; r=$(busy)
run sim $dry --no-verify --no-advice --json; a=$(busy)
run sim $dry --no-verify --no-advice --json --speed $table; b=$(busy)
awk -v r=$r -v a=$a -v b=$b 'BEGIN { d = b / r - 1; exit !(a != b && d < 0.08 && d > -0.08) }' && pass "with it $b us of kernels, on the card $r" ||
	fail "with the table" "$r on the card, $a computed, $b with the table"
run sim $dry --no-verify --no-advice -g a100-80g-sxm --json; a=$(busy)
[ "${a:-0}" -gt 0 ] && pass "another card is not of the table" || fail "another card" "$out"
head -c 200 $table > "$TMP/cut.speed"; run sim $dry --speed "$TMP/cut.speed"; expect "a table cut off" 1 '' 'cut.speed is cut off: it has no end of its last line'
echo nonsense > "$TMP/no.speed"; run sim $dry --speed "$TMP/no.speed"; expect "no table" 1 '' "no table of speeds, which begins with 'vramcast speed 1'"
{ cat $table; echo "0 gemm fp32 12 one 0.1 3"; } > "$TMP/bad.speed"
run sim $dry --speed "$TMP/bad.speed"; expect "a bad row" 1 '' 'line [0-9]+: not a row of a table of speeds'
sed 's/^card .*/card h1/' $table > "$TMP/card.speed2"; run sim $dry --speed "$TMP/card.speed2"; expect "no such card" 1 '' "line 3: no card is called 'h1'"
run sim traces/attention.vct --speed $table; expect "a recording without kernels" 2 '' 'no kernels were recorded'
finish
