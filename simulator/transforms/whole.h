/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - transforms that must see the whole trace before they can say its first event. */
#ifndef VC_WHOLE_H
#define VC_WHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulator/source.h"

struct vc_whole { /* as the state of a transform: zeroed at first */
	struct vc_event *in; size_t n;     /* everything upstream had */
	struct vc_event *out; size_t m, cap, at;
	bool ready;
	uint16_t device;                   /* the one with the most allocations */
	uint64_t next_id;                  /* free from here on */
};

typedef int vc_rewrite_fn(struct vc_source *s, struct vc_whole *w, struct vc_error *err);

/* The `next` of such a transform: reads upstream to its end, lets rewrite fill w->out, hands out. */
long vc_whole_next(struct vc_source *s, struct vc_event *ev, size_t cap, vc_rewrite_fn *rewrite,
		   struct vc_error *err);
int vc_whole_put(struct vc_whole *w, const struct vc_event *ev, size_t n, struct vc_error *err);
void vc_whole_close(struct vc_source *s); /* the `close` */

/* An event of that kind at the time of `like`, on its stream and device. */
struct vc_event vc_event_like(const struct vc_event *like, uint8_t kind, uint64_t id, uint64_t size);

/* Places of evidence and of the recorded end no longer describe what a rewritten trace does. */
bool vc_event_outdated(const struct vc_event *e);

#endif
