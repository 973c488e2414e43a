/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c - the anatomy of a trace and its layers, found out once and kept with it. */

#include "common/vec.h"
#include "simulator/anatomy/layers.h"
#include "simulator/replay/memo.h"

struct kept {
	struct vc_memo memo; /* first */
	struct vc_anatomy anatomy;
};

static void drop(struct vc_memo *m)
{
	struct kept *k = (struct kept *)m;

	vc_anatomy_fini(&k->anatomy);
	free(k);
}

static int find_out(const struct vc_trace *t, uint64_t device, const void *arg,
		    struct vc_memo **out, struct vc_error *err)
{
	struct kept *k = calloc(1, sizeof(*k));
	int r = k ? vc_anatomy_read(&k->anatomy, t->ev, t->n, (uint16_t)device, t->meta, err) :
		    vc_nomem(err, "the anatomy of a trace");

	if (r < 0) {
		free(k);
		return r;
	}
	k->memo.drop = drop;
	*out = &k->memo;
	return VC_OK;
}

int vc_anatomy_of(struct vc_anatomy *a, const struct vc_trace *t, uint16_t device,
		  struct vc_error *err)
{
	struct vc_memo *m;
	int r = vc_memo_get(t, device, find_out, NULL, &m, err);

	*a = (struct vc_anatomy){ 0 };
	VC_TRY(r);
	*a = ((struct kept *)m)->anatomy;
	a->lent = m;
	return VC_OK;
}

int vc_anatomy_own(struct vc_anatomy *a, struct vc_error *err)
{
	struct vc_block_life *block;
	struct vc_span *span;

	if (!a->lent)
		return VC_OK;
	block = malloc((a->n + 1) * sizeof(*block));
	span = malloc((a->spans + 1) * sizeof(*span));
	if (!block || !span) {
		VC_FREE(block, span);
		return vc_nomem(err, "the anatomy of a trace");
	}
	if (a->n)
		memcpy(block, a->block, a->n * sizeof(*block));
	if (a->spans)
		memcpy(span, a->span, a->spans * sizeof(*span));
	vc_memo_put(a->lent);
	a->block = block;
	a->span = span;
	a->lent = NULL;
	return VC_OK;
}

struct kept_layers {
	struct vc_memo memo; /* first */
	struct vc_layers layers;
};

static void drop_layers(struct vc_memo *m)
{
	struct kept_layers *k = (struct kept_layers *)m;

	vc_layers_fini(&k->layers);
	free(k);
}

/* key: the span, behind 16 bits of device. */
static int find_layers(const struct vc_trace *t, uint64_t key, const void *arg,
		       struct vc_memo **out, struct vc_error *err)
{
	struct kept_layers *k = calloc(1, sizeof(*k));
	struct vc_anatomy a = { 0 };
	int r = k ? vc_anatomy_of(&a, t, (uint16_t)key, err) : vc_nomem(err, "layers");

	if (r == VC_OK)
		r = vc_layers_find(&k->layers, &a, t->ev, t->meta, key >> 16, err);
	vc_anatomy_fini(&a);
	if (r < 0) {
		free(k);
		return r;
	}
	k->memo.drop = drop_layers;
	*out = &k->memo;
	return VC_OK;
}

int vc_layers_of(struct vc_layers *l, const struct vc_trace *t, uint16_t device, size_t span,
		 struct vc_error *err)
{
	const struct vc_layers *from;
	struct vc_memo *m;
	int r = vc_memo_get(t, (uint64_t)span << 16 | device, find_layers, NULL, &m, err);

	*l = (struct vc_layers){ 0 };
	VC_TRY(r);
	from = &((struct kept_layers *)m)->layers;
	*l = *from;
	l->at = malloc((from->n + 1) * sizeof(*l->at));
	if (!l->at)
		*l = (struct vc_layers){ 0 };
	else if (from->n)
		memcpy(l->at, from->at, from->n * sizeof(*l->at));
	vc_memo_put(m);
	return l->at ? VC_OK : vc_nomem(err, "layers");
}
