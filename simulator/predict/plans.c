/* SPDX-License-Identifier: Apache-2.0 */
/* plans.c - workspace of convolutions (scaling.h). Where cuDNN names, for the sizes that were
 * recorded, just what was borrowed there, it is asked for the sizes at the target. */
#include "simulator/predict/scaling.h"

#include "common/vec.h"

void vc_plans_match(const struct vc_allocations *a, const bool *in_a,
		    const struct vc_allocations *b, const bool *in_b, uint32_t *match)
{
	uint32_t j = 0;

	for (uint32_t i = 0; i < a->n; i++) {
		if (!in_a[i]) {
			j = match[i] == VC_UNMATCHED ? VC_UNMATCHED : match[i] + 1;
			continue;
		}
		if (j >= b->n || !in_b[j] || a->take[i].site != b->take[j].site)
			continue;
		match[i] = j++;
	}
}

/* Of a hundred recorded convolutions that it knows, for how many cuDNN must name what they
 * borrowed: a program that measures its plans, or another card, agrees by chance only. */
enum { AGREE = 90 };

static bool is_possible(struct vc_family *f, size_t base, const struct vc_target *target)
{
	if (!f->answers || f->n < 2 || f->axes != 1 ||
	    (target->elsewhere && !target->there) || !f->conv[base].n)
		return false;
	for (size_t k = 0; k < f->n; k++)
		if (f->steps[k].vary)
			return false;
	if (!f->held.from)
		f->held = vc_convolutions_hold(f->answers, f->conv, f->n);
	return f->held.agreed && 100 * f->held.agreed >= AGREE * f->held.known;
}

/* Does cuDNN name what a convolution borrowed? Where it has no plan for its sizes, it does not
 * contradict either: *named is left as it is. */
static bool is_named(const struct vc_conv_answers *held, const struct vc_conv_key *k, bool *named)
{
	bool known, agree = vc_convolutions_agree(held, k, &known);

	*named |= agree;
	return agree || (!known && !k->mixed);
}

/* What a convolution of the base borrows at the target. */
static bool at_target(const struct vc_family *f, size_t base, uint32_t key, bool tried,
		      const struct vc_target *target, uint64_t *bytes)
{
	struct vc_conv_answers there_say = f->held;
	const struct vc_conv_key *own = &f->conv[base].key[key];
	const struct vc_convolution *seen[VC_CONV_SEEN] = { &own->c };
	double x[VC_CONV_SEEN] = { f->x[base][0] };
	struct vc_convolution there;
	bool named = false;
	size_t n = 1;

	if (!is_named(&f->held, own, &named))
		return false;
	for (size_t k = 0; k < f->n && n < VC_CONV_SEEN; k++) {
		uint32_t match = k == base ? VC_UNMATCHED :
			vc_convolutions_match(&f->conv[base], key, &f->conv[k]);

		if (match == VC_UNMATCHED)
			continue;
		if (!is_named(&f->held, &f->conv[k].key[match], &named))
			return false;
		seen[n] = &f->conv[k].key[match].c;
		x[n++] = f->x[k][0];
	}
	if (target->there)
		there_say.from = target->there;
	return named && n > 1 && vc_convolutions_at(seen, x, n, target->at[0], &there) &&
	       vc_convolutions_plan(&there_say, own, &there, tried, bytes);
}

int vc_borrowed_make(struct vc_family *f, size_t base, const struct vc_target *target,
		    struct vc_borrowed *out, struct vc_error *err)
{
	enum { ASK, NOBODY, SAID }; /* and the bytes */
	const struct vc_convolutions *c = &f->conv[base];
	uint64_t *said, bytes;

	*out = (struct vc_borrowed){ .size = NULL };
	if (!is_possible(f, base, target))
		return VC_OK;
	said = calloc(2 * c->keys + 1, sizeof(*said)); /* as it is, and tried */
	out->size = calloc(f->m[base].n + 1, sizeof(*out->size));
	out->added = malloc((c->n + 1) * sizeof(*out->added));
	if (!said || !out->size || !out->added) {
		free(said);
		return vc_nomem(err, "the convolutions of a prediction");
	}
	for (size_t i = 0; i < c->n; i++) {
		const struct vc_conv_call *call = &c->call[i];
		uint64_t *s = &said[2 * call->key + call->tried];

		if (*s == ASK)
			*s = at_target(f, base, call->key, call->tried, target, &bytes) ?
				     SAID + bytes : NOBODY;
		if (*s == NOBODY)
			continue;
		bytes = *s - SAID;
		out->named++;
		if (call->block != VC_UNMATCHED)
			out->size[call->block] = bytes + 1;
		else if (bytes)
			out->added[out->n++] = (struct vc_borrowed_new){ call->event, bytes };
	}
	free(said);
	return VC_OK;
}

void vc_borrowed_fini(struct vc_borrowed *p)
{
	VC_FREE(p->size, p->added);
}
