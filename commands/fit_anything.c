/* SPDX-License-Identifier: Apache-2.0 */
/* fit_anything.c - fit --find anything: whatever makes it fit, the cheapest first. */

#include "commands/fit_find.h"
#include "simulator/search/anything_words.h"
#include "simulator/replay/transform.h"

enum { FITS = 0, NEVER = 3, UNDECIDED = 6 };
enum { PROOFS = 4 };
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

/* ---- the program ---- */

/* Its changes as -x names them; settings stand in conf. False: some cannot be made from outside. */
static bool outside(const struct find *f, const struct vc_any_found *c, char *conf, size_t n,
		    const char *change[VC_ANY_AXES], struct vc_list *made)
{
	const struct vc_anything *q = &f->search[0];

	snprintf(conf, n, "%s", q->plan.conf);
	*made = (struct vc_list){ change, 0 };
	for (size_t i = 0; i < q->axes; i++) {
		const struct vc_any_way *w = c->pick[i] ? &q->axis[i].at[c->pick[i] - 1] : NULL;
		struct vc_transform_use u;
		struct vc_error ignored;
		size_t len = strlen(conf);

		if (w && w->setting)
			snprintf(conf + len, n - len, "%s%s", len ? "," : "", w->change);
		else if (w && (w->parts || vc_transform_parse(&u, w->change, &ignored) < 0 ||
			       vc_transform_unmade(&u)))
			return false;
		else if (w)
			change[made->n++] = w->change;
	}
	return true;
}

static int prove_one(struct find *f, struct vc_rehearsal *h, int k, size_t i, struct vc_error *err)
{
	const struct vc_anything *q = &f->search[0];
	const struct vc_any_found *c = &q->found[k][i];
	const char *change[VC_ANY_AXES];
	struct vc_list made;
	struct vc_fit_made ran;
	char conf[512];

	if (!outside(f, c, conf, sizeof(conf), change, &made))
		return VC_OK;
	int r = vc_fit_make(&f->on, h, conf[0] ? conf : NULL, &made, &ran, err);
	if (r == VC_EUSAGE) { /* not from outside */
		*err = (struct vc_error){ 0 };
		return VC_OK;
	}
	VC_TRY(r);
	f->proof[f->proofs++] = (struct vc_any_proof){
		.effect = (enum vc_any_effect)k, .at = i,
		.fits = ran.fits, .reserved = ran.reserved,
		.inside = ran.used >= c->low && ran.used <= c->high };
	return VC_OK;
}

/* The first of each effect, and the next one where that does not really fit. */
static int prove(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;
	bool fits[VC_ANY_EFFECTS] = { false };

	for (size_t i = 0; i < VC_ANY_FOUND; i++)
		for (int k = 0; k < VC_ANY_EFFECTS; k++) {
			size_t n = f->proofs;

			if (fits[k] || i >= f->search->n[k] || n == PROOFS)
				continue;
			VC_TRY(prove_one(f, h, k, i, err));
			fits[k] = f->proofs > n && f->proof[n].fits;
		}
	return VC_OK;
}

static const struct vc_fit_steps steps = { "vramcast.fit-anything/1", begin, search, prove, say,
					   code_of, false };

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
