/* SPDX-License-Identifier: Apache-2.0 */
/* fit_anything.c - fit --find anything: whatever makes it fit, the cheapest first. */

#include "commands/fit_find.h"
#include "commands/rehearsal.h"
#include "common/vec.h"
#include "simulator/search/anything_words.h"
#include "simulator/search/recompute_words.h"
#include "simulator/time/time.h"

enum { FITS = 0, NEVER = 3, UNDECIDED = 6 };
enum { PROOFS = 3, SPEC = 1 << 14 };
/* Combinations that are replayed; more are weighed without a replay. */
#define MOST 2000u

struct find {
	const struct vc_fit_ask *ask;
	struct vc_session s;
	struct vc_plan *plan; size_t plans;
	struct vc_anything *search; /* one per plan */
	struct vc_any_proof proof[PROOFS]; size_t proofs; /* of the first */
};

static int find_in(void *find, char *path, const struct vc_run_options *opt,
		   struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;
	uint64_t most = f->ask->most < MOST ? f->ask->most : MOST;

	(void)h;
	VC_TRY(vc_session_open(&f->s, opt, 1, &path, VC_SESSION_IN_MEMORY, err));
	VC_TRY(vc_time_open(&f->s, err));
	VC_TRY(vc_session_plans(&f->s, &f->plan, &f->plans, err));
	f->search = calloc(f->plans + 1, sizeof(*f->search));
	VC_HAVE(f->search, "the cards", err);
	for (size_t i = 0; i < f->plans; i++) {
		if (!f->plan[i].capacity)
			return vc_fail(err, VC_EUSAGE,
				       "say what it has to fit on: -g GPU or --capacity SIZE");
		VC_TRY(vc_anything_search(&f->search[i], &f->s, &f->plan[i], most, err));
	}
	return VC_OK;
}

static int say(const void *find, struct vc_error *err)
{
	const struct find *f = find;
	struct vc_emit *e = vc_emit_stdout(f->ask->json, err);

	if (!e)
		return err->status;
	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.fit-anything/1");
	vc_emit_array(e, "cards", "");
	for (size_t i = 0; i < f->plans; i++) {
		vc_emit_object(e, NULL, "");
		vc_anything_say(e, &f->search[i], f->proof, i ? 0 : f->proofs);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
	return vc_emit_done(e, err);
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
		if (k == l->n || !vc_recompute_spec(l, f->s.rec->meta, k, spec, SPEC))
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
			struct vc_rehearsed ran;
			bool layers;

			if (!outside(f, c, conf, sizeof(conf), spec, &layers))
				continue;
			h->conf = conf[0] ? conf : NULL;
			h->recompute = layers ? spec : NULL;
			r = vc_rehearse(h, (unsigned)f->proofs + 1, &ran, err);
			if (r < 0 || (layers && (!ran.applied || ran.odd)))
				continue;
			uint64_t used = ran.reserved + vc_plan_beside(&q->plan);
			f->proof[f->proofs++] = (struct vc_any_proof){
				.effect = (enum vc_any_effect)k, .at = i,
				.fits = !ran.ooms && !ran.flushes, .reserved = ran.reserved,
				.inside = used >= c->low && used <= c->high };
		}
	free(spec);
	return r;
}

static const struct vc_fit_steps steps = { find_in, prove, say, code_of };

static int find_anything(const struct vc_fit_ask *ask, size_t argc, char **argv,
			 struct vc_console *con)
{
	struct find f = { .ask = ask };
	int r = vc_fit_take(&steps, &f, ask, argc, argv, con);

	for (size_t i = 0; f.search && i < f.plans; i++)
		vc_anything_fini(&f.search[i]);
	VC_FREE(f.search, f.plan);
	vc_session_close(&f.s);
	return r;
}

const struct vc_fit_find vc_fit_anything = { .name = "anything", .run = find_anything };
