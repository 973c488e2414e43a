/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_tree.h - a PyTorch memory snapshot as plain records, straight from the pickle. */
#pragma once

#include "common/event.h"
#include "common/io.h"
#include "common/meta.h"

/* kind of a raw event; the rest of struct vc_event means: time_ns = time_us since 1970, id = pool
 * ((a << 32) | b), device = index of its list, label = user metadata or category. */
enum snapshot_action {
	SNAP_NONE, SNAP_ALLOC, SNAP_FREE_REQUESTED, SNAP_FREE_COMPLETED, SNAP_SEGMENT_ALLOC,
	SNAP_SEGMENT_FREE, SNAP_SEGMENT_MAP, SNAP_SEGMENT_UNMAP, SNAP_SNAPSHOT, SNAP_OOM,
	SNAP_OTHER, /* not known; counted, skipped */
};
#define SNAP_NEW_TAG 128 /* flags: the user's metadata differ from those of the event before */

enum snapshot_state { SNAP_INACTIVE, SNAP_LIVE, SNAP_PENDING };

struct snapshot_block {
	uint64_t addr, size, requested;
	uint32_t site;
	uint8_t state; /* enum snapshot_state */
};

struct snapshot_segment {
	uint64_t addr, size, pool;
	size_t block, blocks; /* range of snapshot.block */
	uint32_t stream, site;
	uint16_t device;
	bool small, expandable;
};

struct snapshot_note { uint64_t time_us; size_t order; uint32_t name; uint16_t device; bool end; };

struct snapshot_list { size_t first, n; }; /* the events of one device */

struct snapshot_settings {
	bool known;                  /* allocator_settings is there */
	char *conf;                  /* the settings string, or NULL */
	uint64_t max_split;          /* UINT64_MAX: off */
	bool expandable;
	uint64_t divisions[16];      /* roundup_power2_divisions */
	bool reuse;                  /* graph_capture_record_stream_reuse: torch 2.9 on */
};

struct snapshot {
	struct vc_event *ev; size_t n, cap;
	struct snapshot_list *list; size_t lists;
	struct snapshot_segment *segment; size_t segments;
	struct snapshot_block *block; size_t blocks;
	struct snapshot_note *note; size_t notes;
	struct snapshot_settings settings;
	uint32_t actions;            /* bits 1 << enum snapshot_action: those that occur */
	uint64_t first_us;           /* the earliest time of an event, 0: none has one */
	/* tell-tales of the version */
	bool list_form, history, times, stacks, annotations, compile_context, user_metadata;
	bool host_segments, forward_frames, pool_ids, segment_pools, overflowed;
};

/* Reads the pickle; strings, stacks and streams go to `meta`, which must be fresh. What was read is
 * freed by snapshot_fini, after a failure too. */
int snapshot_read(struct snapshot *s, struct vc_input *in, struct vc_meta *meta,
		  struct vc_error *err);
void snapshot_fini(struct snapshot *s);
