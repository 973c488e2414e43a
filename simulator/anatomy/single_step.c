/* SPDX-License-Identifier: Apache-2.0 */
/* single_step.c - a recording of a single step: nothing repeats, so call sites and sizes must say
 * where it begins. Parameters made in it are what lasts and has a gradient of its size. */

#include "common/torch_sizes.h"
#include "common/vec.h"
#include "simulator/anatomy/period.h"

static uint8_t role_of(const struct vc_anatomy_work *w, size_t block, bool *sited)
{
	uint32_t site = w->ev[w->a->block[block].event].site;

	*sited = w->meta && site && site < w->meta->frames;
	return *sited ? w->role[site] : VC_ROLE_NONE;
}

/* PyTorch's own history has no Python frames on the threads of the backward pass: what names
 * nothing belongs to the pass that began before it. */
size_t vc_onestep_backwards(const struct vc_anatomy_work *w, size_t from)
{
	bool inside = false, sited;
	size_t n = 0;

	for (size_t i = from; i < w->a->n; i++) {
		uint8_t role = role_of(w, i, &sited);

		if (!sited)
			continue;
		n += role == VC_ROLE_BACKWARD && !inside;
		inside = role == VC_ROLE_BACKWARD;
	}
	return n;
}

/* Sizes of what the backward pass makes and the optimizer finds: the gradients. */
static size_t gradients(const struct vc_anatomy_work *w, size_t from, size_t end, uint64_t *size,
			size_t *began, uint64_t *sum)
{
	const struct vc_block_life *b = w->a->block;
	size_t backward = SIZE_MAX, optimizer = end, n = 0;
	bool sited;

	for (size_t i = from; i < end; i++) {
		uint8_t role = role_of(w, i, &sited);

		if (role == VC_ROLE_BACKWARD && backward == SIZE_MAX)
			backward = i;
		if (role == VC_ROLE_OPTIMIZER && backward != SIZE_MAX && optimizer == end)
			optimizer = i;
	}
	for (size_t i = backward; i < optimizer; i++)
		if (!vc_is_torch_workspace(b[i].size) &&
		    (b[i].died > optimizer || (optimizer == end && b[i].died >= end))) {
			*sum += b[i].size;
			size[n++] = b[i].size;
		}
	vc_sort_u64(size, n);
	*began = backward;
	return n;
}

/* Sizes of what the optimizer makes and keeps: its states, of the shape of their parameters. */
static size_t states(const struct vc_anatomy_work *w, size_t from, size_t end, uint64_t *size,
		     uint64_t *sum)
{
	const struct vc_block_life *b = w->a->block;
	size_t n = 0, lasts = end + (end - from) / 2; /* its temporaries go in the next step */
	bool sited;

	lasts = lasts < w->a->n ? lasts : w->a->n;
	*sum = 0;
	for (size_t i = from; i < end; i++)
		if (role_of(w, i, &sited) == VC_ROLE_OPTIMIZER && b[i].died >= lasts) {
			*sum += b[i].size;
			size[n++] = b[i].size;
		}
	vc_sort_u64(size, n);
	return n;
}

/* Behind the last block that lasts and has one of these sizes, until there are `enough` bytes;
 * *found gets them. */
static size_t behind(const struct vc_anatomy_work *w, size_t guess, size_t end, size_t backward,
		     uint64_t *size, size_t n, uint64_t enough, uint64_t *found)
{
	const struct vc_block_life *b = w->a->block;
	size_t at = guess;

	*found = 0;
	for (size_t i = guess; n && *found < enough && i < backward; i++) {
		uint64_t *same = b[i].died >= end ? vc_find_u64(size, n, b[i].size) : NULL;

		if (!same)
			continue;
		memmove(same, same + 1, (size_t)(size + n - same - 1) * sizeof(*size));
		n--;
		*found += b[i].size;
		at = i + 1;
	}
	return at;
}

size_t vc_onestep_start(const struct vc_anatomy_work *w, size_t guess, size_t end)
{
	uint64_t *size = calloc(w->a->n + 1, sizeof(*size)), sum = 0, found = 0;
	size_t backward = guess, at = guess, n;

	if (!size)
		return guess;
	n = gradients(w, guess, end, size, &backward, &sum);
	at = behind(w, guess, end, backward, size, backward == SIZE_MAX ? 0 : n, sum, &found);
	at = found * 2 > sum ? at : guess;
	/* Shards have gradients in common, but states of their own: one of each, or two. */
	for (unsigned each = 1; each <= 2 && backward != SIZE_MAX; each++) {
		uint64_t all;
		size_t k = states(w, guess, end, size, &all);
		size_t to = behind(w, guess, end, backward, size, k, all / each, &found);

		if (all && found * each == all) {
			at = to;
			break;
		}
	}
	free(size);
	return at;
}
