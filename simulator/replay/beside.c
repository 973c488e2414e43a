/* SPDX-License-Identifier: Apache-2.0 */
/* beside.c - see beside.h */
#include "simulator/replay/beside.h"

#include "common/vec.h"

static const char *label_of(const struct vc_meta *m, const struct vc_event *e)
{
	return m && e->label < m->strings ? m->string[e->label] : "";
}

enum vc_beside_kind vc_beside_kind(const struct vc_meta *m, const struct vc_event *e)
{
	const char *label = label_of(m, e);

	if (e->id || !strcmp(label, VC_LABEL_PAGEABLE))
		return VC_BESIDE_MOVED;
	if (!strcmp(label, VC_LABEL_REGISTERED) || !strcmp(label, VC_LABEL_SHARED))
		return VC_BESIDE_RESIDENT;
	return !strcmp(label, VC_LABEL_PINNED)  ? VC_BESIDE_PINNED :
	       !strcmp(label, VC_LABEL_MANAGED) ? VC_BESIDE_MANAGED :
						  VC_BESIDE_DEVICE;
}

/* Freed by address where it was recorded, by id where a transform made it. */
static uint64_t key_of(const struct vc_event *e)
{
	return e->id ? e->id : e->addr;
}

static int born(struct vc_beside *b, const struct vc_meta *m, const struct vc_event *e,
		struct vc_error *err)
{
	struct vc_beside_piece p = { key_of(e), e->size, (uint8_t)vc_beside_kind(m, e),
				     !strcmp(label_of(m, e), VC_LABEL_PINNED) };

	VC_HAVE(vc_vec_room(b->at, b->cap, b->n + 1), "memory beside the allocator's", err);
	b->at[b->n++] = p;
	b->live[p.kind] += p.size;
	b->pinned += p.pinned ? p.size : 0;
	return VC_OK;
}

int vc_beside_event(struct vc_beside *b, const struct vc_meta *m, const struct vc_event *e,
		    uint64_t *size, struct vc_error *err)
{
	*size = e->size;
	if (e->kind == VC_EV_OUTSIDE_ALLOC)
		return born(b, m, e, err);
	for (size_t i = b->n; i-- > 0;) { /* young ones die first */
		struct vc_beside_piece p = b->at[i];

		if (p.key != key_of(e))
			continue;
		*size = p.size;
		b->live[p.kind] -= p.size;
		b->pinned -= p.pinned ? p.size : 0;
		memmove(&b->at[i], &b->at[i + 1], (--b->n - i) * sizeof(*b->at));
		return VC_OK;
	}
	*size = 0;
	return VC_OK;
}

void vc_beside_fini(struct vc_beside *b)
{
	free(b->at);
	*b = (struct vc_beside){ 0 };
}
