#!/bin/sh
# check-layers.sh - who may include whom. One row per rule; the first row that matches a file decides.
# file pattern            may include only
rules='
vramcast.c                common/ commands/
commands/*                common/ tracer/ simulator/ visualize/ nullgpu/ commands/
common/*                  common/
tracer/*                  common/ tracer/
allocator/*             common/ allocator/
nullgpu/*                 common/error.h common/vec.h common/windows.h nullgpu/
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
simulator/advise/*        common/ simulator/replay/ simulator/anatomy/ simulator/predict/ simulator/session/ simulator/time/ simulator/advise/
simulator/packing/*       common/ simulator/replay/source.h simulator/packing/
simulator/search/*        common/ simulator/replay/ simulator/anatomy/ simulator/session/ simulator/time/ simulator/advise/ simulator/search/
simulator/serving/*       common/ simulator/serving/
visualize/*               common/ visualize/ simulator/replay/result.h
'
bad=0; n=0
. scripts/sources.sh
for f in $(sources); do
	[ -f "$f" ] || continue
	allowed=$(printf '%s' "$rules" | while read -r pat rest; do
		[ -n "$pat" ] || continue
		case $f in $pat) printf '%s' "$rest"; break ;; esac
	done)
	[ -n "$allowed" ] || continue
	n=$((n + 1))
	for inc in $(sed -n 's/^#[ ]*include "\([^"]*\)".*/\1/p' "$f"); do
		ok=0
		for a in $allowed; do
			case $inc in "$a"*) ok=1 ;; esac
		done
		[ $ok = 1 ] || { echo "# $f must not include $inc (allowed: $allowed)"; bad=1; }
	done
done
[ $n -gt 0 ] || { echo "not ok 1 - layers: no files found"; exit 1; }
[ $bad = 0 ] && echo "ok 1 - layers: $n files include only what their layer may" || echo "not ok 1 - layers"
exit $bad
