#!/bin/bash
# stopped.sh - a signal to a command that runs programs, to it alone: it ends them and all that they started, starts none
# more, leaves no file, and says what it has.
. tests/support/tap.sh
. tests/support/standin.sh
cd "$TMP/own" || exit 1
# It waits, with a process of its own in another session.
cat > waits <<SH
#!/bin/sh
[ "\$1" -lt "\$2" ] || { [ -z "\$3" ] || trap '' TERM; setsid sleep 300 & echo \$! \$\$ > "$TMP/waiting"; wait; sleep 300; }
exec "$train" --batch \$1
SH
chmod +x waits
mkdir "$TMP/left"
stopped() { # SIGNAL ARGS...
	rm -f "$TMP/waiting"
	TMPDIR=$TMP/left timeout 100 python3 -c 'import os, signal, subprocess, sys, time
p = subprocess.Popen(sys.argv[3:])
while p.poll() is None and not (os.path.exists(sys.argv[1]) and os.path.getsize(sys.argv[1])):
    time.sleep(0.02)
p.send_signal(getattr(signal, sys.argv[2]))
sys.exit(p.wait())' "$TMP/waiting" "$1" "$VRAMCAST" "${@:2}" > "$TMP/out" 2> "$TMP/err"
	rc=$?; out=$(cat "$TMP/out"); err=$(cat "$TMP/err")
}
gone() { # NAME: neither a process nor a file is left
	for p in $(cat "$TMP/waiting"); do grep -q ') [^Z]' /proc/$p/stat 2> /dev/null && { fail "$1" "process $p runs"; kill -9 $p; return; }; done
	left=$(find "$TMP/left" "$TMP/cache" -path "$TMP/left/*" -o -name '*.vct.*')
	[ -z "$left" ] && pass "$1" || fail "$1" "$left"
}
card=rtx3060-12g
stopped SIGINT fit -g $card -- ./waits {batch} 118
expect "fit says what trial runs have shown" 130 '' '^vramcast fit: stopped by SIGINT after 3 trial runs; the largest that fits so far: batch=117 on GeForce RTX 3060 12GB$'
check "and nothing else" test "$out$(wc -l <<< "$err")" = 1
gone "and leaves nothing"
stopped SIGTERM fit -g $card -- ./waits {batch} 4 stubborn
expect "a program that does not end by itself is ended" 143 '' '^vramcast fit: stopped by SIGTERM after 0 trial runs, which show of no value yet that it fits$'
gone "that leaves nothing"
stopped SIGTERM fit --find plan --world 4 -j 2 -g $card -- ./waits {tp} 4
expect "layouts: those that were tried are shown" 143 'Interrupted: that is what had been tried' '^vramcast fit: stopped by SIGTERM$'
gone "they leave nothing"
stopped SIGINT dryrun -g $card --vary batch=4,5 -- ./waits {batch} 5
expect "a grid of dry runs" 130 '' '^vramcast dryrun: stopped by SIGINT$'
gone "it leaves nothing"
finish
