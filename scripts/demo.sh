#!/bin/sh
# demo.sh - what vramcast does, on a recording of a real training run: what is in it, does it fit on
# two cards, and pictures of both answers in out/.
set -e
v=${VRAMCAST:-build/vramcast}
t=${TRACE:-traces/lm-train-ctx128.vct}
fits=${FITS:-h100-80g-sxm}
dies=${DIES:-a100-40g-sxm}
out=${OUT:-out}
mkdir -p "$out"
say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n$ %s\n' "$*"; }

say vramcast info "$t"
"$v" info "$t"

say vramcast sim "$t" -g "$fits" -o "$out/fits.svg"
"$v" sim "$t" -g "$fits" -o "$out/fits.svg"

say vramcast sim "$t" -g "$dies" -o "$out/oom.svg"
"$v" sim "$t" -g "$dies" -o "$out/oom.svg" && rc=0 || rc=$?
echo "(exit code $rc: 3 means it would run out of memory)"
[ "$rc" = 3 ] || { echo "demo: expected the second card to be too small" >&2; exit 1; }

cat <<TXT

The pictures: $(realpath "$out/fits.svg") and $(realpath "$out/oom.svg") (open them in a browser).

Try next:
  $v sim $t -g $dies --conf expandable_segments:True
  $v sim $t --torch 2.2 --torch 2.9 --torch 2.15
  $v help sim
TXT
