/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.h - transforms that must see the whole trace before they can say its first event. */
#pragma once

#include "simulator/anatomy/anatomy.h"
#include "simulator/replay/source.h"

struct vc_whole { /* as the state of a transform: zeroed at first */
	const struct vc_event *in; size_t n; /* everything upstream had */
	struct vc_event *own;              /* where it was copied to, or NULL */
	const struct vc_trace *same;       /* a trace of the same events, lent; NULL: none */
	struct vc_memo *from;              /* to which that belongs, or NULL */
	struct vc_event *out; size_t m, cap, at;
	bool ready;
	uint16_t device;                   /* the one with the most allocations */
	uint64_t next_id;                  /* free from here on */
	struct { uint64_t high, in, out; } clock; /* of the requests put so far: latest recorded
						   * time, that of the last one, its time now */
};

/* In the row of such a transform: `next` reads upstream to its end, lets fn fill w->out, hands
 * out. */
#define VC_WHOLE(fn)                                                                               \
	.state_size = sizeof(struct vc_whole), .rewrite = (fn), .next = vc_whole_next,             \
	.close = vc_whole_close
long vc_whole_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err);
/* Times ascend whatever is put: a stretch of the recording that is put once more takes the time
 * that it took, and everything behind it comes later by that. */
int vc_whole_put(struct vc_whole *w, const struct vc_event *ev, size_t n, struct vc_error *err);
/* Say that from here on (size) or no longer (0) host memory `id` of this process is in use. */
int vc_whole_host(struct vc_source *s, struct vc_whole *w, const struct vc_event *like, uint64_t id,
		  uint64_t size, struct vc_error *err);
/* Say that n processes like this one share the host. */
int vc_whole_processes(struct vc_source *s, struct vc_whole *w, uint64_t n, struct vc_error *err);
void vc_whole_close(struct vc_source *s);
/* The layers of a forward pass of that anatomy; *l is the caller's. */
struct vc_layers; /* simulator/anatomy/layers.h */
int vc_whole_layers(const struct vc_whole *w, const struct vc_meta *meta,
		    const struct vc_anatomy *a, size_t span, struct vc_layers *l,
		    struct vc_error *err);
/* The first id above all that the events and their meta have. */
uint64_t vc_whole_next_id(const struct vc_event *ev, size_t n, const struct vc_meta *m);

/* The anatomy of w->in, which is found out once for all who read the same recording. Not to be
 * written to; vc_anatomy_fini. Errors: VC_ENOMEM. */
int vc_whole_anatomy(const struct vc_whole *w, const struct vc_meta *meta, struct vc_anatomy *a,
		     struct vc_error *err);

/* An event of that kind at the time of `like`, on its stream and device. */
struct vc_event vc_event_like(const struct vc_event *like, uint8_t kind, uint64_t id,
			      uint64_t size);

/* Places of evidence and of the recorded end no longer describe what a rewritten trace does. */
bool vc_event_outdated(const struct vc_event *e);
