#!/bin/sh
# turns.sh - programs that take turns on a card, with vLLM's sleep mode or a memory saver beneath PyTorch: the recordings
# of tests/turns (record.sh there) replay exactly, and a what-if holds what was recorded with the change really made.
. tests/support/tap.sh
here=tests/turns
for f in $here/*.vct; do
	run sim "$f"
	expect "${f##*/} replays exactly" 0 'level  *exact' ''
done
peak() { "$VRAMCAST" sim --json "$@" | tr -d ' \n' | sed 's/.*"peak_reserved":\([0-9]*\),"peak_used.*"interval":\(\[[0-9,]*\]\|null\).*/\1 \2/'; }
inside() { # TRACE OTHER CHANGE... : the interval, and that it holds what OTHER reserved
	f=$1; other=$2; shift 2
	truth=$(peak "$here/$other.vct"); said=$(peak "$here/$f.vct" "$@")
	echo "${truth%% *} $said" | tr '[,]' '   ' |
	if awk '{ ends = $3 == "null" ? 0 : 1; exit !($1 > 0 && (ends ? $3 <= $1 && $1 <= $4 : $1 == $2)) }'
	then pass "$f $*: $other is inside"; else fail "$f $*" "said $said, $other reserved $truth"; fi
}
inside saver saver-awake -x awake
inside saver saver-round --conf roundup_power2_divisions:4
inside saver saver-split --conf max_split_size_mb:64
inside level1 awake -x awake
inside level2 awake -x awake
inside level1 level1-split --conf max_split_size_mb:64
inside level1 level1-expandable --conf expandable_segments:True
inside level1-expandable level1 --conf ''
inside grpo grpo-awake -x awake
inside grpo grpo-split --conf max_split_size_mb:64
inside grpo grpo-expandable --conf expandable_segments:True
run sim $here/grpo.vct
for turn in 'sync weights, asleep' 'score, asleep' 'generate, awake' 'train, asleep'; do
	expect "TRL's own: $turn" 0 " [36]  $turn\$"
done
run sim $here/level1.vct
expect "who has the card is told" 0 '^ *7.96 GiB  *7.46 GiB .* 0 bytes  *4  generate, awake$'
expect "and while it sleeps" 0 '^ *1.69 GiB .* 7.01 GiB  *4  train, asleep$'
run sim $here/level1.vct --capacity 7500MiB
expect "waking needs the memory again" 3 'given back are asked for again'
run sim $here/level1.vct -x awake
expect "awake it would need more" 0 'GiB -> 8.21 GiB reserved'
run dump $here/saver.vct
expect "what was given back is in the recording" 0 'pages_out device=0 id=[0-9]* size=67108864 .* label=torch_memory_saver'
run sim $here/two.vct
expect "a server in a process of its own: what it gives back" 0 ' 7.01 GiB  *5  asleep$'
run plot $here/level1.vct -o "$TMP/a.svg"
expect "the picture has the turns" 0 '' ''
check "by name" grep -q '>generate<' "$TMP/a.svg"
# Layers never add up to more than what is on the card.
"$VRAMCAST" export -q $here/level1.vct --to csv:what=curve -o "$TMP/curve.csv"
check "layers leave out what sleeps" awk -F, 'NR > 1 { n++; if ($14 + $15 + $16 + $17 > $8) bad++ } END { exit !(n > 100 && !bad) }' "$TMP/curve.csv"
finish
