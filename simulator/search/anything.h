/* SPDX-License-Identifier: Apache-2.0 */
/* anything.h - whatever makes a run fit: settings, layers computed twice, another optimizer step,
 * accumulation, precision, offload and more cards, in all combinations; the cheapest first, each of
 * them replayed. What a change is, what it costs and what it does to the results stands in the
 * remedies of its transform (simulator/replay/transform.h). */
#pragma once

#include "simulator/advise/advice.h"
#include "simulator/search/recompute.h"

enum { VC_ANY_AXES = 14, VC_ANY_WAYS = 20, VC_ANY_FOUND = 4 };

/* What a combination does to the results of training, and whether it needs more cards. */
enum vc_any_effect { VC_ANY_SAME, VC_ANY_ROUNDING, VC_ANY_PRECISION, VC_ANY_OTHER, VC_ANY_CARDS,
	VC_ANY_EFFECTS };

/* One alternative: a setting, or a transform with its parameters. */
struct vc_any_way {
	const struct vc_remedy *remedy; /* lent; NULL: layers from the search for them */
	char change[VC_PARAM_TEXT + 32]; /* "optimizer:to=adafactor", "expandable_segments:True" */
	char text[256], paste[256];
	bool setting;
	unsigned parts;             /* of the batch; 0: as it is */
	enum vc_cost cost;
	double factor; bool timed;  /* time of a step against that without it; else a guess */
	double share;               /* of the model that is changed */
	uint64_t saved;             /* bytes reserved less, by itself */
};
struct vc_any_axis { struct vc_any_way at[VC_ANY_WAYS]; size_t n; };

struct vc_any_found {
	uint8_t pick[VC_ANY_AXES];  /* 0: not this axis, i: at[i - 1] */
	enum vc_any_effect effect;
	double factor; bool timed;
	uint64_t reserved, used, low, high; /* the latter two of `used`, when decided */
	enum vc_verdict sure;       /* what both ends of the interval say */
};

struct vc_anything {
	struct vc_plan plan;
	struct vc_any_axis axis[VC_ANY_AXES]; size_t axes;
	struct vc_any_found found[VC_ANY_EFFECTS][VC_ANY_FOUND]; /* best first */
	size_t n[VC_ANY_EFFECTS];
	uint64_t reserved;          /* as it is, where nothing limits it */
	enum vc_verdict verdict;    /* as it is, on the card */
	uint64_t combinations, tried, refused;
	struct vc_batch batch;      /* for parts of it; not open: its size is not known */
	struct vc_session part[4];  /* batch / 2, 4, 8, 16 */
	bool part_open[4];
	struct vc_recompute_search layers; /* empty where there are none */
};

/* `most` combinations are replayed at most. Errors: those of replays. After a failure, too,
 * vc_anything_fini. */
int vc_anything_search(struct vc_anything *q, const struct vc_session *s,
		       const struct vc_plan *plan, uint64_t most, struct vc_error *err);
void vc_anything_fini(struct vc_anything *q);

/* "expandable_segments:True + checkpoint:layers=0..3"; returns buf. */
const char *vc_any_text(const struct vc_anything *q, const struct vc_any_found *f, char *buf,
			size_t n);
