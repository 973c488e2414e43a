/* SPDX-License-Identifier: Apache-2.0 */
/* budget_share.c - see budget_share.h */
#include "commands/budget_share.h"

enum { STEP = 10, LAYERS = 8 }; /* percent */

static int added_by(const struct vc_budget_shares *s, const struct vc_kept *ran,
		    struct vc_budget_added *a, struct vc_error *err)
{
	const struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN,
					      .flags = VC_SESSION_IN_MEMORY };
	struct vc_recording rec = { 0 };
	int r = vc_recording_open(&rec, ran->path, &ask, err);

	if (r == VC_OK)
		r = vc_budget_added(s->plain, &rec, a, err);
	vc_recording_close(&rec);
	return r;
}

static uint64_t filled(const struct vc_kept *ran)
{
	return ran->used - (ran->reserved - ran->allocated);
}

static int try_share(struct vc_budget_shares *s, struct vc_rehearsal *h, uint64_t percent,
		     uint64_t twice, struct vc_error *err)
{
	struct vc_budget_try *t = &s->tried[s->runs];
	struct vc_kept ran;
	struct vc_budget_added added;
	char spec[60];

	if (s->runs == s->most || s->runs == sizeof(s->tried) / sizeof(*s->tried))
		return VC_OK;
	snprintf(spec, sizeof(spec), "{\"share\": %d, \"twice\": %d}", (int)percent,
		 (int)twice);
	h->budget = spec;
	h->conf = s->grows ? s->grown : NULL;
	int r = vc_rehearse(h, &ran, err);
	h->budget = h->conf = NULL;
	VC_TRY(r);
	VC_TRY(added_by(s, &ran, &added, err));
	*t = (struct vc_budget_try){ ran.used, ran.used, added.ns };
	s->way[s->runs].percent = percent;
	s->way[s->runs].twice = twice;
	s->way[s->runs++].filled = filled(&ran);
	s->least = t->used < s->least ? t->used : s->least;
	if (ran.oom || t->used > s->peak || (s->found && t->cost >= s->best.cost))
		return VC_OK;
	s->found = true;
	s->best = *t;
	s->added = added;
	s->percent = percent;
	s->twice = twice;
	s->expandable = s->grows;
	return VC_OK;
}

/* Layers that are computed twice: all of them, then as few as what these free says are enough,
 * evenly spread. */
static int try_layers(struct vc_budget_shares *s, struct vc_rehearsal *h,
		      struct vc_error *err)
{
	uint64_t need = s->whole->used - s->peak, freed;

	int r = try_share(s, h, 100, 100, err);

	if (r < 0 && !vc_is_final(r)) { /* it does not bear that */
		*err = (struct vc_error){ 0 };
		return VC_OK;
	}
	if (r >= 0 && !s->found && *s->grown && s->way[0].filled <= s->peak) {
		s->grows = true; /* only holes are too much */
		r = try_share(s, h, 100, 100, err);
	}
	if (r < 0 || !s->found)
		return r;
	freed = s->whole->used - s->best.used;
	for (uint64_t at = (100 * need + freed - 1) / freed; at < 100 && s->twice == 100;
	     at += LAYERS)
		VC_TRY(try_share(s, h, 100, at, err));
	return VC_OK;
}

/* Shares from above, as what they need and take does not always fall and grow, until two in a row
 * take longer than what was found; and between those beside the best. */
static int try_shares(struct vc_budget_shares *s, struct vc_rehearsal *h, struct vc_error *err)
{
	int slower = 0;

	for (int percent = 100 - STEP; percent >= 0 && s->runs < s->most && slower < 2;
	     percent -= STEP) {
		VC_TRY(try_share(s, h, (uint64_t)percent, 0, err));
		bool now = s->found && s->tried[s->runs - 1].cost > s->best.cost;
		slower = now ? slower + 1 : 0;
		if (s->found && s->added.by == VC_BUDGET_BY_NOTHING)
			break;
	}
	if (!s->found || s->twice)
		return VC_OK;
	uint64_t best = s->percent;

	VC_TRY(try_share(s, h, best + STEP / 2, 0, err));
	return best ? try_share(s, h, best - STEP / 2, 0, err) : VC_OK;
}

/* What would stay below without holes, the least time first, in segments that expand. */
static int try_growing(struct vc_budget_shares *s, struct vc_rehearsal *h,
		       struct vc_error *err)
{
	bool done[sizeof(s->tried) / sizeof(*s->tried)] = { false };
	size_t n = s->runs;

	s->grows = true;
	if (filled(s->whole) <= s->peak)
		VC_TRY(try_share(s, h, 100, 0, err));
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
		VC_TRY(try_share(s, h, s->way[at].percent, s->way[at].twice, err));
	}
	return VC_OK;
}

int vc_budget_shares(struct vc_budget_shares *s, struct vc_rehearsal *h, struct vc_error *err)
{
	s->least = s->best.used = s->best.predicted = s->whole->used;
	s->percent = 100;
	s->found = s->whole->used <= s->peak;
	if (s->found)
		return VC_OK;
	VC_TRY(try_layers(s, h, err));
	s->grows = false;
	VC_TRY(try_shares(s, h, err));
	int r = *s->grown ? try_growing(s, h, err) : VC_OK;

	if (vc_is_final(r))
		return r;
	*err = (struct vc_error){ 0 }; /* a release that does not know them */
	return VC_OK;
}
