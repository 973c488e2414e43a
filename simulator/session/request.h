/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - from options to planned runs. */
#pragma once

#include "simulator/replay/cards.h"
#include "simulator/replay/engine.h"
#include "simulator/session/recording.h"
#include "simulator/session/rerun.h"

/* The options that sim, sweep, fit, tune, plot and report have in common; first member of their
 * config, so that vc_run_options (a table for vc_command.options) fits all of them. */
struct vc_run_options {
	struct vc_list model, torch, conf, gpu, used, set, transform;
	uint64_t capacity, context;  /* VC_NOT_GIVEN: not given */
	double fraction;             /* NaN: not given */
	const char *start;           /* warm | rebuild | cold, or NULL */
	const char *assume;          /* low | best | high, or NULL */
	uint64_t device, rank;       /* VC_NOT_GIVEN: the one that decides */
	bool verify, treat_segments;
	bool force;                   /* numbers of predictions however wide the interval */
	unsigned without;             /* rules of predictions that a test leaves out */
	const struct vc_asker *asker; /* of the command, see named_plans.h; NULL: none */
	const struct vc_runner *runner; /* of the command, see rerun.h; NULL: none */
	const struct vc_console *console; /* of the command, for its runner */
	struct vc_shelf *shelf;       /* of the command, see shelf.h; NULL: each reads its own */
	const char *speed;           /* measured speeds of a card, or NULL */
	const char *by, *program;    /* rerun | recordings | auto; what is run */
	uint64_t seeds;              /* runs, where the data decide; VC_NOT_GIVEN: 3 */
};
extern const struct vc_option vc_run_options[];
/* "Nothing given", for commands that do not take these options. */
struct vc_run_options vc_run_options_none(void);

/* Who else holds memory of the device. */
struct vc_tenants {
	struct vc_process process[16]; /* --used SIZE@pid, and this process */
	size_t processes;
	uint64_t others;               /* bytes, all of them together */
};
int vc_tenants_parse(const struct vc_list *used, struct vc_tenants *t, struct vc_error *err);

/* One planned run. What-ifs are copies of it with something changed. */
struct vc_plan {
	const struct vc_model_type *model;
	char params[256];          /* of the model, "" = none */
	char torch[16];            /* "" = the model has no versions */
	const char *conf;          /* settings string, "" = defaults; lent */
	const struct vc_card *card;/* NULL: --capacity or the recorded device */
	const char *device;        /* name of the card or of the recorded device, or NULL; lent */
	uint64_t capacity;         /* 0 = unlimited */
	uint64_t prop_total;
	uint64_t context;          /* of this process, libraries included */
	uint64_t others;           /* other processes' that the recording knows of */
	uint64_t libraries;        /* of these, what the recording saw libraries allocate */
	bool changed;              /* --capacity, or another version than the recorded one */
	enum vc_start start;
	unsigned past;             /* which one, where the recording does not show it: ground.h */
	double fraction;           /* < 0: never set */
	bool stop_at_oom;
	int64_t more;              /* of struct vc_device_config: an end of an interval */
	enum vc_assume assume;     /* which value of an interval decides; NOTHING: all of it */
	enum vc_va_policy va;      /* of fresh addresses; INC (0) stands for WINDOW, the driver's */
	unsigned va_order;         /* of struct vc_device_config: which order of VC_VA_MIX */
	struct vc_list transform;  /* "NAME:K=V,..." in that order; lent */
	const struct vc_enough *enough; /* lent; NULL: to the end */
	const struct vc_tenants *tenants; /* lent; NULL: nobody else is on the device */
};

/* How many models -m asks for: at least one, and each that there is for "all". */
size_t vc_request_models(const struct vc_list *model);

/* All combinations of -m, --torch, --conf and -g, in that order. *plans is the caller's. */
int vc_request_plans(const struct vc_recording *rec, const struct vc_run_options *o,
		     const struct vc_tenants *tenants, struct vc_plan **plans, size_t *n,
		     struct vc_error *err);

/* Is its device the recorded one, as far as that is known? */
bool vc_plan_on_recorded_device(const struct vc_recording *rec, const struct vc_plan *plan);

/* Bytes used for everything but the allocator when a plan runs. */
uint64_t vc_plan_beside(const struct vc_plan *plan);

/* Bytes that the allocator may reserve under a plan; UINT64_MAX: nothing limits it. */
uint64_t vc_plan_room(const struct vc_plan *plan);

/* The same where nothing limits it: what it would need, not what it gets. */
struct vc_plan vc_plan_unlimited(const struct vc_plan *plan);

/* The plan with one more transform behind its own, in `list`, which the caller frees. The heap at
 * the first event is asked for anew: other requests, not the recorded segments. */
int vc_plan_with(struct vc_plan *p, const char *transform, const char ***list,
		 struct vc_error *err);

/* Other settings for a plan. Under backend:cudaMallocAsync the driver decides, not PyTorch's
 * allocator: a plan for the torch model becomes one for cuda_async, unless it sets parameters of
 * the torch model, and back. */
void vc_plan_set_conf(struct vc_plan *p, const char *conf);
bool vc_plan_is_drivers(const char *conf);
