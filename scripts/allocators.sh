#!/bin/sh
# allocators.sh [-d] FILE... - markdown tables: every allocator on each recording, on the card it was recorded on. How far what is
# reserved at the peak lies above what was live; with -d calls of the driver and their simulated time instead.
v=${VRAMCAST:-build/vramcast}; what=over
[ "$1" = -d ] && { what=driver; shift; }
for f in "$@"; do
	rows=$("$v" sim "$f" -m all -m bfc:growth=true --no-advice --no-verify --as csv 2> /dev/null)
	case $? in 0 | 3 | 6) ;; *) continue ;; esac
	[ -n "$rows" ] && printf '%s\n' "$rows" | sed 's/"[^"]*"//g' | sed "s|^|$(basename "$f" | sed 's/+.*__/ … /; s/\.vct$//; s/_memory_snapshot//; s/\.pickle$//'),|"
done | awk -F, -v what=$what '
	function bytes(n) { return n >= 2^30 ? sprintf("%.2f GiB", n / 2^30) : sprintf("%.1f MiB", n / 2^20) }
	$2 == "allocator" { for (i = 2; i <= NF; i++) at[$i] = i; next }
	{
		split($2, name, " ")
		if (!($1 in live)) order[++n] = $1
		if (!(name[1] in known)) { known[name[1]] = 1; column[++m] = name[1] }
		if ($at["peak_live"] > live[$1]) live[$1] = $at["peak_live"]
		x = $at["over_live"]
		if (what == "driver") said = sprintf("%d, %.0f ms", $at["driver_calls"], $at["driver_ns"] / 1e6)
		else if ($at["outcome"] == "oom") said = "out"
		else said = x >= 2 ? sprintf("%.0f ×", x + 1) : sprintf("%+.1f %%", 100 * x)
		cell[$1, name[1]] = said
	}
	END {
		printf "| recording | live"; for (k = 1; k <= m; k++) printf " | %s", column[k]; print " |"
		printf "|---|--:"; for (k = 1; k <= m; k++) printf "|--:"; print "|"
		for (i = 1; i <= n; i++) {
			if (!live[order[i]]) continue
			printf "| %s | %s", order[i], bytes(live[order[i]])
			for (k = 1; k <= m; k++) printf " | %s", cell[order[i], column[k]]
			print " |"
		}
	}'
