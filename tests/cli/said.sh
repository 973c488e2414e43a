#!/bin/bash
# said.sh - everything that can be said and drawn of small recordings is what it was (tests/answers/said/cli-said.txt).
# Nothing is judged here: other tests know what is right, this one notices what changes beside it.
. tests/support/tap.sh
R=tests/recordings S=tests/snapshots T=tests/transforms/recordings
sinks=$("$VRAMCAST" list sinks | awk '/^  [a-z]/ { print $1 }')

for f in $R/*.vct $S/{streams,graphs-expandable,torch-2.9.py}.pickle.gz; do
	run info -q "$f"
	run info -q --json "$f"
	run dump -q --anatomy "$f" --to 600
	run sim -q "$f"
	run sim -q "$f" -m all -g t4 --json
done
for f in $R/{gpt,oom,two-devices,many-steps}.vct $S/streams.pickle.gz; do
	for sink in $sinks; do run export -q "$f" --to "$sink" -o "$TMP/x"; done
	run plot -q "$f" --width 700 --theme dark -o "$TMP/narrow.svg"
	run plot -q "$f" --conf '' --conf expandable_segments:True -g t4 --axis time -o "$TMP/two.svg"
	run report -q "$f" -g t4 -o "$TMP/report.html"
	run plot -q "$f"
done
while IFS=$'\t' read -r kind _ _ _ _ message; do
	case $kind in '#'*|'') continue ;; esac
	printf '%b\n' "$message" > "$TMP/message"
	n=$((n + 1)); cp "$TMP/message" "$TMP/$n.txt"
	run explain "$TMP/$n.txt"
	run explain -g t4 --json "$TMP/$n.txt"
done < tests/oom/messages.tsv; n=0
# Every option of PYTORCH_CUDA_ALLOC_CONF, with values that are and are not taken
for v in 2.6 2.15; do
	for o in max_split_size_mb:{21,20} max_non_split_rounding_mb:{30,0} garbage_collection_threshold:{0.5,1} \
		roundup_power2_divisions:{4,3} roundup_power2_divisions:[256:1,512:2,1024:4,\>:8] expandable_segments:{True,Maybe} \
		pinned_{use_background_threads,use_cuda_host_register,free_catch_all}:True pinned_{max_cached_size,max_round_threshold,reserve_segment_size}_mb:64 \
		pinned_num_register_threads:{8,7} release_lock_on_cudamalloc:True graph_capture_record_stream_reuse:True \
		per_process_memory_fraction:{0.5,2} throw_on_cudamalloc_oom:True expandable_segments_reserve:{True,4} \
		expandable_segments_reserve_by_class:[small:1,large:2] large_segment_size_mb:{64,1} backend:{native,none} unknown:1 max_split_size_mb; do
		run sim -q --no-advice --no-verify $R/leak-blocks.vct --torch $v --conf "$o" -g t4
	done
done
run sim -q $R/lengths-4.vct -g all --json
run ranks -q $R/devices.vct
run export -q $R/conv-4.vct $R/conv-10.vct --to ranks -o "$TMP/ranks.svg"
run diff -q $R/conv-4.vct $R/conv-16.vct -o "$TMP/diff.svg"
run diff -q $R/many-steps.vct $R/lengths-4.vct -o "$TMP/steps.svg"
run diff -q $R/leak-blocks.vct $R/leak-maps.vct --json
finish
