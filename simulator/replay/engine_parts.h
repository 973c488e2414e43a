/* SPDX-License-Identifier: Apache-2.0 */
/* engine_parts.h - what the two files of the engine share: engine_loop.c, the path of every event,
 * and engine.c, which sets a run up and hands over what it found. For these two only. */
#pragma once

#include "common/pages.h"
#include "simulator/replay/beside.h"
#include "simulator/replay/engine.h"
#include "simulator/replay/follow.h"
#include "simulator/replay/peaks.h"

#define VC_ENGINE_OBSERVERS 16

enum vc_life_state { VC_DEAD, VC_LIVE, VC_WAITING };

struct vc_live { struct vc_block block; uint32_t granules; uint8_t life; }; /* of 512 bytes */

struct vc_engine {
	struct vc_run *run;
	struct vc_model model;
	struct vc_streams streams;
	const struct vc_meta *meta;
	struct vc_device *device;
	struct vc_pages live;
	struct vc_extent *heap;
	size_t heap_n; /* the starting heap while it is collected */
	uint32_t *heap_site;     /* who asked for each of its blocks */
	struct vc_observer obs[VC_ENGINE_OBSERVERS];
	size_t nobs, ntrace;
	bool has_step, seeded, begun, stopped; /* begun: observers know where the run starts */
	bool alert; /* somebody looks at each event, or the run has not begun */
	bool given_up;
	bool resettled; /* its settings were changed on the way */
	bool trimmed; /* the recorded heap gave its cache back first */
	bool alone; /* settings changed on the way, pools: not to be taken for another run */
	uint16_t device_index;
	uint64_t index, lower, beside;   /* beside: context + other processes */
	struct vc_beside outside;
	struct vc_watch watch;
	struct vc_follow *follow;
	struct vc_stats stats;
};

/* All events of e->run->source. */
int vc_engine_loop(struct vc_engine *e, struct vc_error *err);
/* Keeps the limit that the model has now: at the first refusal, else at the end. */
void vc_engine_limit(struct vc_engine *e);
