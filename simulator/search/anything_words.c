/* SPDX-License-Identifier: Apache-2.0 */
/* anything_words.c - see anything_words.h */
#include "simulator/search/anything_words.h"

static const char *const key[] = {
	[VC_ANY_SAME] = "nothing", [VC_ANY_ROUNDING] = "rounding",
	[VC_ANY_PRECISION] = "precision", [VC_ANY_OTHER] = "training", [VC_ANY_CARDS] = "cards",
};
static const char *const title[] = {
	[VC_ANY_SAME] = "Results stay as they are",
	[VC_ANY_ROUNDING] = "Sums come in another order: results differ by rounding",
	[VC_ANY_PRECISION] = "Other arithmetic: check the loss",
	[VC_ANY_OTHER] = "Training goes another way",
	[VC_ANY_CARDS] = "More cards",
};

static const char *time_text(const struct vc_any_found *f, char *buf, size_t n)
{
	double percent = 100 * (f->factor - 1);

	snprintf(buf, n, "%s%+.*f %% time%s", f->timed ? "" : "about ", fabs(percent) < 10,
		 percent,
		 f->timed ? "" : " (guessed)");
	return buf;
}

static const struct vc_any_proof *proof_of(const struct vc_any_proof *p, size_t n,
					   enum vc_any_effect effect, size_t at)
{
	for (size_t i = 0; i < n; i++)
		if (p[i].effect == effect && p[i].at == at)
			return &p[i];
	return NULL;
}

static void say_way(struct vc_emit *e, const struct vc_any_way *w)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "change", NULL, w->change);
	vc_emit_bool(e, "setting", NULL, w->setting);
	vc_emit_text(e, "text", NULL, w->text);
	vc_emit_text(e, "paste", NULL, w->paste[0] ? w->paste : NULL);
	vc_emit_end(e);
}

static void say_found(struct vc_emit *e, const struct vc_anything *q,
		      const struct vc_any_found *f, const struct vc_any_proof *p)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_real(e, "time_factor", NULL, round(1e4 * f->factor) / 1e4);
	vc_emit_bool(e, "time_known", NULL, f->timed);
	vc_emit_uint(e, "peak_reserved", NULL, f->reserved);
	vc_emit_uint(e, "used", NULL, f->used);
	vc_emit_uint(e, "used_low", NULL, f->low);
	vc_emit_uint(e, "used_high", NULL, f->high);
	vc_emit_bool(e, "sure", NULL, f->sure == VC_FITS);
	vc_emit_bool(vc_emit_known(e, p), "proven", NULL, p && p->fits);
	vc_emit_array(e, "changes", NULL);
	for (size_t i = 0; i < q->axes; i++)
		if (f->pick[i])
			say_way(e, &q->axis[i].at[f->pick[i] - 1]);
	vc_emit_end(e);
	vc_emit_end(e);
}

static void tell_found(struct vc_emit *e, const struct vc_anything *q,
		       const struct vc_any_found *f, const struct vc_any_proof *p)
{
	char t[64], u[32], low[32], high[32], r[32], text[1024];

	vc_emit_line(e, "  %-22s %s used (%s .. %s)%s  %s", time_text(f, t, sizeof(t)),
		     vc_bytes_text(f->used, u), vc_bytes_text(f->low, low),
		     vc_bytes_text(f->high, high),
		     f->sure == VC_FITS ? ", surely" : ", perhaps", vc_any_text(q, f, text,
									     sizeof(text)));
	if (p)
		vc_emit_line(e, "    really done in a dry run: %s, %s reserved%s",
			     p->fits ? "fits" : "does not fit", vc_bytes_text(p->reserved, r),
			     p->inside ? "" : ", outside the interval");
}

static void tell_pastes(struct vc_emit *e, const struct vc_anything *q,
			const struct vc_any_found *f)
{
	for (size_t i = 0; i < q->axes; i++) {
		const struct vc_any_way *w = f->pick[i] ? &q->axis[i].at[f->pick[i] - 1] : NULL;

		if (w && w->paste[0])
			vc_emit_line(e, "      %s\n        %s", w->text, w->paste);
		else if (w)
			vc_emit_line(e, "      %s", w->text);
	}
}

static void tell(struct vc_emit *e, const struct vc_anything *q, const struct vc_any_proof *proof,
		 size_t proofs)
{
	char r[32], c[32];
	bool any = false;

	vc_emit_line(e, "%s", q->plan.card ? q->plan.card->title : "the given capacity");
	if (q->verdict == VC_FITS) {
		vc_emit_line(e, "  it fits as it is: %s reserved", vc_bytes_text(q->reserved, r));
		return;
	}
	vc_emit_line(e, "  as it is               %s reserved, %s on the card: %s",
		     vc_bytes_text(q->reserved, r), vc_bytes_text(q->plan.capacity, c),
		     vc_verdict_name(q->verdict));
	vc_emit_line(e, "  searched               %" PRIu64 " combinations of %zu kinds of "
		     "changes, %" PRIu64 " replayed, %" PRIu64 " refused", q->combinations, q->axes,
		     q->tried, q->refused);
	for (int k = 0; k < VC_ANY_EFFECTS; k++) {
		for (size_t i = 0; i < q->n[k]; i++) {
			if (!i)
				vc_emit_line(e, "\n%s", title[k]);
			tell_found(e, q, &q->found[k][i],
				   proof_of(proof, proofs, (enum vc_any_effect)k, i));
			if (!i)
				tell_pastes(e, q, &q->found[k][i]);
		}
		any |= q->n[k] > 0;
	}
	if (!any)
		vc_emit_line(e, "  nothing of it fits%s", q->batch.open ? "" : "; a smaller batch "
			     "was not tried: the recording does not say its own (TRACE@batch=N)");
}

void vc_anything_say(struct vc_emit *e, const struct vc_anything *q,
		     const struct vc_any_proof *proof, size_t proofs)
{
	tell(e, q, proof, proofs);
	vc_emit_text(e, "card", NULL, q->plan.device ? q->plan.device : "");
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(q->verdict));
	vc_emit_uint(e, "peak_reserved", NULL, q->reserved);
	vc_emit_uint(e, "combinations", NULL, q->combinations);
	vc_emit_uint(e, "replayed", NULL, q->tried);
	for (int k = 0; k < VC_ANY_EFFECTS; k++) {
		vc_emit_array(e, key[k], NULL);
		for (size_t i = 0; i < q->n[k]; i++)
			say_found(e, q, &q->found[k][i],
				  proof_of(proof, proofs, (enum vc_any_effect)k, i));
		vc_emit_end(e);
	}
}
