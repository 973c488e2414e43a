/* SPDX-License-Identifier: Apache-2.0 */
/* fit.h - the largest value of a parameter that fits a card, predicted from recordings. */
#pragma once

#include "common/largest.h"
#include "simulator/session/whatif.h"

enum { VC_FIT_PROBES = 1024, VC_FIT_PACES = 8, VC_FIT_SEEN = 2 };

/* One predicted run. Bytes are of the whole card: what lies beside the allocator is included. */
struct vc_fit_probe {
	uint64_t value;
	enum vc_verdict verdict;
	uint64_t used;              /* at most, on that card */
	uint64_t low,
		high; /* needed where nothing limits it, over what the recordings leave open */
	double share;               /* high of the capacity, 0 without one */
	bool open;                  /* the interval was asked for, else low = high */
};

struct vc_fit_card {
	struct vc_plan plan;
	struct vc_fit_probe probe[VC_FIT_PROBES];
	size_t probes;
	uint64_t largest, failing;  /* without emptying the cache: the largest that fits, the
				     * smallest that  does not; 0: none */
	uint64_t flushing, oom;     /* the same with the cache emptied on the way */
	bool holes;                 /* failing < largest */
	uint64_t surely, perhaps;   /* the largest whose upper end fits, whose lower end fits */
	uint64_t headline;          /* what to go by: what is certain; from one recording the best
				     * estimate; else what --assume says */
	uint64_t record;            /* the value whose recording would narrow it most; 0: none */
	bool one;                   /* recording is all there is */
	uint64_t recommended;       /* 0: none */
	char cannot[400];           /* see struct vc_trust */
	char why[400], trust[960], pace[256]; /* sentences; pace: "" when there is nothing to say */
	const char *level;          /* vc_whatif_level of the predictions */
	const char *narrow;       /* what would narrow it, NULL: nothing is open */
	double matched;           /* share of the bytes */
	struct vc_result
		run[VC_FIT_PACES]; /* with times, by value, for tables and vc_time_compare */
	size_t runs;
};

/* What is looked for. base: a session over recordings that differ in `key` (or one recording, whose
 * answer is a pair of bounds), lent. */
struct vc_fit {
	struct vc_session *base;
	const char *key;
	const struct vc_param_value *also; /* other parameters held at these values */
	size_t n;
	uint64_t unit, most;        /* multiples of unit, up to most */
	const uint64_t *among;      /* of these values only, ascending (lent), or NULL: of all */
	size_t amongs;
	double low, high;           /* target band, shares of the card */
	struct vc_fit_seen *seen[VC_FIT_SEEN]; /* the newest predictions: a value is asked for
						* twice in a row; more would only fill memory */
	size_t seen_n;              /* ever made */
};

/* Fill c, whose plan is set. Some predictions are kept until vc_fit_forget, which comes before
 * the end of f->base. */
int vc_fit_search(struct vc_fit *f, struct vc_fit_card *c, struct vc_error *err);
void vc_fit_forget(struct vc_fit *f);
void vc_fit_card_fini(struct vc_fit_card *c);

/* The verdict of a probe with all that the recordings leave open: undecided between what is certain
 * and what is possible. */
enum vc_verdict vc_fit_verdict(const struct vc_fit_card *c, const struct vc_fit_probe *p);

/* The largest value that is looked at, the one behind `value`, and one in the middle between two;
 * 0: none. */
uint64_t vc_fit_most(const struct vc_fit *f);
uint64_t vc_fit_next(const struct vc_fit *f, uint64_t value);
uint64_t vc_fit_between(const struct vc_fit *f, uint64_t low, uint64_t high);

/* The probe made at a value, NULL when there was none. */
const struct vc_fit_probe *vc_fit_at(const struct vc_fit_card *c, uint64_t value);
