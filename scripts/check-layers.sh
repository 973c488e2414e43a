#!/bin/sh
# check-layers.sh - who may include whom. One row per rule; the first row that matches a file decides.
# file pattern            may include only
rules='
vramcast.c                common/ commands/
commands/*                common/ tracer/ simulator/ visualize/ nullgpu/ commands/
common/*                  common/
tracer/*                  common/ tracer/
allocator/*             common/ allocator/
nullgpu/*                 common/convolution.h common/error.h common/kernel_work.h common/plan_table.h common/std.h common/vec.h common/windows.h nullgpu/
simulator/models/*        common/ simulator/replay/model.h simulator/replay/device.h simulator/models/
simulator/sources/*       common/ simulator/replay/source.h simulator/sources/
simulator/observers/*     common/ simulator/replay/observer.h simulator/replay/result.h simulator/observers/
simulator/replay/registry.c common/ simulator/replay/ simulator/models/models.def simulator/sources/sources.def simulator/transforms/transforms.def simulator/observers/observers.def
simulator/replay/*        common/ simulator/replay/
simulator/anatomy/*       common/ simulator/replay/source.h simulator/replay/memo.h simulator/anatomy/
simulator/rewrite/*       common/ simulator/replay/source.h simulator/replay/memo.h simulator/anatomy/ simulator/rewrite/
simulator/transforms/*    common/ simulator/replay/source.h simulator/replay/transform.h simulator/anatomy/ simulator/rewrite/ simulator/transforms/
simulator/predict/*       common/ simulator/replay/ simulator/anatomy/ simulator/predict/
simulator/session/*       common/ simulator/replay/ simulator/anatomy/ simulator/rewrite/ simulator/predict/ simulator/session/
simulator/time/*          common/ simulator/replay/ simulator/anatomy/ simulator/session/ simulator/time/
simulator/findings/leaks.* common/ simulator/replay/ simulator/anatomy/ simulator/session/ simulator/findings/leaks.h
simulator/findings/*      common/ simulator/replay/result.h simulator/findings/findings.h
simulator/advise/*        common/ simulator/replay/ simulator/anatomy/ simulator/predict/ simulator/session/ simulator/time/ simulator/findings/ simulator/advise/
simulator/packing/*       common/ simulator/replay/source.h simulator/packing/
simulator/search/*        common/ simulator/replay/ simulator/anatomy/ simulator/session/ simulator/time/ simulator/findings/ simulator/advise/ simulator/search/
simulator/serving/*       common/ simulator/serving/
visualize/*               common/ visualize/ simulator/replay/result.h simulator/findings/findings.h
'
. scripts/sources.sh
sources | while read -r f; do [ -f "$f" ] && echo "$f"; done | xargs grep -H '^#[ ]*include "[^"]*"' /dev/null | rules=$rules awk '
	BEGIN {
		n = split(ENVIRON["rules"], line, "\n")
		for (i = 1; i <= n; i++)
			if (split(line[i], w, " ")) {
				pat[++k] = "^" w[1] "$"; gsub(/\./, "\\.", pat[k]); gsub(/\*/, ".*", pat[k])
				may[k] = line[i]; sub(/^ *[^ ]+ +/, "", may[k])
			}
	}
	{
		f = $0; sub(/:.*/, "", f); inc = $0; sub(/^[^"]*"/, "", inc); sub(/".*/, "", inc)
		if (!(f in rule)) {
			rule[f] = 0
			for (i = 1; i <= k && !rule[f]; i++) if (f ~ pat[i]) rule[f] = i
			files += rule[f] > 0
		}
		if (!rule[f]) next
		m = split(may[rule[f]], a, " "); ok = 0
		for (i = 1; i <= m; i++) ok = ok || index(inc, a[i]) == 1
		if (!ok) { print "# " f " must not include " inc " (allowed: " may[rule[f]] ")"; bad = 1 }
	}
	END {
		if (!files) print "not ok 1 - layers: no files found"
		else if (bad) print "not ok 1 - layers"
		else print "ok 1 - layers: " files " files include only what their layer may"
		exit bad || !files
	}'
