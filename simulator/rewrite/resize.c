/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - the walk that optimizer, precision, zero, lora and their like share. */
#include "simulator/rewrite/resize.h"
#include "common/vec.h"
#include "simulator/rewrite/shapes.h"

enum { WAITING = 128 }; /* bounds a table */

struct waiting { uint64_t id; size_t due; };
struct walk {
	struct waiting at[WAITING]; size_t n, allocs;
	uint64_t *companion;                     /* by number of block */
	uint32_t turning[WAITING]; size_t turns; /* blocks that are still of their first size */
	uint32_t kept[WAITING]; size_t keeps;    /* blocks whose companion goes before they do */
};

int vc_resize_add(struct vc_resize *r, const struct vc_event *e, uint64_t size, bool hold,
		  struct vc_error *err)
{
	uint64_t id;
	int rc = size ? vc_clone_alloc(&r->c, e, size, &id, err) : VC_OK;

	if (rc < 0 || !size || !hold)
		return rc;
	VC_HAVE(vc_vec_one(r->held, r->helds), "added blocks", err);
	r->held[r->helds++] = id;
	return VC_OK;
}

int vc_resize_release(struct vc_resize *r, const struct vc_event *e, struct vc_error *err)
{
	while (r->helds)
		VC_TRY(vc_clone_free(&r->c, e, r->held[--r->helds], err));
	return VC_OK;
}

/* Gradients that live until the optimizer, of the first iteration that has some. */
static int find_trainable(struct vc_resize *r, struct vc_error *err)
{
	const struct vc_anatomy *a = &r->c.a;
	uint32_t iteration = UINT32_MAX;

	r->trainable = calloc(a->n + 1, sizeof(*r->trainable));
	VC_HAVE(r->trainable, "the trainable tensors", err);
	for (size_t i = 0; i < a->n; i++) {
		const struct vc_block_life *b = &a->block[i];

		if (b->category != VC_CAT_GRADIENT || a->span[b->span].micro)
			continue;
		if (iteration == UINT32_MAX)
			iteration = b->iteration;
		if (b->iteration != iteration)
			break;
		r->trainable[r->trainables++] = b->size;
		r->trainable_bytes += b->size;
		r->largest = b->size > r->largest ? b->size : r->largest;
	}
	return VC_OK;
}

static int give_back(struct vc_resize *r, struct walk *k, const struct vc_event *e, size_t until,
		     struct vc_error *err)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->at[i].due <= until) {
			VC_TRY(vc_clone_free(&r->c, e, k->at[i].id, err));
			k->at[i--] = k->at[--k->n];
		}
	return VC_OK;
}

/* A gradient that is only passing: full size for a moment, its shard for the rest of its life. */
static int passing(struct vc_resize *r, struct walk *k, const struct vc_event *e, uint64_t size,
		   uint64_t shard, struct vc_error *err)
{
	uint64_t id;
	int rc = vc_clone_alloc(&r->c, e, size, &id, err);

	if (rc == VC_OK && k->n < WAITING)
		k->at[k->n++] = (struct waiting){ id, k->allocs + r->gradients_live };
	else if (rc == VC_OK)
		rc = vc_clone_free(&r->c, e, id, err);
	r->c.alias[e->id] = 0;
	if (rc == VC_OK && shard)
		rc = vc_clone_alloc(&r->c, e, shard, &r->c.alias[e->id], err);
	return rc;
}

static int drop_companion(struct vc_resize *r, struct walk *k, const struct vc_event *e, size_t i,
			  struct vc_error *err)
{
	uint64_t id = k->companion[i];
	uint32_t n = r->extra[i].pieces ? r->extra[i].pieces : 1;
	int rc = VC_OK;

	k->companion[i] = 0;
	while (rc == VC_OK && id && n-- > 0)
		rc = vc_clone_free(&r->c, e, id++, err); /* their numbers follow each other */
	return rc;
}

/* Before block b is asked for: others become what they are kept in. What they were goes behind
 * it. */
static int turn(struct vc_resize *r, struct walk *k, const struct vc_block_life *b,
		const struct vc_event *e, struct vc_error *err)
{
	int rc = VC_OK;

	for (size_t i = 0; rc == VC_OK && i < k->turns; i++) {
		const struct vc_block_life *x = &r->c.a.block[k->turning[i]];

		if (r->extra[x->born].turn > b->born)
			continue;
		k->turning[i--] = k->turning[--k->turns];
		uint64_t old = r->c.alias[x->id];
		if (x->died_event < b->event || !old)
			continue;
		rc = vc_clone_alloc(&r->c, e, r->size(r, x), &r->c.alias[x->id], err);
		if (rc == VC_OK && k->n < WAITING)
			k->at[k->n++] = (struct waiting){ old, k->allocs + 1 };
		else if (rc == VC_OK)
			rc = vc_clone_free(&r->c, e, old, err);
	}
	for (size_t i = 0; rc == VC_OK && i < k->keeps; i++)
		if (r->extra[k->kept[i]].until <= b->born) {
			rc = drop_companion(r, k, e, k->kept[i], err);
			k->kept[i--] = k->kept[--k->keeps];
		}
	return rc;
}

static int add_extra(struct vc_resize *r, struct walk *k, const struct vc_block_life *b,
		     const struct vc_event *e, struct vc_error *err)
{
	const struct vc_extra *x = &r->extra[b->born];

	if (x->first && k->turns < WAITING)
		k->turning[k->turns++] = b->born;
	if (!x->beside)
		return VC_OK;
	if (x->until != UINT32_MAX && k->keeps < WAITING)
		k->kept[k->keeps++] = b->born;
	uint32_t n = x->pieces ? x->pieces : 1;
	uint64_t id;
	VC_TRY(vc_clone_alloc(&r->c, e, x->beside / n, &k->companion[b->born], err));
	while (--n > 0)
		VC_TRY(vc_clone_alloc(&r->c, e, x->beside / x->pieces, &id, err));
	return VC_OK;
}

static int with_extra(struct vc_resize *r, struct walk *k, const struct vc_block_life *b,
		      const struct vc_event *e, uint64_t size, struct vc_error *err)
{
	struct vc_event now = *e;
	const struct vc_extra *x = &r->extra[b->born];

	now.size = x->first && k->turns < WAITING ? x->first : size;
	VC_TRY(vc_clone_event(&r->c, &now, err));
	return add_extra(r, k, b, e, err);
}

static int other(struct vc_resize *r, struct walk *k, const struct vc_event *e,
		 struct vc_error *err)
{
	const struct vc_block_life *b =
		e->kind == VC_EV_FREE && r->extra ? vc_clone_block(&r->c, e->id) : NULL;

	VC_TRY(vc_clone_event(&r->c, e, err));
	return b ? drop_companion(r, k, e, b->born, err) : VC_OK;
}

static int one(struct vc_resize *r, struct walk *k, const struct vc_event *e, struct vc_error *err)
{
	const struct vc_block_life *b =
		e->kind == VC_EV_ALLOC ? vc_clone_block(&r->c, e->id) : NULL;

	if (!b)
		return other(r, k, e, err);
	uint64_t size = r->size(r, b);

	VC_TRY(give_back(r, k, e, k->allocs, err));
	if (r->extra)
		VC_TRY(turn(r, k, b, e, err));
	k->allocs++;
	if (r->held_by_gradient && b->category == VC_CAT_GRADIENT && r->gradient_at < r->helds) {
		VC_TRY(vc_clone_free(&r->c, e, r->held[r->gradient_at], err));
		r->held[r->gradient_at++] = 0;
	}
	if (!size) {
		r->c.alias[e->id] = 0;
		return VC_OK;
	}
	if (r->gradients_live && b->category == VC_CAT_GRADIENT)
		return passing(r, k, e, size, r->shard ? r->shard(r, b) : 0, err);
	if (r->extra && (r->extra[b->born].first || r->extra[b->born].beside))
		return with_extra(r, k, b, e, size, err);
	struct vc_event now = *e;
	now.size = size;
	if (!r->lives || !r->lives[b->born] || k->n == WAITING)
		return vc_clone_event(&r->c, &now, err);
	VC_TRY(vc_clone_alloc(&r->c, e, size, &k->at[k->n].id, err));
	k->at[k->n++].due = k->allocs + r->lives[b->born];
	r->c.alias[e->id] = 0;
	return VC_OK;
}

typedef int hook_fn(struct vc_resize *r, const struct vc_block_life *b, const struct vc_event *e,
		    struct vc_error *err);

static int call(struct vc_resize *r, hook_fn *hook, const struct vc_event *e, bool gradients,
		struct vc_error *err)
{
	const struct vc_block_life *b =
		hook && e->kind == VC_EV_ALLOC ? vc_clone_block(&r->c, e->id) : NULL;

	return b && (!gradients || b->category == VC_CAT_GRADIENT) ? hook(r, b, e, err) : VC_OK;
}

static int walk_spans(struct vc_resize *r, struct vc_error *err)
{
	struct vc_whole *w = r->c.w;
	struct walk k = { .companion = calloc(r->c.a.n + 1, sizeof(*k.companion)) };
	int rc = k.companion ? VC_OK : vc_nomem(err, "what blocks have beside them");

	for (size_t i = 0; rc == VC_OK && i < r->c.a.spans; i++) {
		const struct vc_span *p = &r->c.a.span[i];

		if (r->enter)
			rc = r->enter(r, p, &w->in[p->first], err);
		for (size_t j = p->first; rc == VC_OK && j < p->end; j++) {
			rc = call(r, r->asked, &w->in[j], false, err);
			if (rc == VC_OK)
				rc = one(r, &k, &w->in[j], err);
			if (rc == VC_OK)
				rc = call(r, r->made, &w->in[j], false, err);
			if (rc == VC_OK)
				rc = call(r, r->born, &w->in[j], true, err);
		}
		if (rc == VC_OK && k.n)
			rc = give_back(r, &k, &w->in[p->end - 1], SIZE_MAX, err);
		if (rc == VC_OK && r->leave)
			rc = r->leave(r, p, &w->in[p->end - 1], err);
	}
	free(k.companion);
	return rc;
}

int vc_resize_run(struct vc_resize *r, struct vc_source *s, struct vc_whole *w,
		  struct vc_error *err)
{
	int rc = vc_clone_init(&r->c, s, w, err);

	VC_TRY(rc);
	vc_clone_say_heap(&r->c, s);
	if (!r->c.a.iterations)
		rc = vc_fail(err, VC_EUSAGE, "%s: no iterations found in the recording, so what is "
			     "a parameter and what a gradient is not known", s->type->name);
	if (rc == VC_OK)
		rc = find_trainable(r, err);
	r->convolutional = rc == VC_OK && vc_shapes_convolutional(&r->c, s->meta);
	if (rc == VC_OK && r->prepare)
		rc = r->prepare(r, err);
	if (rc == VC_OK)
		rc = walk_spans(r, err);
	vc_clone_fini(&r->c);
	VC_FREE(r->trainable, r->held, r->lives, r->wide, r->halved, r->extra);
	return rc;
}
