/* SPDX-License-Identifier: Apache-2.0 */
/* advice.h - after an out-of-memory or a thrash: the cheapest changes that would have made it
 * fit, each one simulated; with room to spare: how much larger the batch may be; with none: why
 * that is risky. */
#pragma once

#include "simulator/replay/transform.h"
#include "simulator/session/session.h"

#define VC_ADVICE_MOST 8

struct vc_advice {
	const char *kind;      /* "conf", "code", "batch", "hardware", "room", "risk" */
	char text[256];        /* what to do */
	char paste[256];       /* the line to paste into a shell or the program, "" = none */
	char how[192];         /* the options that simulate it, "" = none */
	bool estimate;         /* what it rests on is not in the recording, or is a bound */
	uint64_t peak_reserved, flushes;
	bool has_interval; uint64_t low, high; /* of peak_reserved */
	uint64_t at_least, at_most; /* "room": the largest batch lies between them; else 0 */
	enum vc_verdict verdict;
	double times;          /* so many times as long as it takes now, a step or, where the batch
				* is another, a sample; 0: unknown */
	struct vc_result *run; /* where the listener keeps them: the caller's; else NULL */
};

/* Hears, before each change is tried, how many of `all` were; all is 0 where it is the batch that
 * is searched. `keep`: the runs that help are wanted, each with its curve. `tell` may be NULL. */
struct vc_advice_listener {
	bool keep;
	void (*tell)(struct vc_advice_listener *l, size_t done, size_t all);
};

/* Try the changes in order of cost until VC_ADVICE_MOST of them make the run fit (or end the
 * flushes). `r` is the run as it is. When it fits: one entry below 70 % of the card, or from 99 %
 * on. Returns their number; a change that cannot be simulated on this trace is left out. 0 when
 * the trace is too long to be replayed again and again. `heard` may be NULL. */
size_t vc_advise(const struct vc_session *s, const struct vc_plan *p, const struct vc_result *r,
		 struct vc_advice_listener *heard, struct vc_advice out[VC_ADVICE_MOST]);

/* The i-th change that is one of settings; NULL: there are no more. */
const struct vc_remedy *vc_advice_setting(size_t i);
/* What the recording shows, of enum vc_trait. */
unsigned vc_advice_traits(const struct vc_session *s);

/* ---- advice_batch.c: the same run at other batches ---- */

/* Does it surely fit, with all that is open grown; or possibly, with none of it? */
enum vc_wanted { VC_SURELY, VC_POSSIBLY };

/* What a search found out about one value, for the next one: of each vc_wanted 0: nobody asked. */
struct vc_batch_seen { double value; enum { VC_NOT_ASKED, VC_IT_FITS, VC_IT_FAILS } fits[2]; };

struct vc_batch {
	const struct vc_session *base; /* can be asked for other values: another's, or ... */
	struct vc_session own;         /* ... this one */
	char name[64];             /* of the parameter */
	double value;              /* of the run in question */
	struct vc_session at;      /* the run at the value last asked for */
	bool open, at_open, owned;
	const struct vc_observer_type *const *watch; /* of the runs below, or NULL */
	struct vc_batch_seen *seen;
	size_t seen_n;
};

/* Finds the parameter that is a batch size (recorded, or asked for with --set) and opens the
 * recordings for it. VC_ENOSUP: there is none, or the recording cannot be read twice. Closed with
 * vc_batch_close. */
int vc_batch_open(struct vc_batch *b, const struct vc_session *s, struct vc_error *err);
/* The session at that value, which the caller closes before b. */
int vc_batch_at(const struct vc_batch *b, double value, struct vc_session *out,
		struct vc_error *err);
/* Runs it at `value` with one more transform (or NULL); its interval is found out only where its
 * verdict is better than `than`. On success the caller owns *out. */
int vc_batch_run(struct vc_batch *b, const struct vc_plan *p, double value, const char *transform,
		 enum vc_verdict than, struct vc_result *out, struct vc_error *err);

/* Does the plan fit at that value? Nobody watches. */
int vc_batch_fits(struct vc_batch *b, const struct vc_plan *p, double value, enum vc_wanted wanted,
		  bool *fits, struct vc_error *err);
/* The run in question is known to vc_batch_fits, where the session is that of b. */
void vc_batch_known(struct vc_batch *b, const struct vc_session *s, const struct vc_plan *p,
		    const struct vc_result *r);

/* How it ends: of a run whose end is not recorded, as far as it is. */
enum vc_verdict vc_advice_ending(const struct vc_result *r);

/* A replay, and its interval where its verdict is better than `than`: what does not help need not
 * be known so well. On success the caller owns *out. */
int vc_advice_run(const struct vc_session *s, const struct vc_plan *p, enum vc_verdict than,
		  const struct vc_observer_type *const *watch, struct vc_result *out,
		  struct vc_error *err);
void vc_batch_close(struct vc_batch *b);
