/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_words.h - the words of a PyTorch memory snapshot. They are entered into a fresh string
 * dictionary first, so that comparing a key is comparing a small number. */
#pragma once

#include "common/meta.h"

#define SNAPSHOT_WORDS(X) \
	X(action) X(addr) X(device_free) X(size) X(stream) X(time_us) X(frames) X(pool_id) \
	X(user_metadata) X(category) X(compile_context) X(forward_frames) X(name) X(filename) \
	X(line) X(stage) X(device) X(alloc) X(free_requested) X(free_completed) X(segment_alloc) \
	X(segment_free) X(segment_map) X(segment_unmap) X(snapshot) X(oom) X(segments) \
	X(device_traces) X(allocator_settings) X(external_annotations) X(trace_alloc_overflowed) \
	X(host_segments) \
	X(address) X(total_size) X(segment_type) X(segment_pool_id) X(is_expandable) X(blocks) \
	X(requested_size) X(state) X(history) X(real_size) X(small) X(active_allocated) \
	X(active_pending_free) X(active_awaiting_free) X(PYTORCH_CUDA_ALLOC_CONF) \
	X(max_split_size) X(expandable_segments) X(graph_capture_record_stream_reuse) \
	X(roundup_power2_divisions)

enum snapshot_word {
	W_EMPTY,
#define X(word) W_##word,
	SNAPSHOT_WORDS(X)
#undef X
	W_end, W_not_applicable, /* spelt END and N/A */
	W_WORDS
};

static inline int snapshot_words(struct vc_meta *meta, struct vc_error *err)
{
	static const char *const word[W_WORDS] = {
		[W_EMPTY] = "",
#define X(w) [W_##w] = #w,
		SNAPSHOT_WORDS(X)
#undef X
		[W_end] = "END", [W_not_applicable] = "N/A",
	};

	for (uint32_t i = 0; i < W_WORDS; i++)
		if (vc_meta_string(meta, word[i], strlen(word[i])) != i)
			return vc_fail(err, VC_EINTERNAL, "the string dictionary is not fresh");
	return 0;
}
