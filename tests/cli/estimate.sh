#!/bin/sh
# estimate.sh - formulas without a recording, held against recordings of known models.
. tests/support/tap.sh
within() { # NAME TRACE ESTIMATE-OPTION... : the recorded peak of reserved memory lies in the band, context aside
	name=$1; run sim "$2" --no-verify --no-advice --json; shift 2
	truth=$(printf '%s\n' "$out" | sed -n 's/^ *"peak_reserved": \([0-9]*\),*$/\1/p' | head -n 1)
	run estimate --json "$@"
	set -- $(printf '%s\n' "$out" | sed -n 's/^  "\(low\|high\)": \([0-9]*\),*$/\2/p') $(printf '%s\n' "$out" |
		sed -n '/"CUDA context/,/}/s/^ *"\(low\|high\)": \([0-9]*\),*$/\2/p')
	[ $# = 4 ] && [ "$truth" -ge $(($1 - $3)) ] && [ "$truth" -le $(($2 - $4)) ] &&
		pass "$name: $((truth >> 20)) MiB in $((($1 - $3) >> 20)) .. $((($2 - $4) >> 20))" || fail "$name" "$truth: $*"
}
within "a GPT of 24 layers, batch 1" tests/recordings/gpt.vct --params 367.9e6 --layers 24 --hidden 1024 --heads 16 \
	--vocabulary 32000 --arch gpt --seq 1024 --precision fp32 --batch 1
L=tests/ladders/recordings
for b in 4 16; do
	within "BERT, attention written out, batch $b" "$(ls $L/bert-cls_batch00*${b}_*.vct | head -n 1)" --params 109e6 --layers 12 \
		--hidden 768 --heads 12 --vocabulary 5 --arch gpt --seq 128 --precision fp32 --attention eager --batch $b
done
run estimate --params 1e9 --layers 16 --hidden 2048 --arch gpt; expect "each term has a band, a moment and a source" 0 'as backward begins +16 bytes per logit'
a=$("$VRAMCAST" estimate --params 1e9 --layers 16 --hidden 2048 --arch gpt --seq 4096 --json | sed -n 's/^  "total": \([0-9]*\),*/\1/p')
b=$("$VRAMCAST" estimate --params 1e9 --layers 16 --hidden 2048 --arch gpt --seq 4096 --attention eager --json | sed -n 's/^  "total": \([0-9]*\),*/\1/p')
[ "$b" -gt $((a * 2)) ] && pass "attention that is written out keeps its scores" || fail "eager attention" "$a $b"
run estimate --params 1e9 --layers 1 --hidden 64 --arch gpt --seq 16 --precision fp32 --json
sums=$(printf '%s\n' "$out" | tr -d '",' | awk '$1 == "bytes:" { b = $2 } $1 == "low:" { l = $2 } $1 == "high:" { h = $2 } $1 == "total:" { t = $2 }
	/when: (always|from backward on|in the step)$/ { B += b; L += l; H += h } END { print (t == B), (l == L), (h == H), (L > 0) }')
[ "$sums" = "1 1 1 1" ] && pass "the total and both ends of its band are the sums of the terms of its moment" || fail "sums of terms" "$sums" "$out"
run estimate --params 1e9 --layers 16 --hidden 2048 --attention x; expect "another attention is refused" 2 '' 'must be one of fused,eager'
finish
