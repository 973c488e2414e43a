/* SPDX-License-Identifier: Apache-2.0 */
/* observer.h - someone who watches a run and writes one chapter of the result.
 * One file + one row in observers.def. */
#pragma once

#include "common/event.h"
#include "common/meta.h"
#include "simulator/replay/beside.h"
#include "simulator/replay/model.h"

struct vc_result;

/* What just happened: the event, where it went, and the totals after it. */
struct vc_step {
	const struct vc_event *ev;
	const struct vc_block *block; /* ALLOC, FREE of a known block; else NULL */
	const struct vc_model *model; /* for walk() and totals (model->now) only */
	uint64_t index;               /* of the event within the run */
	uint64_t used;                /* reserved + context + other processes */
	const struct vc_beside *beside; /* pinned and managed memory now */
	int answer;                   /* enum vc_answer of the model */
};

struct vc_observer {
	const struct vc_observer_type *type;
	const struct vc_meta *meta; /* lent */
	void *state;                /* type->state_size zeroed bytes */
};

struct vc_observer_type {
	const char *name;
	const char *summary;
	size_t state_size;
	bool final_heap; /* step also gets the HEAP_* events of the recorded end */
	/* (opt) who asked for a block of the starting heap, where the recording knows; before
	 * begin */
	int (*origin)(struct vc_observer *o, uint64_t id, uint32_t site, struct vc_error *err);
	int (*begin)(struct vc_observer *o, const struct vc_model *m,
		     struct vc_error *err); /* (opt) after the seed */
	int (*step)(struct vc_observer *o, const struct vc_step *s,
		    struct vc_error *err); /* (opt) */
	void (*trace)(struct vc_observer *o,
		      const struct vc_trace_entry *t); /* (opt) framework history */
	void (*device)(struct vc_observer *o, const struct vc_device_change *c); /* (opt) */
	/* Hand the chapter over; what moved into *r is no longer ours. */
	int (*end)(struct vc_observer *o, const struct vc_model *m, struct vc_result *r,
		   struct vc_error *err);
	/* (opt) The chapter again, for a run in which the model and the device did the same (it may
	 * be another version of it); false: it has to be found out anew. */
	bool (*repeat)(const struct vc_result *of, struct vc_result *to);
	void (*fini)(struct vc_observer *o); /* (opt) always called, after end or instead of it */
};

/* Those whose chapters the program itself asks for; observers.def has them all. */
extern const struct vc_observer_type vc_observer_fidelity, vc_observer_lives, vc_observer_moment,
	vc_observer_oom, vc_observer_pace, vc_observer_peak, vc_observer_phases,
	vc_observer_segments, vc_observer_timeline;

extern const struct vc_observer_type *const vc_observers[]; /* NULL-terminated */
const struct vc_observer_type *vc_observer_by_name(const char *name);
