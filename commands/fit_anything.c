/* SPDX-License-Identifier: Apache-2.0 */
/* fit_anything.c - fit --find anything: whatever makes it fit, the cheapest first. */

#include "commands/fit_find.h"
#include "simulator/search/anything_words.h"
#include "simulator/search/recompute_words.h"

enum { FITS = 0, NEVER = 3, UNDECIDED = 6 };
enum { PROOFS = 3, SPEC = 1 << 14 };
/* Combinations that are replayed; more are weighed without a replay. */
#define MOST 2000u

struct find {
	struct vc_fit_on on;
	struct vc_anything *search; /* one per plan */
	struct vc_any_proof proof[PROOFS]; size_t proofs; /* of the first */
};

static int begin(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;

	f->search = calloc(f->on.plans + 1, sizeof(*f->search));
	return f->search ? VC_OK : vc_nomem(err, "the cards");
}

static int search(void *find, size_t card, struct vc_error *err)
{
	struct find *f = find;
	uint64_t most = f->on.ask->most < MOST ? f->on.ask->most : MOST;

	return vc_anything_search(&f->search[card], &f->on.s, &f->on.plan[card], most, err);
}

static void say(const void *find, size_t card, struct vc_emit *e)
{
	const struct find *f = find;

	vc_anything_say(e, &f->search[card], f->proof, card ? 0 : f->proofs);
}

static int code_of(const void *find)
{
	const struct find *f = find;
	const struct vc_anything *q = &f->search[0];
	int code = q->verdict == VC_FITS ? FITS : NEVER;

	for (int k = 0; k < VC_ANY_EFFECTS; k++)
		for (size_t i = 0; i < q->n[k]; i++)
			code = q->found[k][i].sure == VC_FITS ? FITS :
			       code == NEVER ? UNDECIDED : code;
	for (size_t i = 0; i < f->proofs; i++)
		code = f->proof[i].fits ? FITS : code;
	return code;
}

/* ---- a program ---- */

/* Settings and layers are what can be changed from outside of a program. */
static bool outside(const struct find *f, const struct vc_any_found *c, char *conf, size_t n,
		    char *spec, bool *layers)
{
	const struct vc_anything *q = &f->search[0];
	const struct vc_recompute_search *l = &q->layers;

	snprintf(conf, n, "%s", q->plan.conf);
	*layers = false;
	for (size_t i = 0; i < q->axes; i++) {
		const struct vc_any_way *w = c->pick[i] ? &q->axis[i].at[c->pick[i] - 1] : NULL;
		size_t len = strlen(conf), k = 0;

		if (!w)
			continue;
		if (w->setting) {
			snprintf(conf + len, n - len, "%s%s", len ? "," : "", w->change);
			continue;
		}
		while (k < l->n && strcmp(l->at[k].change, w->change))
			k++;
		if (k == l->n || !vc_recompute_spec(l, f->on.s.rec->meta, k, spec, SPEC))
			return false;
		*layers = true;
	}
	return true;
}

static int prove(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;
	const struct vc_anything *q = &f->search[0];
	char conf[512], *spec = malloc(SPEC);
	int r = spec ? VC_OK : vc_nomem(err, "a choice of layers");

	for (int k = 0; k < VC_ANY_EFFECTS; k++)
		for (size_t i = 0; r == VC_OK && i < q->n[k] && f->proofs < PROOFS; i++) {
			const struct vc_any_found *c = &q->found[k][i];
			struct vc_kept ran;
			bool layers;

			if (!outside(f, c, conf, sizeof(conf), spec, &layers))
				continue;
			h->conf = conf[0] ? conf : NULL;
			h->recompute = layers ? spec : NULL;
			r = vc_rehearse(h, &ran, err);
			if (r == VC_EUSAGE) { /* not from outside */
				*err = (struct vc_error){ 0 };
				r = VC_OK;
				continue;
			}
			if (r < 0)
				continue;
			uint64_t used = ran.reserved + vc_plan_beside(&q->plan);
			f->proof[f->proofs++] = (struct vc_any_proof){
				.effect = (enum vc_any_effect)k, .at = i,
				.fits = !ran.oom && !ran.flushes, .reserved = ran.reserved,
				.inside = used >= c->low && used <= c->high };
		}
	free(spec);
	return r;
}

static const struct vc_fit_steps steps = { "vramcast.fit-anything/1", begin, search, prove, say,
					   code_of };

static int find_anything(const struct vc_fit_ask *ask, size_t argc, char **argv,
			 struct vc_console *con)
{
	struct find f = { .on.ask = ask };
	int r = vc_fit_take(&steps, &f, argc, argv, con);

	for (size_t i = 0; f.search && i < f.on.plans; i++)
		vc_anything_fini(&f.search[i]);
	free(f.search);
	vc_fit_left(&f.on);
	return r;
}

const struct vc_fit_find vc_fit_anything = { .name = "anything", .run = find_anything };
