/* SPDX-License-Identifier: Apache-2.0 */
/* areas.c - see areas.h. */
#include "allocator/areas.h"

static void add(struct vc_areas *a, uint64_t at, uint64_t end)
{
	if (end > at)
		a->area[a->n++] = (struct vc_area){ .at = at, .size = end - at };
}

int vc_areas_init(struct vc_areas *a, const struct vc_memory_plan *p,
		  void *(*function)(const char *name), struct vc_error *err)
{
	a->area = calloc(2 * p->areas + 1, sizeof(*a->area));
	VC_HAVE(a->area, "the areas of the plan", err);
	for (size_t i = 0; i < p->areas; i++) {
		const struct vc_plan_area *area = &p->area[i];

		add(a, area->at, area->at + area->stays);
		add(a, area->at + area->stays, area->at + area->size);
	}
	*(void **)&a->alloc = function("cudaMalloc");
	*(void **)&a->release = function("cudaFree");
	*(void **)&a->last_error = function("cudaGetLastError");
	return VC_OK;
}

static bool get(struct vc_areas *a, struct vc_area *x)
{
	void *p = NULL;

	if (x->base || x->refused || !a->alloc)
		return x->base != NULL;
	if (a->alloc(&p, x->size) || !p) {
		x->refused = true;
		if (a->last_error)
			a->last_error(); /* it is remembered, and PyTorch would find it */
		return false;
	}
	x->base = p;
	a->bytes += x->size;
	a->count++;
	return true;
}

static void put(struct vc_areas *a, struct vc_area *x)
{
	char *base = x->base;

	if (!base || !a->release)
		return;
	x->base = NULL; /* first: as soon as it is released it may be somebody else's */
	a->release(base);
	a->bytes -= x->size;
	a->count--;
	a->given_back += x->size;
	a->count_given_back++;
}

bool vc_areas_get_all(struct vc_areas *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (!get(a, &a->area[i])) {
			while (i--)
				put(a, &a->area[i]);
			return false;
		}
	return a->n != 0;
}

struct vc_area *vc_areas_at(struct vc_areas *a, uint64_t offset)
{
	size_t low = 0, high = a->n;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		*(a->area[mid].at <= offset ? &low : &high) = mid;
	}
	return low < a->n && get(a, &a->area[low]) ? &a->area[low] : NULL;
}

struct vc_area *vc_areas_holding(const struct vc_areas *a, const void *p)
{
	const char *at = p;

	for (size_t i = 0; i < a->n; i++) {
		const char *base = atomic_load_explicit(&a->area[i].base, memory_order_acquire);

		if (base && at >= base && at < base + a->area[i].size)
			return &a->area[i];
	}
	return NULL;
}

void vc_areas_trim(struct vc_areas *a)
{
	for (size_t i = 0; i < a->n; i++) {
		if (!a->area[i].live)
			put(a, &a->area[i]);
		a->area[i].refused = false;
	}
}
