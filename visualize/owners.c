/* SPDX-License-Identifier: Apache-2.0 */
/* owners.c - who holds the memory at the moment that matters. */

#include "visualize/classify.h"

#include "common/vec.h"

VC_COMPARE(compare_keys, struct vc_owner,
	   VC_THEN(VC_ORDER(x->site, y->site), VC_THEN(VC_ORDER(x->label, y->label),
		   VC_THEN(VC_ORDER(x->slot, y->slot),
		   VC_THEN(x->site || x->label ? 0 : VC_ORDER(y->bytes, x->bytes),
		   VC_ORDER(x->id, y->id))))))

VC_COMPARE(compare_bytes, struct vc_owner,
	   VC_THEN(VC_ORDER(y->bytes, x->bytes), compare_keys(x, y)))

static bool same(const struct vc_owner *a, const struct vc_owner *b)
{
	if (a->site != b->site || a->label != b->label || a->slot != b->slot)
		return false;
	return a->site || a->label || a->largest == b->largest;
}

static void merge(struct vc_owners *o)
{
	size_t kept = 0;

	if (o->n)
		vc_sort(o->at, o->n, sizeof(*o->at), compare_keys);
	for (size_t i = 0; i < o->n; i++) {
		struct vc_owner *last = kept ? &o->at[kept - 1] : NULL;
		if (!last || !same(last, &o->at[i])) {
			o->at[kept++] = o->at[i];
			continue;
		}
		last->bytes += o->at[i].bytes;
		last->blocks++;
		if (o->at[i].largest > last->largest) {
			last->largest = o->at[i].largest;
			last->id = o->at[i].id;
		}
	}
	o->n = kept;
	if (o->n)
		vc_sort(o->at, o->n, sizeof(*o->at), compare_bytes);
}

static void from_heap(struct vc_owners *o, const struct vc_classes *c, const struct vc_heap_map *h)
{
	for (size_t i = 0; i < h->n; i++) {
		const struct vc_heap_extent *x = &h->at[i];
		if (x->what != 1 && x->what != 2)
			continue;
		const struct vc_life *l = vc_classes_life(c, x->id);
		o->at[o->n++] = (struct vc_owner){ x->site ? x->site :
						  l       ? l->site :
							    0,
						  x->label ? x->label :
						  l        ? l->label :
							     0,
						  vc_classes_of_id(c, x->id),
						  x->size,
						  1,
						  x->size,
						  x->id,
						  x->at_start || (l && l->at_start) };
	}
	o->event = h == &c->r->last ? c->r->oom.event : h->event;
}

/* The bucket with the most allocated bytes; n > 0. */
static const struct vc_bucket *top_bucket(const struct vc_curve *v)
{
	const struct vc_bucket *top = &v->at[0];

	for (size_t i = 1; i < v->n; i++)
		if (v->at[i].allocated_max > top->allocated_max)
			top = &v->at[i];
	return top;
}

static void from_lives(struct vc_owners *o, const struct vc_classes *c, bool at_moment)
{
	const struct vc_lives *v = &c->r->lives;

	o->event = at_moment    ? c->r->moment.event :
		   c->r->curve.n ? top_bucket(&c->r->curve)->peak_event : c->r->stats.peak_event;
	o->of_allocated = !at_moment;
	for (size_t i = 0; i < v->n; i++) {
		const struct vc_life *l = &v->at[i];
		if (l->born <= o->event && l->died > o->event)
			o->at[o->n++] = (struct vc_owner){ l->site, l->label,
				(enum vc_slot)c->of_life[i], l->size, 1, l->size, l->id,
				l->at_start };
	}
}

struct place { uint32_t function, file, line, node; };

VC_COMPARE(compare_places, struct place,
	   VC_THEN(VC_ORDER(x->file, y->file), VC_THEN(VC_ORDER(x->line, y->line),
		   VC_THEN(VC_ORDER(x->function, y->function), VC_ORDER(x->node, y->node)))))

/* For each site the frame it is shown as, the same number for the same line of code however it was
 * reached. NULL: no memory. */
uint32_t *vc_owner_frames(const struct vc_meta *m)
{
	struct place *p = malloc((m->frames + 1) * sizeof(*p));
	uint32_t *first = malloc((m->frames + 1) * sizeof(*first));
	size_t head = 0;

	for (size_t i = 0; p && i < m->frames; i++)
		p[i] = (struct place){ m->frame[i].function, m->frame[i].file, m->frame[i].line,
				      (uint32_t)i };
	if (p)
		vc_sort(p, m->frames, sizeof(*p), compare_places);
	for (size_t i = 0; p && first && i < m->frames; i++) {
		if (p[i].file != p[head].file || p[i].line != p[head].line ||
		    p[i].function != p[head].function)
			head = i;
		first[p[i].node] = p[head].node;
	}
	free(p);
	if (!p) {
		free(first);
		return NULL;
	}
	return first;
}

static int show_frames(struct vc_owners *o, const struct vc_meta *m, struct vc_error *err)
{
	uint32_t *first;

	if (!m || !m->frames)
		return VC_OK;
	first = vc_owner_frames(m);
	VC_HAVE(first, "the list of call sites", err);
	for (size_t i = 0; i < o->n; i++)
		if (o->at[i].site < m->frames)
			o->at[i].site = first[vc_site_shown(m, o->at[i].site)];
	free(first);
	return VC_OK;
}

int vc_owners_gather(struct vc_owners *o, const struct vc_classes *c, struct vc_error *err)
{
	const struct vc_result *r = c->r;
	const struct vc_heap_map *h = vc_result_heap(r);
	size_t cap = h->n > r->lives.n ? h->n : r->lives.n;
	bool stale;

	*o = (struct vc_owners){ 0 };
	o->at = malloc((cap + 1) * sizeof(*o->at));
	VC_HAVE(o->at, "the list of owners", err);
	/* The heap of very many blocks may be that of a moment before (observers/peak.c). */
	stale = h->n && h != &r->last && r->moment.looked && h->event != r->moment.event &&
		r->lives.n && !r->lives.dropped;
	o->at_oom = h == &r->last;
	if ((h->n || o->at_oom) && !stale)
		from_heap(o, c, h);
	else
		from_lives(o, c, stale);
	for (size_t i = 0; i < o->n; i++)
		o->bytes += o->at[i].bytes;
	return VC_OK;
}

int vc_owners_init(struct vc_owners *o, const struct vc_classes *c, struct vc_error *err)
{
	int rc = vc_owners_gather(o, c, err);

	if (!rc)
		rc = show_frames(o, c->r->meta, err);
	if (rc)
		vc_owners_fini(o);
	else
		merge(o);
	return rc;
}

void vc_owners_fini(struct vc_owners *o)
{
	free(o->at);
	*o = (struct vc_owners){ 0 };
}

void vc_owner_text(const struct vc_meta *m, const struct vc_owner *o, char *buf, size_t cap)
{
	const char *label = vc_label_text(m, o->label);
	char many[32] = "";

	if (o->blocks > 1)
		snprintf(many, sizeof(many), " \xC3\x97%llu", (unsigned long long)o->blocks);
	if (*label)
		snprintf(buf, cap, "%s%s", label, many);
	else if (o->site && m)
		vc_site_text(m, o->site, buf, cap - strlen(many));
	else if (o->blocks > 1)
		snprintf(buf, cap, "%llu equal blocks%s", (unsigned long long)o->blocks,
			 o->at_start ? ", there at the start" : "");
	else
		snprintf(buf, cap, "block %llu", (unsigned long long)o->id);
	if (!*label && o->site && m)
		memcpy(buf + strlen(buf), many, strlen(many) + 1);
}
