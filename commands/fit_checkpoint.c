/* SPDX-License-Identifier: Apache-2.0 */
/* fit_checkpoint.c - fit --find checkpoint: which layers to compute twice so that it fits. */

#include "commands/fit_find.h"
#include "simulator/search/recompute_words.h"

enum { FITS = 0, NEVER = 3, UNDECIDED = 6 };
enum { PROOFS = 6 };

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

/* ---- the program ---- */

/* Really make choice i, on the card. One that cannot be made from outside is not tried. */
static int prove(struct find *f, struct vc_rehearsal *h, size_t i, bool *fits, bool *able,
		 struct vc_error *err)
{
	struct vc_recompute_search *q = &f->search[0];
	const char *change = q->at[i].change;
	const struct vc_list made = { &change, q->at[i].layers ? 1 : 0 };
	struct vc_fit_made ran;

	VC_TRY(vc_recompute_open(q, &f->on.s, i, err));
	int r = vc_fit_make(&f->on, h, h ? h->conf : NULL, &made, &ran, err);
	if (r == VC_EUSAGE) {
		*able = false;
		if (h || f->on.asked.rerun)
			snprintf(f->unproven, sizeof(f->unproven), "%.479s", err->message);
		*err = (struct vc_error){ 0 };
		return VC_OK;
	}
	VC_TRY(r);
	*fits = ran.fits;
	f->proof[f->proofs++] = (struct vc_recompute_proof){
		.at = i, .ran = *fits, .reserved = ran.reserved,
		.inside = ran.used >= q->at[i].low && ran.used <= q->at[i].high };
	return VC_OK;
}

/* From the cheapest that should fit on, each with less memory than the one before, until one
 * really does. */
static int prove_all(void *find, struct vc_rehearsal *h, struct vc_error *err)
{
	struct find *f = find;
	const struct vc_recompute_search *q = &f->search[0];
	uint64_t least = UINT64_MAX;
	bool fits = false, able = !f->unproven[0];

	for (size_t i = q->best; i < q->n && !fits && able && f->proofs < PROOFS; i++) {
		const struct vc_recompute *p = &q->at[i];

		/* layers that go together are not modules that could be wrapped */
		if (p->verdict != VC_FITS || !p->alone || p->used >= least)
			continue;
		least = p->used;
		VC_TRY(prove(f, h, i, &fits, &able, err));
	}
	return VC_OK;
}

static const struct vc_fit_steps steps = { "vramcast.fit-checkpoint/1", begin, search, prove_all,
					   say, code_of, false };

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
