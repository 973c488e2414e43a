/* SPDX-License-Identifier: Apache-2.0 */
/* purposes.c - see purposes.h */
#include "simulator/session/purposes.h"

#include "simulator/anatomy/anatomy.h"

static enum vc_purpose purpose_of(uint8_t category)
{
	static const uint8_t to[VC_CATS] = {
		[VC_CAT_UNKNOWN] = VC_FOR_UNKNOWN, [VC_CAT_PARAMETER] = VC_FOR_WEIGHTS,
		[VC_CAT_GRADIENT] = VC_FOR_GRADIENT, [VC_CAT_STATE] = VC_FOR_OPTIMIZER,
		[VC_CAT_ACTIVATION] = VC_FOR_ACTIVATION, [VC_CAT_WORKSPACE] = VC_FOR_WORKSPACE,
		[VC_CAT_FORWARD_TEMP] = VC_FOR_TEMPORARY, [VC_CAT_BACKWARD_TEMP] = VC_FOR_TEMPORARY,
		[VC_CAT_OPTIMIZER_TEMP] = VC_FOR_TEMPORARY, [VC_CAT_OTHER_TEMP] = VC_FOR_TEMPORARY,
	};
	return category < VC_CATS ? (enum vc_purpose)to[category] : VC_FOR_UNKNOWN;
}

/* Lives and blocks are both in order of birth, but some lives are left out. at[block]: 1 + life. */
static uint32_t *match(const struct vc_anatomy *a, const struct vc_lives *l)
{
	uint32_t *at = calloc(a->n + 1, sizeof(*at));
	size_t k = 0;

	for (size_t i = 0; at && i < l->n; i++) {
		size_t from = k;

		if (l->at[i].at_start)
			continue;
		while (k < a->n && a->block[k].id != l->at[i].id)
			k++;
		if (k < a->n)
			at[k++] = (uint32_t)i + 1;
		else
			k = from;
	}
	return at;
}

/* Where the first block of a span that has a life was born; blocks [from, to). */
static const struct vc_life *first_life(const struct vc_anatomy *a, const struct vc_lives *l,
					const uint32_t *at, size_t *from, size_t end_event)
{
	for (; *from < a->n && a->block[*from].event < end_event; ++*from)
		if (at[*from])
			return &l->at[at[*from] - 1];
	return NULL;
}

static int fill_phases(const struct vc_anatomy *a, const uint32_t *at, struct vc_result *out,
		       struct vc_error *err)
{
	struct vc_steps *s = &out->steps;
	size_t block = 0;

	s->phase = calloc(a->spans + 1, sizeof(*s->phase));
	VC_HAVE(s->phase, "the phases of the run", err);
	for (size_t i = 0; i < a->spans; i++) {
		const struct vc_span *p = &a->span[i];
		const struct vc_life *l = first_life(a, &out->lives, at, &block, p->end);

		while (block < a->n && a->block[block].event < p->end)
			block++;
		if (!l)
			continue;
		if (s->phases) {
			s->phase[s->phases - 1].end_event = l->born;
			s->phase[s->phases - 1].end_ns = l->born_ns;
		}
		s->phase[s->phases++] = (struct vc_phase_at){
			l->born,    l->born_ns,   UINT64_MAX,
			UINT64_MAX, p->iteration, vc_phase_name((enum vc_phase)p->phase) };
	}
	return VC_OK;
}

static int fill(const struct vc_anatomy *a, struct vc_result *out, struct vc_error *err)
{
	uint32_t *at = match(a, &out->lives);
	int r;

	VC_HAVE(at, "what blocks are for", err);
	for (size_t i = 0; i < a->n; i++)
		if (at[i])
			out->lives.at[at[i] - 1].purpose =
				(uint8_t)purpose_of(a->block[i].category);
	r = fill_phases(a, at, out, err);
	free(at);
	return r;
}

/* What the run saw and as much again: a transform may go on long after the run was out of
 * memory. */
static int read_most(struct vc_trace *t, struct vc_source *src, size_t most, struct vc_error *err)
{
	struct vc_event ev[512];
	long n = 1;
	int r = VC_OK;

	t->meta = src->meta;
	while (r == VC_OK && t->n < most && (n = src->type->next(src, ev, 512, err)) > 0)
		r = vc_trace_append(t, ev, (size_t)n, err);
	return n < 0 ? (int)n : r;
}

int vc_purposes_fill(const struct vc_recording *rec, const struct vc_list *transforms,
		     struct vc_result *out, struct vc_error *err)
{
	uint16_t device = rec->device->device;
	struct vc_trace t = { 0 };
	const struct vc_trace *from = &t;
	struct vc_anatomy a = { 0 };
	struct vc_source *src;
	int r = VC_OK;

	if (!out->lives.n || rec->streamed)
		return VC_OK;
	src = vc_recording_source(rec, transforms, err);
	if (!src)
		return (int)err->status;
	if (src->type->trace)
		from = src->type->trace(src);
	else
		r = read_most(&t, src, 2 * out->stats.events + (1 << 16), err);
	if (r == VC_OK)
		r = vc_anatomy_of(&a, from, device, err);
	if (r == VC_OK && a.iterations && a.confidence >= VC_ANATOMY_SURE)
		r = fill(&a, out, err);
	vc_anatomy_fini(&a);
	t.meta = NULL; /* the source's */
	vc_trace_fini(&t);
	vc_source_free(src);
	return r;
}
