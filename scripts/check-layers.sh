#!/bin/sh
# check-layers.sh - who may include whom. One row per rule; the first row that matches a file decides.
# file pattern            may include only
rules='
vramcast.c                common/ tracer/ simulator/ visualize/ nullgpu/ commands.def
*/cmd_*                   common/ tracer/ simulator/ visualize/ nullgpu/ commands.def
common/opt.h              common/ commands.def
common/*                  common/
tracer/*                  common/ tracer/
nullgpu/*                 nullgpu/ common/error.h
simulator/models/*        common/ simulator/model.h simulator/device.h simulator/models/
simulator/sources/*       common/ simulator/source.h simulator/sources/
simulator/transforms/*    common/ simulator/source.h simulator/reduction.h simulator/transforms/
simulator/observers/*     common/ simulator/observer.h simulator/result.h simulator/observers/
simulator/*               common/ simulator/
visualize/*               common/ visualize/ simulator/result.h
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
