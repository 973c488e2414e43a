/* SPDX-License-Identifier: Apache-2.0 */
/* whatif.h - sessions over several recordings: --set, and the interval of what is not exact. */
#ifndef VC_WHATIF_H
#define VC_WHATIF_H

#include <pthread.h>

#include "simulator/predict/family.h"
#include "simulator/session/session.h"

enum { VC_WHATIF_CARDS = 64, VC_WHATIF_PARAMS = 16 };

/* What a session over recordings knows beyond its trace. */
struct vc_whatif {
	struct vc_session *recording; /* one open session per recording */
	size_t recordings;
	struct vc_family *family;
	const char *nearest;                 /* path of the recording whose order is used */
	struct vc_family_report report;
	bool borrowed;                       /* recordings and family belong to another session */
	struct vc_param_value at[VC_WHATIF_PARAMS]; /* what was asked; names are in `name` */
	char name[VC_WHATIF_PARAMS][VC_PARAM_TEXT];
	size_t n;
	struct vc_reduction_card card; /* that it is predicted for; some workspace depends on it */
	bool any_card;                       /* neither told nor shown: it may be another */
	struct vc_session
		*on[VC_WHATIF_CARDS]; /* the same for other cards, made when first asked for */
	size_t cards;
	/* The last interval, for other cards and capacities: it does not depend on them. */
	pthread_mutex_t lock;
	char settings[256]; /* model, version and settings it holds for; "": none */
	bool open;                           /* low < high */
	uint64_t low, high;
	char trust[320];                     /* "extrapolated from 3 recordings ..." */
};

/* Read the recordings, build the family, predict for opt->set. Leaves s->trace, s->census and
 * s->device describing the prediction. */
int vc_whatif_open(struct vc_session *s, size_t n, char **paths, unsigned flags,
		   struct vc_error *err);

/* The same recordings at other values: a session of its own that lends the family from `from`,
 * which must outlive it. Closed with vc_session_close. `text`: "batch=32" for people. */
int vc_whatif_at(const struct vc_session *from, const struct vc_param_value *at, size_t n,
		 const char *text, struct vc_session *out, struct vc_error *err);

/* "batch=32" into a parameter; the name is copied into buf (VC_PARAM_TEXT bytes). */
int vc_whatif_parse(const char *text, struct vc_param_value *at, char *buf, struct vc_error *err);

/* The session that holds this prediction for `card` (NULL: any will do), whose arithmetic decides
 * some workspace sizes: s itself, or *mixed, a copy of s with the events of that card, valid as
 * long as s. NULL: failure. Thread-safe. */
const struct vc_session *vc_whatif_on(const struct vc_session *s, const struct vc_card *card,
				      struct vc_session *mixed, struct vc_error *err);

/* Replay the alternatives and widen [low, high] of *out; nothing to do when there are none. */
int vc_whatif_interval(const struct vc_session *s, const struct vc_plan *plan,
		       struct vc_result *out, struct vc_error *err);

void vc_whatif_close(struct vc_session *s);

/* "exact", "extrapolated", "bounds", or "unknown": nobody measured a transform that was asked
 * for. */
const char *vc_whatif_level(const struct vc_session *s);

#endif
