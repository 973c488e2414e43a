/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - one run: events in, a result out. Knows no model and no observer by name. */
#pragma once

#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"
#include "simulator/replay/source.h"

enum vc_start {
	VC_START_WARM,    /* seeded with the heap at the first event, exactly */
	VC_START_REBUILD, /* its live blocks asked for again, in address order */
	VC_START_COLD,    /* empty */
	VC_START_TRIMMED, /* warm, but what was cached is given back first */
	VC_START_ARGUED,  /* of a plan: what can be argued from the recording (session/ground.h) */
};

/* When the rest of a run would tell nobody anything: asked whenever more is reserved than ever
 * before. */
struct vc_enough {
	void *arg;
	bool (*is)(void *arg, const struct vc_stats *so_far);
};

struct vc_past;

struct vc_run {
	struct vc_source *source;         /* borrowed, read to its end */
	const struct vc_model_type *model;
	const char *model_params;         /* "k=v,...", or NULL */
	const char *version, *conf;       /* framework version and settings, or NULL */
	struct vc_device_config device;
	uint16_t device_index;            /* events of other devices are skipped */
	double fraction;     /* of set_per_process_memory_fraction; < 0: never called */
	enum vc_heap_order heap_order;    /* of the recorded heap */
	enum vc_start start; /* WARM becomes REBUILD where the heap cannot be taken over */
	const struct vc_past *before; /* (opt) for REBUILD; NULL: the blocks by address */
	bool follow;                      /* hand out the recorded segment addresses (fidelity) */
	const struct vc_trace *whole;     /* (opt) what source reads, for follow */
	bool check;                       /* call model->check after every step (tests) */
	bool stop_at_oom;                 /* end at the first refusal, as a real program would */
	const struct vc_enough *enough;   /* (opt) may give the run up; out->given_up */
	const struct vc_observer_type *const *observers; /* NULL-terminated; NULL: none */
};

/* Run to the end. An out-of-memory is part of the result, never an error. On success the caller
 * owns *out (vc_result_fini). */
int vc_run(struct vc_run *run, struct vc_result *out, struct vc_error *err);

/* Of a run that followed its recording (`seen` of its result): would this one be the same, for
 * neither its settings nor its version nor the bytes of its device could have changed anything?
 * *rules: its settings and version could not. t: what both replay. Errors: those of vc_run before
 * it begins. */
int vc_run_would_repeat(struct vc_run *run, const struct vc_trace *t, const struct vc_seen *seen,
			bool *same, bool *rules, struct vc_error *err);
