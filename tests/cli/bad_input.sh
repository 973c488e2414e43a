#!/bin/sh
# bad_input.sh - every kind of bad input gets one clear sentence, code 1, and leaves no output behind.
. tests/support/tap.sh
command -v python3 > /dev/null || { skip "bad inputs" "python3 is not here"; finish; }
"$VRAMCAST" export traces/decomfl.vct --to vct --block 1000 -o "$TMP/good.vct" 2> "$TMP/err" || fail "export" "$(cat "$TMP/err")"
python3 - "$TMP" <<'PY'
import gzip, io, os, pickle, struct, sys, zipfile
tmp = sys.argv[1]
def put(name, data): open(os.path.join(tmp, name), 'wb').write(data)
MIB = 1 << 20
def event(action, addr, size, **more): return dict(action=action, addr=addr, size=size, stream=0, time_us=1000, **more)
def shot(events, blocks=None, **more):
    segments = [dict(device=0, address=0x200000, total_size=2 * MIB, stream=0, segment_type='small', is_expandable=False,
                     blocks=blocks or [dict(address=0x200000, size=2 * MIB, requested_size=0, state='inactive', frames=[])])]
    return dict(segments=segments, device_traces=[events], **more)
good = shot([event('alloc', 0x200000, 512), event('free_requested', 0x200000, 512), event('free_completed', 0x200000, 512)] * 400)
data = pickle.dumps(good, 4)
put('good.pickle', data)
for p in range(6): put(f'good{p}.pickle', pickle.dumps(good, p))
put('good.pickle.gz', gzip.compress(data))
put('cut.pickle', data[:len(data) // 2])
at = data.rindex(b'u')  # a pickle has no checksum: only a flip that makes no sense can be noticed
put('flip.pickle', data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1:])
packed = gzip.compress(data)
put('cut.pickle.gz', packed[:len(packed) // 2])
put('flip.pickle.gz', packed[:40] + bytes(b ^ 0x55 for b in packed[40:60]) + packed[60:])
put('tail.pickle.gz', packed + b'something else')
class Pipe(io.BytesIO):  # sums and sizes come behind the file
    def seekable(self): return False
    def seek(self, *at): raise io.UnsupportedOperation
    def tell(self): raise io.UnsupportedOperation
def archive(names, method=zipfile.ZIP_DEFLATED, to=io.BytesIO):
    out = to()
    with zipfile.ZipFile(out, 'w', method) as z:
        for name in names: z.writestr(name, data)
    return out.getvalue()
put('good.zip', archive(['a.pickle']))
put('stored.zip', archive(['a.pickle'], zipfile.ZIP_STORED))
put('mac.zip', archive(['a.pickle', '__MACOSX/._a.pickle']))
put('piped.zip', archive(['a.pickle'], to=Pipe))
put('laid.zip', laid := archive(['a.pickle'], zipfile.ZIP_STORED, Pipe))
put('laid-cut.zip', laid[:len(data)])
put('laid-sum.zip', laid[:99] + bytes([laid[99] ^ 1]) + laid[100:])
put('saved.zip', archive(['x/data.pkl', 'x/version', 'x/data/0'], zipfile.ZIP_STORED, Pipe)) # as torch.save does
plain, data = data, pickle.dumps(dict(good, pad=b'PK\7\x08' * 300001), 4)
put('marks.zip', archive(['a.pickle'], zipfile.ZIP_STORED, Pipe)); data = plain
put('weights.pickle', b'\x80\x02}X\x01\0\0\0actorch._utils\n_rebuild_tensor_v2\n.')
put('several.zip', archive(['a.pickle', 'b.pickle']))
put('lzma.zip', archive(['a.pickle'], zipfile.ZIP_LZMA))
z = archive(['a.pickle'])
put('cut.zip', z[:len(z) // 3])
put('head.zip', z[:20])
put('sum.zip', z[:14] + bytes([z[14] ^ 1]) + z[15:])
put('locked.zip', z[:6] + bytes([z[6] | 1]) + z[7:])
class Evil:
    def __reduce__(self): return (os.system, ('touch ' + os.path.join(tmp, 'pwned'),))
for p in range(6): put(f'evil{p}.pickle', pickle.dumps(dict(segments=[], x=Evil()), p))
class Obj: pass
put('object.pickle', pickle.dumps(dict(segments=[Obj()]), 4))
put('other.pickle', pickle.dumps(dict(weights=[1, 2, 3]), 4))
put('scalar.pickle', pickle.dumps(7, 4))
put('tuple.pickle', pickle.dumps((), 4))
put('long-text.pickle', b'\x80\x04}\x8d' + struct.pack('<Q', 1 << 60) + b'abc')
put('long-number.pickle', b'\x80\x04\x8b' + struct.pack('<i', 2**31 - 1) + b'abc')
put('wild-memo.pickle', b'\x80\x02}r\xff\xff\xff\xff.')
put('deep-marks.pickle', b'\x80\x02' + b'(' * 1000000)
put('deep-lists.pickle', b'\x80\x02' + b']' * 1000000 + b'a' * 999999 + b'.')
put('protocol9.pickle', b'\x80\x09}.')
put('negative.pickle', pickle.dumps(shot([event('alloc', 0x200000, -1)]), 4))
put('overflow.pickle', pickle.dumps(shot([event('alloc', 0x200000, 1 << 63)]), 4))
put('huge.pickle', pickle.dumps(shot([event('alloc', 0x200000, 1 << 62)]), 4))
put('words.pickle', pickle.dumps(shot([event('alloc', 0x200000, 'many')]), 4))
put('tiles.pickle', pickle.dumps(shot([], [dict(address=0x200000, size=8 * MIB, state='inactive')]), 4))
put('unknown-free.pickle', pickle.dumps(shot([event('free_requested', 0x240000, 512), event('free_completed', 0x240000, 512)] +
    [event('free_requested', 0x280000, 512), event('free_completed', 0x280000, 512)] * 2), 4))
put('twice.pickle', pickle.dumps(dict(device_traces=[[event('alloc', 0x200000, 512)] * 2]), 4))
put('segments-only.pickle', pickle.dumps(dict(device_traces=[[event('segment_alloc', 0x200000, 2 * MIB)]]), 4))
put('extra.pickle', pickle.dumps(shot([event('alloc', 0x200000, 512, new_key=[1, {'a': (2, 3)}]), event('invented', 1, 2)],
    future={'b': None}), 4))
put('words.txt', b'just some words\n')
put('lfs.pickle', b'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n')
put('zeros', bytes(100000))
put('empty', b'')
put('empty.gz', gzip.compress(b''))
put('cut.json', b'{"traceEvents":[{"name":"[memory]","ph":"i","ts":1,"args":{"Device Type":1,"Device Id":0,"Bytes":51')
put('deep.json', b'{"traceEvents":' + b'[' * 100000)
put('bytes.json', b'{"traceEvents":[{"name":"[memory]","args":{"Device Type":1,"Device Id":0,"Bytes":9223372036854775807}}]}')
vct = open(tmp + '/good.vct', 'rb').read()
first = vct.index(b'VCB1E') - 8
second = vct.index(b'VCB1E', first + 100) - 8
put('cut.vct', vct[:second + 5000])
put('cut-header.vct', vct[:40])
put('flip.vct', vct[:second + 500] + bytes([vct[second + 500] ^ 1]) + vct[second + 501:])
put('flip-head.vct', vct[:second + 20] + b'\xff\xff\xff\x7f' + vct[second + 24:])
put('twice.vct', vct + vct)
put('head-only.vct', vct[:first])
PY
# bad FILE SENTENCE : refused by info, sim and export, with one line on stderr and nothing written
bad() {
	run info "$TMP/$1"; expect "info $1" 1 '' "$2"
	[ "$(printf '%s\n' "$err" | wc -l)" = 1 ] || fail "info $1: one line" "$err"
	run sim "$TMP/$1" --capacity 8G; [ "$rc" = 1 ] || fail "sim $1" "code $rc" "$err"
	run export "$TMP/$1" --to vct -o "$TMP/out.vct"; [ "$rc" = 1 ] || fail "export $1" "code $rc" "$err"
	[ -z "$(ls "$TMP" | grep '^out.vct')" ] || fail "export $1 leaves nothing behind" "$(ls "$TMP" | grep '^out.vct')"
}
good() { run info "$TMP/$1"; expect "info $1" 0 "$2"; }

for p in '' 2 3 4 5; do good "good$p.pickle" 'torch_snapshot'; done
good good.pickle.gz 'torch_snapshot'
for p in good stored mac piped laid saved marks; do good $p.zip 'torch_snapshot'; done
bad laid-cut.zip 'ends too early.*cut off'
bad laid-sum.zip 'damaged zip data: incorrect data check'
bad weights.pickle 'holds tensors .torch._utils._rebuild_tensor_v2 at byte 9., as checkpoints do'
bad several.zip 'an archive of several files; unpack it'
bad lzma.zip 'packed in a way that is rare; unpack it first'
bad locked.zip 'encrypted'
bad cut.zip 'ends too early.*cut off'
bad head.zip 'cut off'
bad sum.zip 'damaged zip data: incorrect data check'
bad cut.pickle 'ends too early'
bad flip.pickle 'damaged pickle at byte'
bad cut.pickle.gz 'ends too early.*cut off'
bad flip.pickle.gz 'gzip'
bad tail.pickle.gz 'after the end of the gzip'
for p in 1 2 3 4 5; do bad "evil$p.pickle" 'wants Python to run (posix|nt).system'; done
for p in good0 good1 evil0; do bad $p.pickle 'protocol 0 or 1, byte .* save it with protocol 2 or newer'; done
[ -e "$TMP/pwned" ] && fail "nothing was executed" || pass "nothing was executed"
bad object.pickle 'wants Python to run'
bad other.pickle 'no memory snapshot'
bad scalar.pickle 'no memory snapshot'
bad tuple.pickle 'no memory snapshot'
bad long-text.pickle 'claims 1152921504606846976 bytes'
bad long-number.pickle 'thousands of bytes'
bad wild-memo.pickle 'out of all proportion'
bad deep-marks.pickle 'nested too deeply'
bad deep-lists.pickle 'no memory snapshot'
bad protocol9.pickle 'protocol 9'
bad negative.pickle 'event 0: size is negative'
bad overflow.pickle 'event 0: size does not fit'
bad huge.pickle 'event 0: size .* more than any device'
bad words.pickle 'event 0: size is not a number'
bad tiles.pickle 'block 0 does not follow'
bad words.txt 'not a trace'
bad lfs.pickle 'Git LFS pointer'
bad zeros 'not a trace'
bad empty 'empty'
bad empty.gz 'empty'
bad . 'is a directory'
bad nothing-here 'No such file'
bad cut.json 'ends too early'
bad deep.json '512 levels'
bad bytes.json 'more than any device'
bad cut-header.vct 'not a trace'
bad twice.vct 'second trace'

# Not fatal: counted and told.
good extra.pickle 'kinds that this version does not know'
good unknown-free.pickle 'contradict|not known to live'
good twice.pickle 'address of a live block'
good segments-only.pickle 'segments'
run sim "$TMP/segments-only.pickle" --capacity 8G; expect "sim of a trace with only segments says why not" 1 '' 'segment'
good cut.vct 'cut off'
good good.vct 'complete *yes'
good flip.vct 'one damaged block was skipped'
good flip-head.vct 'one damaged block was skipped'
bad head-only.vct 'no events'
"$VRAMCAST" info "$TMP/flip.vct" | grep -q 'complete *no' && pass "a damaged trace is not complete" || fail "a damaged trace is not complete"

run export "$TMP/flip.vct" --to vct -o "$TMP/copy.vct"; expect 'a damaged trace is converted' 0
run info "$TMP/copy.vct"; expect 'its copy is not complete either' 0 'complete *no'
# From a pipe, and into one that closes.
"$VRAMCAST" info - < "$TMP/good.pickle.gz" > "$TMP/out" 2> "$TMP/err"; rc=$?; out=$(cat "$TMP/out"); err=$(cat "$TMP/err")
expect "standard input is read" 0 'torch_snapshot'
cat "$TMP/good.pickle" | "$VRAMCAST" info - > "$TMP/out" 2> "$TMP/err"; rc=$?; out=$(cat "$TMP/out"); err=$(cat "$TMP/err")
expect "a pipe is read" 0 'torch_snapshot'
{ "$VRAMCAST" dump traces/decomfl.vct 2> "$TMP/err"; echo $? > "$TMP/code"; } | head -n 1 > /dev/null
[ "$(cat "$TMP/code")" = 141 ] && pass "a closed pipe ends the program" || fail "a closed pipe" "$(cat "$TMP/code")" "$(cat "$TMP/err")"
if [ -e /dev/full ]; then
	run export traces/decomfl.vct --to vct -o /dev/full; expect "a full disk is an error with a sentence" 1 '' 'No space left'
fi
mkdir -p "$TMP/closed"; chmod 555 "$TMP/closed"
if [ "$(id -u)" != 0 ]; then run export traces/decomfl.vct --to vct -o "$TMP/closed/x.vct"; expect "a folder one may not write to" 1 '' 'cannot write'; fi
(ulimit -f 1; "$VRAMCAST" export traces/lm-train-ctx128.vct --to vct -o "$TMP/x.vct" 2> "$TMP/err"); rc=$?; out=; err=$(cat "$TMP/err")
expect "a limit on the size of files is an error with a sentence" 1 '' 'cannot write .*x.vct: File too large'
[ -z "$(ls "$TMP" | grep '^x.vct')" ] && pass "and leaves nothing behind" || fail "and leaves nothing behind" "$(ls "$TMP")"
mkfifo "$TMP/pipe"; cat traces/decomfl.vct > "$TMP/pipe" & run plot "$TMP/pipe"; wait; expect "a named pipe is read once" 0 'GiB'
run export traces/decomfl.vct --to vct -o "$TMP/none/x.vct"; expect "a folder that is not there" 1 '' 'cannot write'
{ echo vramcast-golden 1; head -c 200000 /dev/zero | tr '\0' '#'; } > "$TMP/long.ops"
printf 'vramcast-golden 1\nabout x\ntorch 2.9.1\ntotal 17179869184\nevents manual\nm 1 512 *\n' > "$TMP/all.ops"
run sim --no-verify "$TMP/all.ops"; expect "a block of all streams at once" 1 '' 'event 0: a block of all streams'
run dump "$TMP/long.ops"; expect "a script with a line that is longer than any" 1 '' 'line 2: longer than 65536 characters'
finish
