/* SPDX-License-Identifier: Apache-2.0 */
/* sorting.c - see sorting.h
 *
 * Source: aten/src/ATen/native/cuda/Embedding.cu (embedding_dense_backward_cuda: num_indices <=
 * 3072 and no padding index goes without sorting) and EmbeddingBackwardKernel.cu
 * (NROWS_PER_THREAD 10). The temporary bytes of cub's sort are those of its onesweep: both arrays
 * again, 1 KiB per 4,608 indices, and counters (recordings of 3,200 to 81,920 indices). */
#include "common/torch_names.h"
#include "simulator/predict/sorting.h"

#include "common/vec.h"

enum {
	FEW = 3072,
	PER_THREAD = 10,
	INDEX = 8,          /* bytes of an index */
	TILE = 4608, COUNTERS = 16895, SCAN = 1023,
	LOOK = 128,         /* allocations before an embedding among which its indices are */
	CALLS = 64,         /* embeddings of one forward pass; bounds a table */
};

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

bool vc_sort_needed(const struct vc_sort *s, uint64_t indices)
{
	return s->always || indices > FEW;
}

void vc_sort_sizes(const struct vc_sort *s, uint64_t n, uint64_t size[VC_SORT_BLOCKS])
{
	uint64_t list = n * INDEX, segments = least(n, s->values),
		 parts = n / PER_THREAD + segments;
	uint64_t twice = 2 * ((list + 255) / 256 * 256);
	const uint64_t all[VC_SORT_BLOCKS] = {
		list, list, list, twice + (n + TILE - 1) / TILE * 1024 + COUNTERS,
		list, INDEX, list, SCAN, segments * INDEX, segments * INDEX, SCAN, INDEX,
		parts * INDEX, parts * s->row,
	};

	memcpy(size, all, sizeof(all));
}

static bool varies(const double *grows, uint32_t i)
{
	return fabs(grows[i] - 1) > 1e-9;
}

/* ---- recordings that sort ---- */

bool vc_sort_at(const struct vc_allocations *m, uint32_t i, struct vc_sort *s)
{
	const struct vc_take *t = m->take;

	if (i < VC_SORT_BEFORE || i + VC_SORT_AFTER >= m->n)
		return false;
	uint64_t list = t[i + 1].size, n = list / INDEX, parts = t[i + 9].size / INDEX;
	if (!n || list % INDEX || t[i - 4].size != list || t[i - 3].size != list ||
	    t[i - 2].size != list || t[i - 1].size < 2 * list || t[i + 2].size != INDEX ||
	    t[i + 3].size != list || t[i + 5].size != t[i + 6].size || t[i + 8].size != INDEX ||
	    !parts || parts != n / PER_THREAD + t[i + 5].size / INDEX || t[i + 10].size % parts)
		return false;
	*s = (struct vc_sort){.owner = i,
			      .source = i + 1, .per = INDEX,
			      .row = t[i + 10].size / parts,
			      .present = true,
			      .always = n <= FEW };
	s->values = t[i].size / s->row;
	if (least(n, s->values) * INDEX != t[i + 5].size) /* half: summed in float */
		s->values *= 2;
	return least(n, s->values) * INDEX == t[i + 5].size;
}

/* ---- recordings that do not, yet ---- */

struct call { uint32_t at, indices; uint64_t row; };

/* Was allocation i asked for by torch.nn.functional.embedding? */
static bool is_embedding(const struct vc_allocations *m, uint32_t i)
{
	return vc_allocations_called(m, i, 8, VC_NAME_EMBEDDING);
}

/* The latest block that may hold the indices of the embedding at i: eight bytes for each row. */
static bool find_indices(const struct vc_allocations *m, const double *grows, uint32_t i,
			 struct call *c)
{
	uint64_t size = m->take[i].size;

	for (uint32_t j = i; j-- > 0 && i - j <= LOOK;) {
		uint64_t list = m->take[j].size;

		if (list % INDEX || list >= size || size * INDEX % list ||
		    m->died[j] < m->born[i] || fabs(grows[j] - grows[i]) > 1e-3 ||
		    size * INDEX / list % 4)
			continue;
		*c = (struct call){ .at = i, .indices = j, .row = size * INDEX / list };
		return true;
	}
	return false;
}

static int push(struct vc_sorts *l, const struct vc_sort *s)
{
	if (!vc_vec_one(l->at, l->n))
		return VC_ENOMEM;
	l->at[l->n++] = *s;
	return 0;
}

VC_COMPARE(by_owner, struct vc_sort, VC_ORDER(x->owner, y->owner))

/* The embeddings that come first in a forward pass have the last gradients of its backward pass, in
 * reverse order; what lies between them is data. */
static int match_calls(const struct vc_allocations *m, const double *grows, const struct call *call,
		       size_t calls, uint32_t from, uint32_t to, struct vc_sorts *out)
{
	uint32_t i = to;

	for (size_t k = 0; k < calls; k++) {
		if (m->died[call[k].indices] < m->born[from]) /* of an evaluation in between */
			continue;
		while (i > from && varies(grows, i - 1))
			i--;
		if (i == from)
			return 0;
		uint64_t size = m->take[--i].size;
		struct vc_sort s = { .owner = i, .source = call[k].indices, .per = INDEX,
				     .row = call[k].row, .values = size / call[k].row };
		if (size % s.row || s.values < 2 || vc_sort_at(m, i, &s))
			return 0;
		if (varies(grows, s.source) && m->take[s.source].size / INDEX <= FEW &&
		    push(out, &s))
			return VC_ENOMEM;
	}
	return 0;
}

static int find_calls(const struct vc_allocations *m, const double *grows, struct vc_sorts *out)
{
	struct call call[CALLS];
	size_t calls = 0;
	uint32_t from = 0; /* where the allocations without Python frames began */

	for (uint32_t i = 0; i <= m->n; i++) {
		bool named = i == m->n || m->take[i].site;

		if (named && from < i && calls && i - from > 1) {
			VC_TRY(match_calls(m, grows, call, calls, from, i, out));
			calls = 0;
		}
		from = named ? i + 1 : from;
		if (i < m->n && named && calls < CALLS && is_embedding(m, i))
			calls += find_indices(m, grows, i, &call[calls]);
	}
	return VC_OK;
}

int vc_sort_find(const struct vc_allocations *m, const double *grows, struct vc_sorts *out,
		 struct vc_error *err)
{
	struct vc_sort s;
	int rc = find_calls(m, grows, out);

	for (uint32_t i = 0; !rc && i < m->n; i++)
		if (vc_sort_at(m, i, &s))
			rc = push(out, &s);
	if (rc)
		return vc_nomem(err, "the embeddings of a recording");
	if (out->n)
		qsort(out->at, out->n, sizeof(*out->at), by_owner);
	return 0;
}
