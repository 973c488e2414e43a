/* SPDX-License-Identifier: Apache-2.0 */
/* budget_share.c - see budget_share.h */
#include "commands/budget_share.h"

#include "simulator/search/budget_times.h"

enum { STEP = 20, FINEST = 5 }; /* percent */

static int time_of(const struct vc_kept *ran, double *ns, struct vc_error *err)
{
	const struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN,
					      .flags = VC_SESSION_IN_MEMORY };
	struct vc_recording rec = { 0 };
	int r = vc_recording_open(&rec, ran->path, &ask, err);

	if (r == VC_OK)
		r = vc_budget_step(&rec, ns, err);
	vc_recording_close(&rec);
	return r;
}

static int try_share(struct vc_budget_shares *s, struct vc_rehearsal *h, uint64_t percent,
		     double all, struct vc_error *err)
{
	struct vc_budget_try *t = &s->tried[s->runs];
	struct vc_kept ran;
	char spec[40];
	double ns;

	if (s->runs == s->most || s->runs == sizeof(s->tried) / sizeof(*s->tried))
		return VC_OK;
	snprintf(spec, sizeof(spec), "{\"share\": %d}", (int)percent);
	h->budget = spec;
	int r = vc_rehearse(h, &ran, err);
	h->budget = NULL;
	VC_TRY(r);
	VC_TRY(time_of(&ran, &ns, err));
	*t = (struct vc_budget_try){ ran.used, ran.used, ns > all ? ns - all : 0 };
	s->runs++;
	s->least = t->used < s->least ? t->used : s->least;
	if (ran.oom || t->used > s->peak || (s->found && t->cost >= s->best.cost))
		return VC_OK;
	s->found = true;
	s->best = *t;
	s->percent = percent;
	return VC_OK;
}

int vc_budget_shares(struct vc_budget_shares *s, struct vc_rehearsal *h, struct vc_error *err)
{
	double all;

	s->least = s->best.used = s->best.predicted = s->whole->used;
	s->percent = 100;
	s->found = s->whole->used <= s->peak;
	VC_TRY(time_of(s->whole, &all, err));
	for (int percent = 100 - STEP; !s->found && percent >= 0; percent -= STEP)
		VC_TRY(try_share(s, h, (uint64_t)percent, all, err));
	/* Above the first that stays below, where that is not all of it. */
	for (uint64_t by = STEP / 2; s->found && s->runs && by >= FINEST; by /= 2)
		VC_TRY(try_share(s, h, s->percent + by, all, err));
	return VC_OK;
}
