/* SPDX-License-Identifier: Apache-2.0 */
/* transform.h - what the row of a transform (struct vc_source_type) says of itself, so that nobody
 * else has to know its name: how far off it may be, what it does to the time of a step, when it
 * is good advice. */
#pragma once

#include "common/choice.h"
#include "simulator/replay/source.h"

/* How far the interval reaches beyond the answers at both bounds, percent of its ends: what the
 * transform was found to be off by where the change was really made (tests/transforms,
 * docs/measurements/transforms.md), and a little more. All 0: the recording and the parameters
 * decide everything, and the row says why. */
struct vc_margin {
	double down, up;
	double blind; /* down, where call sites are missing and layers are guessed; 0: as `down` */
	bool layout;  /* and a large segment: other sizes leave other holes */
};

/* A training step after the change, for the time it takes. */
struct vc_step_change {
	double passes;                        /* forward and backward passes per step */
	bool recompute;                       /* the forward pass again, of the layers ... */
	bool every_kind;                      /* ... of the stack alone, or of all kinds, ... */
	struct vc_choice layers;              /* ... that `checkpoint` chooses of these */
	enum { VC_CAST_NONE, VC_CAST_AUTO, VC_CAST_ALL } cast; /* to 16 bit */
	/* How often step() reads or writes a tensor of each parameter's size; 0: as recorded, NAN:
	 * not known. */
	double accesses;
	bool frozen;                          /* no gradients of weights, hardly an optimizer */
};

/* What a remedy asks of a person: advice goes from cheap to costly, and in the order of the tables
 * where the cost is the same. */
enum vc_cost {
	VC_COST_SETTING,   /* an environment variable */
	VC_COST_CALL,      /* one call, and steps that are slower */
	VC_COST_LIMIT,     /* one call, and a smaller card */
	VC_COST_STEP,      /* another optimizer step with the same results */
	VC_COST_LOOP,      /* another training loop with the same results */
	VC_COST_RECOMPUTE, /* more arithmetic */
	VC_COST_STATES,    /* another optimizer: training goes another way */
	VC_COST_TRAFFIC,   /* much slower steps */
	VC_COST_PRECISION, /* other arithmetic */
	VC_COST_MODEL,     /* another model */
	VC_COST_CARDS,     /* more cards */
	VC_COST_BATCH,     /* a smaller batch: training goes another way */
	VC_COST_CARD,      /* a larger card */
};

/* What a recording shows, as far as advice depends on it. */
enum vc_trait {
	VC_TRAIT_TRAINS = 1,        /* iterations with gradients */
	VC_TRAIT_CASTS = 2,         /* autocast is on */
	VC_TRAIT_CONVOLUTIONAL = 4, /* hardly a layer is linear */
	VC_TRAIT_STATES = 8,        /* the optimizer keeps states, or was not seen yet */
	VC_TRAIT_MOMENTS = 16,      /* two of each parameter's size, as Adam does, likewise */
	VC_TRAIT_LIMITED = 32,      /* the process may not have the whole device */
};

struct vc_remedy_words { char params[64], text[256], paste[256]; };

struct vc_remedy {
	enum vc_cost cost;
	const char *kind;      /* "conf", "code", "batch", "hardware" */
	const char *text;      /* what to do */
	const char *slower;    /* said where its time is not known; NULL: nothing */
	const char *params;    /* of the transform, or settings; NULL: none */
	const char *paste;     /* the line to paste, NULL: none */
	bool estimate;         /* what it assumes is not in the recording */
	unsigned needs, avoid; /* enum vc_trait: tried with all of these, and none of those */
	/* (opt) Instead of the texts above: the batch in n parts of `each` samples. */
	void (*split)(unsigned n, double each, struct vc_remedy_words *w);
};

/* The `step` of transforms that change memory alone. */
void vc_step_unchanged(const void *config, struct vc_step_change *c);

/* "zero:stage=3,ranks=8" as -x has it, parsed: whoever needs a parameter reads it from here. */
enum { VC_CONFIG_MOST = 1024 }; /* bytes; the largest config of a row has some 300 */
struct vc_transform_use {
	const struct vc_source_type *type;
	uint64_t given; /* which rows of type->params the text names */
	_Alignas(max_align_t) unsigned char config[VC_CONFIG_MOST];
};

extern const struct vc_source_type *const vc_transforms[]; /* NULL-terminated */
const struct vc_source_type *vc_transform_by_name(const char *name);
/* The same; NULL comes with a suggestion. */
const struct vc_source_type *vc_transform_find(const char *name, struct vc_error *err);

int vc_transform_parse(struct vc_transform_use *u, const char *text, struct vc_error *err);
int vc_transform_set(struct vc_transform_use *u, const struct vc_source_type *type,
		     const char *params, struct vc_error *err);
bool vc_transform_given(const struct vc_transform_use *u, const char *param);
/* NULL: how far off it may be is not known. */
const struct vc_margin *vc_transform_margin(const struct vc_transform_use *u);

/* Can it be made in the program itself? NULL, or why not. */
const char *vc_transform_unmade(const struct vc_transform_use *u);

/* Put it behind `upstream`. On success the new source owns that; on failure it stays the
 * caller's. */
struct vc_source *vc_transform_open(const struct vc_transform_use *u, struct vc_source *upstream,
				    struct vc_error *err);
