/* SPDX-License-Identifier: Apache-2.0 */
/* epoch.c - see epoch.h */
#include "simulator/search/epoch.h"

#include "common/vec.h"

static uint64_t longest(const struct vc_samples *s) { return s->at[s->n - 1].length; }

uint64_t vc_epoch_steps(const struct vc_epoch_ask *ask)
{
	uint64_t n = ask->samples->samples, b = ask->batch;

	return ask->drop_last ? n / b : n / b + (n % b != 0);
}

/* ---- how long a sample may be ---- */

static int at_lengths(struct vc_fit *f, struct vc_fit_card *c, const uint64_t *among, size_t n,
		      struct vc_error *err)
{
	f->among = among;
	f->amongs = n;
	return vc_fit_search(f, c, err);
}

/* Every length is a candidate; the longest is looked at whatever the search needs. */
static int search_lengths(const struct vc_epoch_ask *ask, struct vc_fit *f, struct vc_epoch_card *c,
			  struct vc_error *err)
{
	const struct vc_samples *s = ask->samples;
	uint64_t most = longest(s), *among = calloc(s->n, sizeof(*among));
	struct vc_fit_card *one = calloc(1, sizeof(*one));
	int r = among && one ? VC_OK : vc_nomem(err, "the lengths");

	if (r == VC_OK) {
		for (size_t i = 0; i < s->n; i++)
			among[i] = s->at[i].length;
		one->plan = c->fit.plan;
		r = at_lengths(f, one, &most, 1, err);
	}
	if (r == VC_OK) {
		c->worst = *vc_fit_at(one, most);
		c->verdict = vc_fit_verdict(one, &c->worst);
		r = at_lengths(f, &c->fit, among, s->n, err);
	}
	if (r == VC_OK) {
		c->sure = c->fit.surely;
		c->maybe = c->fit.perhaps > c->sure ? c->fit.perhaps : c->sure;
		if (c->fit.flushing > c->maybe) /* slow, but it does not run out */
			c->maybe = c->fit.flushing;
		c->fit.level = one->level; /* of the longest, not of a recorded length */
		c->fit.narrow = one->narrow;
		memcpy(c->fit.trust, one->trust, sizeof(c->fit.trust));
	}
	if (one)
		vc_fit_card_fini(one);
	f->among = NULL;
	VC_FREE(among, one);
	return r;
}

/* ---- chances ---- */

/* Chance that a sample longer than allowed is drawn in so many steps. */
static double by_step(const struct vc_epoch_ask *ask, uint64_t over, uint64_t steps)
{
	uint64_t n = ask->samples->samples, all = vc_epoch_steps(ask);
	uint64_t drawn = steps >= all ? (ask->drop_last ? all * ask->batch : n) :
					steps * ask->batch;

	return vc_samples_chance(ask->samples, over, drawn < n ? drawn : n);
}

static uint64_t half_over(const struct vc_epoch_ask *ask, uint64_t over)
{
	uint64_t low = 0, high = vc_epoch_steps(ask);

	if (by_step(ask, over, high) < 0.5)
		return 0;
	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;

		if (by_step(ask, over, mid) < 0.5)
			low = mid;
		else
			high = mid;
	}
	return high;
}

static void chances(const struct vc_epoch_ask *ask, struct vc_epoch_card *c)
{
	const uint64_t fits[2] = { c->maybe, c->sure };

	for (int i = 0; i < 2; i++) {
		c->over[i] = vc_samples_over(ask->samples, fits[i], &c->cut[i]);
		c->step[i] = by_step(ask, c->over[i], 1);
		c->epoch[i] = by_step(ask, c->over[i], vc_epoch_steps(ask));
	}
	c->half = half_over(ask, c->over[1]);
}

/* ---- tokens of a batch ---- */

/* Lengths of the data, growing by about the same factor; the shortest and the longest are there. */
static size_t few_lengths(const struct vc_samples *s, uint64_t out[VC_EPOCH_LENGTHS])
{
	size_t n = 0, at = 0;
	double low = (double)s->at[0].length;
	double factor = pow((double)longest(s) / low, 1.0 / (VC_EPOCH_LENGTHS - 1));

	for (int i = 0; i < VC_EPOCH_LENGTHS - 1; i++, low *= factor) {
		while ((double)s->at[at].length < low)
			at++;
		if (!n || out[n - 1] != s->at[at].length)
			out[n++] = s->at[at].length;
	}
	if (!n || out[n - 1] != longest(s))
		out[n++] = longest(s);
	return n;
}

/* The shortest sample that is longer than `length`. */
static uint64_t behind(const struct vc_samples *s, uint64_t length)
{
	size_t i = 0;

	while (s->at[i].length <= length)
		i++;
	return s->at[i].length;
}

/* With a budget of T tokens a batch has T / length samples, of its longest length. Between two
 * lengths that were looked at, more samples than fit at the longer one are not taken to fit, and
 * most of them come at the shortest: T stays below (most + 1) * shortest. */
static int search_budget(const struct vc_epoch_ask *ask, const struct vc_fit *f,
			 struct vc_epoch_card *c, struct vc_error *err)
{
	struct vc_param_value also[VC_WHATIF_PARAMS];
	uint64_t at[VC_EPOCH_LENGTHS];
	size_t n = few_lengths(ask->samples, at), held = 0;
	struct vc_fit_card *one = calloc(1, sizeof(*one));
	int r = one ? VC_OK : vc_nomem(err, "the batches");

	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->also[i].name, "batch") && held < VC_WHATIF_PARAMS - 1)
			also[held++] = f->also[i];
	for (size_t i = 0; r == VC_OK && i < n; i++) {
		struct vc_fit of = { .base = f->base, .key = "batch", .also = also, .n = held + 1,
				     .unit = 1, .most = UINT64_C(1) << 20, .high = 1 };
		uint64_t least = i ? behind(ask->samples, at[i - 1]) : at[0];

		also[held] = (struct vc_param_value){ (char *)ask->key, (double)at[i] };
		*one = (struct vc_fit_card){ .plan = c->fit.plan };
		r = vc_fit_search(&of, one, err);
		uint64_t most[2] = { one->surely, one->perhaps };

		for (int k = 0; r == VC_OK && k < 2; k++) {
			uint64_t tokens = (most[k] + 1) * least - 1;

			if (!c->budget[k] || tokens < c->budget[k]) {
				c->budget[k] = tokens;
				c->budget_at = k ? c->budget_at : least;
			}
		}
		vc_fit_forget(&of);
		vc_fit_card_fini(one);
	}
	free(one);
	return r;
}

int vc_epoch_search(const struct vc_epoch_ask *ask, struct vc_fit *f, struct vc_epoch_card *c,
		    struct vc_error *err)
{
	f->high = 1;
	VC_TRY(search_lengths(ask, f, c, err));
	chances(ask, c);
	return ask->budget ? search_budget(ask, f, c, err) : VC_OK;
}
