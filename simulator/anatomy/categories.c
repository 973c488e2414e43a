/* SPDX-License-Identifier: Apache-2.0 */
/* categories.c - what each block is for: from the phases in which it is born and dies. */

#include "common/torch_sizes.h"
#include "common/vec.h"
#include "simulator/anatomy/period.h"

static uint8_t category_of(const struct vc_anatomy *a, const struct vc_block_life *b,
			   const struct vc_span *born, const struct vc_span *died)
{
	bool ends = !died && b->died_event != SIZE_MAX;
	bool lasts = !died || (died->iteration != born->iteration &&
			       died->iteration != born->iteration + 1);

	switch ((enum vc_phase)born->phase) {
	case VC_PHASE_INIT: return lasts ? VC_CAT_PARAMETER : VC_CAT_OTHER_TEMP;
	case VC_PHASE_OPTIMIZER: /* the last optimizer's temporaries go when nothing more is asked
				    for */
		return lasts && !(ends && b->iteration && b->iteration + 1 == a->iterations) ?
		       VC_CAT_STATE : VC_CAT_OPTIMIZER_TEMP;
	case VC_PHASE_FORWARD:
		if (lasts)
			return b->iteration + 1 < a->iterations || vc_is_torch_workspace(b->size) ?
				       VC_CAT_WORKSPACE :
				       VC_CAT_ACTIVATION;
		return died->phase == VC_PHASE_FORWARD && died->micro == born->micro &&
		       died->iteration == born->iteration ? VC_CAT_FORWARD_TEMP : VC_CAT_ACTIVATION;
	case VC_PHASE_BACKWARD:
		if (lasts)
			return b->iteration + 1 < a->iterations && b->iteration ?
				       VC_CAT_UNKNOWN :
			       b->iteration || (a->iterations == 1 &&
						!vc_is_odd_torch_workspace(b->size)) ?
				       VC_CAT_GRADIENT :
				       VC_CAT_WORKSPACE;
		return died->phase == VC_PHASE_BACKWARD && died->iteration == born->iteration &&
		       died->micro == born->micro ? VC_CAT_BACKWARD_TEMP : VC_CAT_GRADIENT;
	case VC_PHASE_OTHER:
	case VC_PHASES:
		break;
	}
	return VC_CAT_OTHER_TEMP;
}

static uint32_t span_at(const struct vc_anatomy *a, size_t event)
{
	size_t lo = 0, hi = a->spans;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		if (a->span[mid].first <= event)
			lo = mid;
		else
			hi = mid;
	}
	return (uint32_t)lo;
}

size_t vc_anatomy_block_at(const struct vc_anatomy *a, size_t event)
{
	size_t lo = 0, hi = a->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (a->block[mid].event < event)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Takes `b` for a gradient when a parameter of its size has none yet. */
static bool take(struct vc_block_life *b, uint64_t *size, size_t *n)
{
	uint64_t *at = vc_find_u64(size, *n, b->size);

	if (!at)
		return false;
	b->category = VC_CAT_GRADIENT;
	memmove(at, at + 1, (size_t)(size + *n - at - 1) * sizeof(*size));
	--*n;
	return true;
}

/* The parameters' sizes, sorted; *n of them. */
static uint64_t *parameter_sizes(const struct vc_anatomy *a, size_t *n, uint64_t *sum)
{
	uint64_t *size = calloc(a->n + 1, sizeof(*size));

	*n = *sum = 0;
	for (size_t i = 0; size && i < a->n; i++)
		if (a->block[i].category == VC_CAT_PARAMETER)
			*sum += size[(*n)++] = a->block[i].size;
	if (*n)
		vc_sort_u64(size, *n);
	return size;
}

/* Gradients that are kept (zero_grad(set_to_none=False)) last like a workspace that the first
 * backward pass asks for; they are the ones for which there is a parameter of their size. */
static void kept_gradients(struct vc_anatomy *a)
{
	size_t n, k = 0, *taken = calloc(a->n + 1, sizeof(*taken));
	uint64_t all, found = 0, *size = parameter_sizes(a, &n, &all);
	bool more = size && taken;

	n = more ? n : 0;
	/* From the end: the workspaces of a backward pass come with its first operators. */
	for (size_t i = a->n; n && i-- > 0;)
		if (a->block[i].category == VC_CAT_WORKSPACE &&
		    a->span[a->block[i].span].phase == VC_PHASE_BACKWARD &&
		    take(&a->block[i], size, &n)) {
			found += a->block[i].size;
			taken[k++] = i;
		}
	if (found * 2 < all) { /* so few: workspaces that happen to have such sizes */
		while (k)
			a->block[taken[--k]].category = VC_CAT_WORKSPACE;
		n = 0;
	}
	/* The last ones, when the optimizer was thought to begin a little early. */
	for (size_t i = 0; n && more && i < a->n; i++)
		if (a->block[i].category == VC_CAT_STATE)
			more = take(&a->block[i], size, &n);
	VC_FREE(taken, size);
}

/* Where nothing names the optimizer it may be thought to begin before the last gradients: of what
 * lives through it those that come first and for which a parameter has none yet. Most must have
 * one: else some are frozen. */
static void late_gradients(struct vc_anatomy *a)
{
	size_t n, at = 0;
	uint64_t sum, *size = parameter_sizes(a, &n, &sum), *left = calloc(n + 1, sizeof(*left));

	for (uint32_t k = 0; size && left && k < a->iterations; k++) {
		size_t m = n, from;
		uint64_t found = 0;

		memcpy(left, size, n * sizeof(*left));
		while (at < a->n && a->block[at].iteration != k)
			at++;
		for (from = at; at < a->n && a->block[at].iteration == k; at++)
			if (a->block[at].category == VC_CAT_GRADIENT &&
			    take(&a->block[at], left, &m))
				found += a->block[at].size;
		for (size_t i = from; m && found * 4 > sum * 3 && i < at; i++)
			if (a->block[i].category == VC_CAT_OPTIMIZER_TEMP && a->block[i].died >= at)
				take(&a->block[i], left, &m);
	}
	VC_FREE(left, size);
}

void vc_purposes(struct vc_anatomy *a)
{
	uint64_t gradients[2] = { 0 };
	/* What is freed behind the last allocation goes because the program ends. */
	size_t end = a->n ? a->block[a->n - 1].event : 0;

	for (size_t i = 0; i < a->n; i++) {
		struct vc_block_life *b = &a->block[i];

		b->span = span_at(a, b->event);
		b->iteration = a->span[b->span].iteration;
		const struct vc_span *died = b->died_event == SIZE_MAX || b->died_event > end ?
						     NULL : &a->span[span_at(a, b->died_event)];
		bool state = b->category == VC_CAT_STATE; /* who asked for it says so */
		b->category = category_of(a, b, &a->span[b->span], died);
		if (state && b->category == VC_CAT_PARAMETER)
			b->category = VC_CAT_STATE;
	}
	kept_gradients(a);
	late_gradients(a);
	for (size_t i = 0; i < a->n; i++) {
		const struct vc_block_life *b = &a->block[i];

		if (b->category == VC_CAT_PARAMETER)
			a->parameters += b->size;
		if (b->category == VC_CAT_STATE)
			a->states += b->size;
		if (b->category == VC_CAT_GRADIENT && b->iteration < 2)
			gradients[b->iteration] += b->size;
	}
	/* Kept gradients are there since the first iteration. */
	a->gradients = gradients[1] ? gradients[1] : gradients[0];
}

/* One block by its id: what it is for, and what it takes. */
struct of_id { uint64_t size; uint8_t is; };

int vc_anatomy_live(const struct vc_anatomy *a, const struct vc_trace *t, uint16_t device,
		    uint64_t bytes[VC_CATS + 1], struct vc_error *err)
{
	uint64_t live[VC_CATS + 1] = { 0 }, sum = 0, top = 0;
	struct of_id *of = calloc(t->meta->max_id + 1, sizeof(*of));
	size_t k = 0;

	memset(bytes, 0, sizeof(live));
	VC_HAVE(of, "what blocks are for", err);
	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];
		bool start = e->kind == VC_EV_HEAP_BLOCK && e->flags & VC_EVF_LIVE &&
			     !(e->flags & (VC_EVF_FINAL | VC_EVF_PENDING));

		while (k < a->n && a->block[k].event < i)
			k++;
		if (e->device != device || e->id > t->meta->max_id)
			continue;
		if (start || (e->kind == VC_EV_ALLOC && k < a->n && a->block[k].event == i)) {
			of[e->id] = (struct of_id){ e->size,
						    start ? VC_CATS : a->block[k].category };
			live[of[e->id].is] += e->size;
			sum += e->size;
		} else if (e->kind == VC_EV_FREE) {
			live[of[e->id].is] -= of[e->id].size;
			sum -= of[e->id].size;
			of[e->id].size = 0;
		}
		if (sum > top) {
			top = sum;
			memcpy(bytes, live, sizeof(live));
		}
	}
	free(of);
	return VC_OK;
}
