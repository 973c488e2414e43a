/* SPDX-License-Identifier: Apache-2.0 */
/* budget_share.c - see budget_share.h */
#include "commands/budget_share.h"

#include "simulator/search/budget_times.h"

enum { STEP = 20, FINEST = 5, LAYERS = 8 }; /* percent */

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

static uint64_t filled(const struct vc_kept *ran)
{
	return ran->used - (ran->reserved - ran->allocated);
}

static int try_share(struct vc_budget_shares *s, struct vc_rehearsal *h, uint64_t percent,
		     uint64_t twice, double all, struct vc_error *err)
{
	struct vc_budget_try *t = &s->tried[s->runs];
	struct vc_kept ran;
	char spec[60];
	double ns;

	if (s->runs == s->most || s->runs == sizeof(s->tried) / sizeof(*s->tried))
		return VC_OK;
	snprintf(spec, sizeof(spec), "{\"share\": %d, \"twice\": %d}", (int)percent,
		 (int)twice);
	h->budget = spec;
	h->conf = s->grows ? s->grown : NULL;
	int r = vc_rehearse(h, &ran, err);
	h->budget = h->conf = NULL;
	VC_TRY(r);
	VC_TRY(time_of(&ran, &ns, err));
	*t = (struct vc_budget_try){ ran.used, ran.used, ns > all ? ns - all : 0 };
	s->way[s->runs].percent = percent;
	s->way[s->runs].twice = twice;
	s->way[s->runs++].filled = filled(&ran);
	s->least = t->used < s->least ? t->used : s->least;
	if (ran.oom || t->used > s->peak || (s->found && t->cost >= s->best.cost))
		return VC_OK;
	s->found = true;
	s->best = *t;
	s->percent = percent;
	s->twice = twice;
	s->expandable = s->grows;
	return VC_OK;
}

/* Layers that are computed twice: all of them, then as few as what these free says are enough,
 * evenly spread. */
static int try_layers(struct vc_budget_shares *s, struct vc_rehearsal *h, double all,
		      struct vc_error *err)
{
	uint64_t need = s->whole->used - s->peak, freed;

	int r = try_share(s, h, 100, 100, all, err);

	if (r < 0 && r != VC_ENOMEM) { /* it does not bear that */
		*err = (struct vc_error){ 0 };
		return VC_OK;
	}
	if (r >= 0 && !s->found && *s->grown && s->way[0].filled <= s->peak) {
		s->grows = true; /* only holes are too much */
		r = try_share(s, h, 100, 100, all, err);
	}
	if (r < 0 || !s->found)
		return r;
	freed = s->whole->used - s->best.used;
	for (uint64_t at = (100 * need + freed - 1) / freed; at < 100 && s->twice == 100;
	     at += LAYERS)
		VC_TRY(try_share(s, h, 100, at, all, err));
	return VC_OK;
}

/* Shares from above until one stays below or takes longer than what was found; above that one,
 * where that is not all of it. */
static int try_shares(struct vc_budget_shares *s, struct vc_rehearsal *h, double all,
		      struct vc_error *err)
{
	for (int percent = 100 - STEP; percent >= 0 && s->runs < s->most; percent -= STEP) {
		VC_TRY(try_share(s, h, (uint64_t)percent, 0, all, err));
		if (s->found && (!s->twice || s->tried[s->runs - 1].cost >= s->best.cost))
			break;
	}
	for (uint64_t by = STEP / 2; s->found && !s->twice && by >= FINEST; by /= 2)
		VC_TRY(try_share(s, h, s->percent + by, 0, all, err));
	return VC_OK;
}

/* What would stay below without holes, the least time first, in segments that expand. */
static int try_growing(struct vc_budget_shares *s, struct vc_rehearsal *h, double all,
		       struct vc_error *err)
{
	bool done[sizeof(s->tried) / sizeof(*s->tried)] = { false };
	size_t n = s->runs;

	s->grows = true;
	if (filled(s->whole) <= s->peak)
		VC_TRY(try_share(s, h, 100, 0, all, err));
	while (s->runs < s->most && !s->expandable) {
		size_t at = n;

		for (size_t i = 0; i < n; i++)
			if (!done[i] && s->way[i].filled <= s->peak &&
			    (!s->found || s->tried[i].cost < s->best.cost) &&
			    (at == n || s->tried[i].cost < s->tried[at].cost))
				at = i;
		if (at == n)
			break;
		done[at] = true;
		VC_TRY(try_share(s, h, s->way[at].percent, s->way[at].twice, all, err));
	}
	return VC_OK;
}

int vc_budget_shares(struct vc_budget_shares *s, struct vc_rehearsal *h, struct vc_error *err)
{
	double all;

	s->least = s->best.used = s->best.predicted = s->whole->used;
	s->percent = 100;
	s->found = s->whole->used <= s->peak;
	if (s->found)
		return VC_OK;
	VC_TRY(time_of(s->whole, &all, err));
	VC_TRY(try_layers(s, h, all, err));
	s->grows = false;
	VC_TRY(try_shares(s, h, all, err));
	int r = *s->grown ? try_growing(s, h, all, err) : VC_OK;

	if (r == VC_ENOMEM)
		return r;
	*err = (struct vc_error){ 0 }; /* a release that does not know them */
	return VC_OK;
}
