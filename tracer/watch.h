/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - when a recording begins, ends, or is sealed while the program goes on. */
#pragma once

#include "common/journal.h"
#include "tracer/fold.h"

enum vc_on_oom { VC_OOM_CONTINUE, VC_OOM_DUMP, VC_OOM_STOP };
enum vc_when { VC_WHEN_NEVER, VC_WHEN_RESERVED, VC_WHEN_ALLOCATED, VC_WHEN_FREE };

struct vc_watch { /* what the user asked for */
	enum vc_on_oom on_oom;
	enum vc_when when;
	bool below, percent;          /* when it is less than the value, not more */
	double value;                 /* bytes, or percent of the device */
	uint64_t from, to;            /* steps, counted from 1; 0: not given */
	uint64_t after_ns, duration_ns;
	bool late;                    /* what ends is the tracer: times of work come at the end */
	bool paused;                  /* until the program calls vramcast_start() */
};

enum vc_window { VC_WINDOW_NONE, VC_WINDOW_AWAITED, VC_WINDOW_OPEN, VC_WINDOW_OVER };
struct vc_watching { /* of one process */
	enum vc_window window;
	uint64_t steps, began_ns, opened_ns;
	bool beyond;                  /* the threshold is passed at the moment */
};

enum vc_turn {
	VC_TURN_NONE,
	VC_TURN_OOM, VC_TURN_WHEN, VC_TURN_DUMP, /* seal what is kept */
	VC_TURN_OPEN, VC_TURN_CLOSE,             /* a window */
	VC_TURN_STOP                             /* record no more */
};

bool vc_watch_windows(const struct vc_watch *w); /* is only a part recorded? */
void vc_watch_begin(const struct vc_watch *w, struct vc_watching *s, uint64_t now_ns);
/* After a record (VC_RECF of no interest): what is to be done. */
enum vc_turn vc_watch_look(const struct vc_watch *w, struct vc_watching *s,
			   const struct vc_record *rec, const struct vc_fold_totals *t);
