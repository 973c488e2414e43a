#!/bin/sh
# keep.sh FOUND.txt NAME - make a difference that check.sh found a regression vector: records what the real allocator of every
# built release does with the script and adds it to tests/golden/vectors.
[ $# = 2 ] || { echo "usage: keep.sh FOUND.txt NAME" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd); g=${VECTORS:-$here/../golden/vectors}; name=$2
cache=${ORACLE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vramcast-oracle}
t=$(mktemp -d); trap 'rm -rf "$t"' EXIT
sed "s/^name .*/name $name/" "$1" > "$t/s"
lo=$(sed -n 's/^versions \([^ ]*\) .*/\1/p' "$t/s" | cut -d. -f2); hi=$(sed -n 's/^versions [^ ]* 2\.//p' "$t/s")
gzip -9nc "$t/s" > "$g/scripts/$name.txt.gz"
nr=0; nn=0
for o in $(ls -d "$cache"/build/2.* | sort -V); do
	v=$(basename "$o"); minor=$(echo "$v" | cut -d. -f2)
	[ "$minor" -ge "${lo:-0}" ] && [ "$minor" -le "${hi:-99}" ] || continue
	"$o/oracle" "$t/s" "$t/r" "$t/n" 2> /dev/null || { echo "$v did not finish" >&2; continue; }
	r=; for f in "$t"/r.*; do [ -e "$f" ] && cmp -s "$f" "$t/r" && r=$(basename "$f"); done
	[ -n "$r" ] || { r=r.$nr; cp "$t/r" "$t/$r"; gzip -9nc "$t/r" > "$g/results/$name.r$nr.gz"; nr=$((nr + 1)); }
	n=; for f in "$t"/n.*; do [ -e "$f" ] && cmp -s "$f" "$t/n" && n=$(basename "$f"); done
	[ -n "$n" ] || { n=n.$nn; cp "$t/n" "$t/$n"; gzip -9nc "$t/n" > "$g/notes/$name.n$nn.gz"; nn=$((nn + 1)); }
	echo "$name $v $name.r${r#r.} $name.n${n#n.}" >> "$g/index.txt"
done
