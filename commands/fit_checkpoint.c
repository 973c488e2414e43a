/* SPDX-License-Identifier: Apache-2.0 */
/* fit_checkpoint.c - fit --find checkpoint: which layers to compute twice so that it fits. */

#include "commands/fit_find.h"
#include "simulator/search/recompute_words.h"

enum { FITS = 0, NEVER = 3, UNDECIDED = 6 };
enum { PROOFS = 6, SPEC = 1 << 14 };

struct find {
	struct vc_fit_on on;
	const char *seen; /* a recording with all layers computed twice, or NULL */
	struct vc_recompute_search *search; /* one per plan */
	struct vc_recompute_proof proof[PROOFS]; size_t proofs; /* of the first */
	char unproven[480]; /* why there is no proof; "": there is, or none was asked for */
};

static int begin(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;

	if (h && f->on.plans)
		VC_TRY(vc_rehearse_layers(h, &f->on.s, f->on.plan, f->unproven,
					  sizeof(f->unproven), err));
	f->seen = h && h->seen[0] ? h->seen : NULL;
	f->search = calloc(f->on.plans + 1, sizeof(*f->search));
	return f->search ? VC_OK : vc_nomem(err, "the cards");
}

static int search(void *find, size_t card, struct vc_error *err)
{
	struct find *f = find;

	return vc_recompute_search(&f->search[card], &f->on.s, &f->on.plan[card], f->seen, err);
}

static void say(const void *find, size_t card, struct vc_emit *e)
{
	const struct find *f = find;

	vc_recompute_say(e, &f->search[card], f->on.s.rec->meta, f->proof, card ? 0 : f->proofs);
	vc_emit_text(e, "unproven", NULL, f->unproven[0] ? f->unproven : NULL);
	if (f->unproven[0])
		vc_emit_line(e, "  not proven: %s", f->unproven);
}

static int code_of(const void *find)
{
	const struct find *f = find;
	const struct vc_recompute_search *q = &f->search[0];

	if (f->proofs)
		return vc_recompute_advised(q, f->proof, f->proofs) != SIZE_MAX ? FITS : NEVER;
	return q->best == SIZE_MAX ? NEVER : q->sure == SIZE_MAX ? UNDECIDED : FITS;
}

/* ---- a program ---- */

/* A choice that cannot be made from outside of the program is not tried. */
static int unproven(struct find *f, struct vc_error *err)
{
	snprintf(f->unproven, sizeof(f->unproven), "%.479s", err->message);
	*err = (struct vc_error){ 0 };
	return VC_OK;
}

/* Really make choice i, on the card. */
static int prove(struct find *f, struct vc_rehearsal *h, size_t i, char *spec, bool *fits,
		 struct vc_error *err)
{
	struct vc_recompute_search *q = &f->search[0];
	struct vc_kept ran;

	h->recompute = q->at[i].layers ? spec : NULL;
	if (q->at[i].layers && !vc_recompute_spec(q, f->on.s.rec->meta, i, spec, SPEC)) {
		snprintf(f->unproven, sizeof(f->unproven), "%s: which modules these layers are "
			 "is not known from outside of the program", q->at[i].change);
		return VC_OK;
	}
	VC_TRY(vc_recompute_open(q, &f->on.s, i, err));
	if (vc_rehearse(h, &ran, err) == VC_EUSAGE)
		return unproven(f, err);
	VC_TRY((int)err->status);
	uint64_t used = ran.reserved + vc_plan_beside(&q->plan);
	*fits = !ran.oom && !ran.flushes;
	f->proof[f->proofs++] = (struct vc_recompute_proof){
		.at = i, .ran = *fits, .reserved = ran.reserved,
		.inside = used >= q->at[i].low && used <= q->at[i].high };
	return VC_OK;
}

/* From the cheapest that should fit on, each with less memory than the one before, until one
 * really does. */
static int prove_all(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;
	const struct vc_recompute_search *q = &f->search[0];
	char *spec = malloc(SPEC);
	uint64_t least = UINT64_MAX;
	bool fits = false;
	int r = spec ? VC_OK : vc_nomem(err, "a choice of layers");

	for (size_t i = q->best; r == VC_OK && i < q->n && !fits && !f->unproven[0]; i++) {
		const struct vc_recompute *p = &q->at[i];

		if (f->proofs == PROOFS)
			break;
		/* layers that go together are not modules that could be wrapped */
		if (p->verdict != VC_FITS || !p->alone || p->used >= least)
			continue;
		least = p->used;
		r = prove(f, h, i, spec, &fits, err);
	}
	free(spec);
	return r;
}

static const struct vc_fit_steps steps = { "vramcast.fit-checkpoint/1", begin, search, prove_all,
					   say, code_of };

static int find_checkpoint(const struct vc_fit_ask *ask, size_t argc, char **argv,
			   struct vc_console *con)
{
	struct find f = { .on.ask = ask };
	int r = vc_fit_take(&steps, &f, argc, argv, con);

	for (size_t i = 0; f.search && i < f.on.plans; i++)
		vc_recompute_fini(&f.search[i]);
	free(f.search);
	vc_fit_left(&f.on);
	return r;
}

const struct vc_fit_find vc_fit_checkpoint = { .name = "checkpoint", .run = find_checkpoint };
