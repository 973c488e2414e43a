#!/bin/sh
# cannot_tell.sh - where an interval is wider than a fifth of the best guess people get a sentence with a command in
# place of a number, from all commands; --force prints the number, and JSON has both.
. tests/support/tap.sh
R=tests/recordings
data="$R/lengths-4.vct $R/lengths-8.vct" # batches as long as their longest sample
fixed="tests/ladders/recordings/gpt-amp_batch0002_torch2.9.1.vct@batch=2 tests/ladders/recordings/gpt-amp_batch0004_torch2.9.1.vct@batch=4"
says='these recordings cannot tell how much \(sizes of steps vary with their data\); this command can: vramcast dryrun --param batch=64 '
no_number() { ! printf '%s' "$out" | grep -E "[0-9] [MG]iB (reserved|of|used)|lies between|at the peak"; }
whole() { printf '%s\n' "$out" | tr -d ' \n' | sed -n "s/.*\"$1\":\[*\([0-9]*,*[0-9]*\).*/\1/p"; }
# What nothing tried lies e^(1/4) away on either side, and what the samples leave open is added to that.
wide() { whole interval | awk -F, '{ wide = $2 > exp(0.5) * $1 } END { exit !wide }'; }

run sim $data --set batch=64 --no-advice; expect "sim says what can tell" 0 "fits: $says"
check "... and no number" no_number
run sim $data --set batch=64 --no-advice --force; expect "--force says the number" 0 'reserved lies between'
check "... and not that there is none" sh -c '! printf "%s" "$1" | grep "cannot tell"' - "$out"
run sim $data --set batch=64 --no-advice --json; expect "JSON has the sentence" 0 '"cannot_tell": "these recordings cannot tell'
expect "... and the number" 0 '"peak_reserved": [0-9]+,'
check "... within ends that hold what the data may bring besides" wide
run sim $R/gpt.vct@batch=1 --set batch=4 -g t4 --no-advice; expect "one recording shows no law" 0 'cannot tell how much \(one recording shows no law\)'
run sim $fixed --set batch=24 --no-advice; expect "laws that recordings show are said" 0 '14204|13\.87 GiB reserved|at the peak'
run sim $fixed --set batch=24 --no-advice --json; expect "... and lack nothing" 0 '"cannot_tell": null'
run fit $data --find batch --capacity 1GiB --context 0; expect "fit says how far it is certain" 0 'largest that fits +undecided: these recordings cannot tell'
expect "... and what is possible" 0 'certain up to +[0-9]+, possible up to [0-9]+'
asked=$(printf '%s' "$out" | sed -n 's/.*--param batch=\([0-9]*\) .*/\1/p'); next=$(printf '%s' "$out" | sed -n 's/.*record batch \([0-9]*\) .*/\1/p')
check "... and asks the program at the value that would narrow it" [ "${asked:-none}" = "${next:-nothing}" ]
check "... and recommends nothing" sh -c '! printf "%s" "$1" | grep -E "recommended|because"' - "$out"
run tune $data --set batch=64; expect "tune says so" 0 "$says"
check "... and no number" no_number
run sweep $data --vary batch=64 -g t4 --table
expect "a row of sweep says so" 0 "^batch=64 .*cannot tell"
run report $data --set batch=64 -g t4 -o "$TMP/report.html"; check "a report says so" grep -q 'recordings cannot tell' "$TMP/report.html"

# A scan over words, padded to a power of two, in as many levels as that has: what two powers of two show is too little
# for what lies between, and says so.
for seq in 128 192 256 512; do
	awk -v x=$seq 'BEGIN { for (p = 1; p < x; p *= 2); print "vramcast-golden 1\ntotal 85899345920\nother 0\nconf\nevents"
		for (id = 1; id <= 40; id++) print "m", id, p * 65536, 0
		for (q = p; q > 1; q /= 2) { print "m", ++id, p * 16384, 0; print "f", id }
		print "m", ++id, 512, 0 }' > "$TMP/scan-$seq.ops"
done
free="--context 0 --capacity 1TiB --no-advice --json"
for seq in 192 512; do
	run sim "$TMP/scan-$seq.ops" $free; truth=$(whole peak_reserved); truth=${truth%,}
	run sim "$TMP/scan-128.ops@seq=128" "$TMP/scan-256.ops@seq=256" --set seq=$seq $free
	told=$(whole interval); best=$(whole peak_reserved); best=${best%,}; told=${told:-$best,$best}
	check "a scan over $seq words lies inside" [ "$truth" -ge "${told%,*}" ] && [ "$truth" -le "${told#*,}" ]
done
check "... and another power of two is a number" [ "$told" = "$truth,$truth" ]

# Blocks of drawn sizes: what 12 draws may be as little as what 4 drew, so that no card with room for that is too small for certain.
for batch in 4 16; do
	awk -v x=$batch 'BEGIN { print "vramcast-golden 1\ntotal 85899345920\nother 0\nconf\nevents"
		for (id = 1; id <= 60; id++) print "m", id, x * (10 + id * (x + 3) * 7919 % 37) * 8192 + 512 * (id % 5), 0 }' > "$TMP/drawn-$batch.ops"
done
run sim "$TMP/drawn-4.ops" $free; least=$(whole peak_reserved)
run sim "$TMP/drawn-4.ops@batch=4" "$TMP/drawn-16.ops@batch=16" --set batch=12 $free; told=$(whole interval)
expect "drawn sizes tell no number" 0 '"cannot_tell": "these'
check "... and reach down to what a smaller batch drew" [ "${told%,*}" -le "${least%,}" ]
finish
