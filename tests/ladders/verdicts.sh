#!/bin/sh
# verdicts.sh - what is said for certain is right. Each recorded rung is predicted from the lowest one, two and three
# rungs of its ladder, on cards just below, at and above what recorded rungs need. "fits" is never said where the recorded
# run itself runs out on that card, and "oom" never where it fits; in between stands "undecided".
. tests/support/tap.sh
L=${LADDERS:-tests/ladders/recordings}
command -v python3 > "$TMP/python" || { skip "verdicts on ladders" "no python3"; finish; }
if [ ! -d "$L" ]; then skip "verdicts on ladders" "no recordings in $L"; finish; fi
cat > "$TMP/verdicts.py" <<'EOF'
import collections, glob, json, os, re, subprocess, sys

PART = 2 << 20  # segments grow in such steps
program, folder, most = sys.argv[1], sys.argv[2], int(sys.argv[3])

count = collections.Counter()

def sweep(traces, torch, vary):
    words = [program, 'sweep'] + traces + ['--torch', torch, '--context', '0', '--json']
    for v in vary:
        words += ['--vary', v]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode == 2:  # recordings that tell nothing of this value are refused
        count['refused'] += 1
        return []
    done.check_returncode()
    return [json.loads(line) for line in done.stdout.splitlines()]

ladders = collections.defaultdict(dict)
for path in sorted(glob.glob(folder + '/*.vct') + glob.glob(folder + '/*.pickle.zst')):
    stem = re.sub(r'\.(vct|pickle\.zst)$', '', path)
    m = re.match(r'(.*)_([a-z]+)(\d+)_torch(\d+\.\d+)', os.path.basename(stem))
    if m and os.path.exists(stem + '.json'):
        need = json.load(open(stem + '.json'))['peak_reserved']
        ladders[m.group(1), m.group(2), os.path.basename(stem).split('_torch')[1]][int(m.group(3))] = (path, need)

if not ladders:
    sys.exit('no recordings of ladders with notes in ' + folder)
for (name, knob, torch), rung in sorted(ladders.items()):
    torch = '.'.join(torch.split('.')[:2])
    knob = 'eval_batch' if name.endswith('_eval') else knob
    x = sorted(rung)
    # The cards of those above the lowest one, two and three; what really happens on all of them is asked once.
    cards = {}
    for k in range(1, min(most, len(x) - 1) + 1):
        need = sorted(rung[v][1] for v in x[k:])
        cards[k] = sorted({b for a, c in zip(need, need[1:] + need[-1:]) for b in (a - PART, a, (a + c) // 2)})
    words = lambda some: 'capacity=' + ','.join(str(c) for c in sorted(some))
    truth = {(v, r['capacity']): r['verdict'] for v in x[1:]
             for r in sweep([rung[v][0]], torch, [words({c for k in cards if v in x[k:] for c in cards[k]})])}
    for k in cards:
        rest = x[k:]
        family = ['%s@%s=%d' % (rung[v][0], knob, v) for v in x[:k]]
        said = []
        for v in rest if k == 1 else []:
            said += [(v, r['capacity'], r['verdict'])
                     for r in sweep(family + ['--set', '%s=%d' % (knob, v)], torch, [words(cards[k])])]
        if k > 1:
            values = '%s=%s' % (knob, ','.join(str(v) for v in rest))
            said += [(r['vary'][knob], r['capacity'], r['verdict']) for r in sweep(family, torch, [words(cards[k]), values])]
        bad = []
        for v, card, verdict in said:
            real = truth[v, card]
            count['all', k] += 1
            count['sure', k] += verdict != 'undecided'
            if real == 'oom' and verdict in ('fits', 'flushes'):
                count['unsafe', k] += 1
                bad.append('%s=%d on %d: %s' % (knob, v, card, verdict))
            if real == 'fits' and verdict == 'oom':
                count['wasted', k] += 1
                bad.append('%s=%d on %d: oom' % (knob, v, card))
        print('# %-34s from %d: %3d verdicts%s' % (name + ' ' + knob + ' ' + torch, k, len(said), ', wrong: ' + '; '.join(bad) if bad else ''))
if count['refused']:
    print('# %d questions were refused' % count['refused'])
for k in range(1, most + 1):
    print('TOTAL', k, count['all', k], count['sure', k], count['unsafe', k], count['wasted', k])
EOF
python3 "$TMP/verdicts.py" "$VRAMCAST" "$L" "${MOST:-3}" > "$TMP/said" 2> "$TMP/err"
check "all ladders are asked" test $? = 0
grep '^#' "$TMP/said"
while read -r word k all sure unsafe wasted; do
	[ "$word" = TOTAL ] || continue
	text="from $k recorded: of $all verdicts $sure are certain; 'fits' where the run runs out: $unsafe, 'oom' where it fits: $wasted"
	[ "$unsafe" = 0 ] && [ "$wasted" = 0 ] && pass "$text" || fail "$text"
done < "$TMP/said"
finish
