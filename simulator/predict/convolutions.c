/* SPDX-License-Identifier: Apache-2.0 */
/* convolutions.c - see convolutions.h */
#include "simulator/predict/convolutions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/map.h"
#include "common/vec.h"

/* cudnnBackendNumericalNote_t: tensor cores, inputs converted down, not deterministic */
enum { TENSOR_CORE = 1 << 0, CONVERTED = 1 << 1, NONDETERMINISTIC = 1 << 4 };
enum { FLOAT32 = 0 }; /* cudnnDataType_t */
#define WHOLE 1e-6

/* ---- reading ---- */

/* "cudnn/9.19.0 forward f32 ..." */
static bool read_label(const char *label, struct vc_conv_key *k)
{
	size_t skip = strlen(VC_LABEL_CUDNN), n;

	if (strncmp(label, VC_LABEL_CUDNN, skip) != 0)
		return false;
	label += skip;
	n = strcspn(label, " ");
	if (!label[n] || n >= sizeof(k->version))
		return false;
	memcpy(k->version, label, n);
	k->version[n] = '\0';
	return vc_convolution_read(label + n + 1, &k->c);
}

/* Of all that does not follow a parameter: not the number of samples, nor sides. */
static uint64_t group_of(const struct vc_convolution *c)
{
	int64_t all[5 + 2 * VC_CONVOLUTION_SIZES + 3 * VC_CONVOLUTION_SPATIAL], *at = all;

	*at++ = c->direction;
	*at++ = c->type;
	*at++ = c->channels_last;
	*at++ = c->n;
	*at++ = c->x[1];
	for (int i = 0; i < VC_CONVOLUTION_SIZES; i++)
		*at++ = c->w[i];
	*at++ = c->y[1];
	for (int i = 0; i < VC_CONVOLUTION_SPATIAL; i++) {
		*at++ = c->stride[i];
		*at++ = c->pad[i];
		*at++ = c->dilation[i];
	}
	return vc_hash_bytes(all, (size_t)(at - all) * sizeof(*all));
}

struct reading {
	struct vc_convolutions *out;
	struct vc_map key; /* by label: key + 1; without one: UINT64_MAX */
	size_t calls, keys;
};

/* The key of a label, which is known from then on; VC_UNMATCHED: it is of no convolution. */
static int key_of(struct reading *r, const struct vc_meta *meta, uint32_t label, uint32_t *out)
{
	const uint64_t *known = vc_map_get(&r->key, label);
	struct vc_convolutions *c = r->out;
	struct vc_conv_key k = { .bytes = UINT64_MAX };

	*out = known && *known != UINT64_MAX ? (uint32_t)(*known - 1) : VC_UNMATCHED;
	if (known)
		return VC_OK;
	if (label >= meta->strings || !read_label(meta->string[label], &k))
		return vc_map_put(&r->key, label, UINT64_MAX) ? VC_OK : VC_ENOMEM;
	k.group = group_of(&k.c);
	if (!vc_vec_room(c->key, r->keys, c->keys + 1) ||
	    !vc_map_put(&r->key, label, c->keys + 1))
		return VC_ENOMEM;
	*out = (uint32_t)c->keys;
	c->key[c->keys++] = k;
	return VC_OK;
}

static int add_call(struct reading *r, const struct vc_allocations *m, size_t event, uint32_t last)
{
	const struct vc_event *e = &m->trace->ev[event];
	struct vc_convolutions *c = r->out;
	uint32_t key;
	bool borrows = e->size && last != VC_UNMATCHED && m->take[last].size == e->size &&
		       m->trace->ev[m->event[last]].addr == e->addr;

	if (key_of(r, m->trace->meta, e->label, &key))
		return VC_ENOMEM;
	if (key == VC_UNMATCHED || (e->size && !borrows))
		return VC_OK;
	if (!vc_vec_room(c->call, r->calls, c->n + 1))
		return VC_ENOMEM;
	c->call[c->n++] = (struct vc_conv_call){ .event = (uint32_t)event, .key = key,
						 .block = borrows ? last : VC_UNMATCHED };
	c->key[key].mixed |= c->key[key].bytes != UINT64_MAX && c->key[key].bytes != e->size;
	c->key[key].bytes = e->size;
	return VC_OK;
}

struct place { uint64_t group; uint32_t call; };
VC_COMPARE(by_group, struct place, VC_THEN(VC_ORDER(x->group, y->group),
					   VC_ORDER(x->call, y->call)))

static int sort_calls(struct vc_convolutions *c)
{
	struct place *at = malloc((c->n + 1) * sizeof(*at));

	c->order = malloc((c->n + 1) * sizeof(*c->order));
	for (size_t i = 0; at && c->order && i < c->n; i++)
		at[i] = (struct place){ c->key[c->call[i].key].group, (uint32_t)i };
	if (at && c->order)
		qsort(at, c->n, sizeof(*at), by_group);
	for (size_t i = 0; at && c->order && i < c->n; i++)
		c->order[i] = at[i].call;
	free(at);
	return at && c->order ? VC_OK : VC_ENOMEM;
}

/* Workspace is asked for by the last request before the convolution is computed. */
int vc_convolutions_read(struct vc_convolutions *c, const struct vc_allocations *m,
			 struct vc_error *err)
{
	struct reading r = { .out = c };
	uint32_t made = 0;
	int rc = VC_OK;

	*c = (struct vc_convolutions){ .n = 0 };
	for (size_t i = 0; !rc && i < m->trace->n; i++) {
		const struct vc_event *e = &m->trace->ev[i];

		if (e->device != m->device)
			continue;
		if (e->kind == VC_EV_ALLOC)
			made++;
		else if (e->kind == VC_EV_PLAN)
			rc = add_call(&r, m, i, made ? made - 1 : VC_UNMATCHED);
	}
	free(r.key.slot);
	if (!rc)
		rc = sort_calls(c);
	return rc ? vc_nomem(err, "the convolutions of a recording") : VC_OK;
}

void vc_convolutions_fini(struct vc_convolutions *c)
{
	VC_FREE(c->call, c->key, c->order);
	*c = (struct vc_convolutions){ .n = 0 };
}

/* ---- what cuDNN says ---- */

/* The first plan that a program takes. */
static bool choose(const struct vc_cudnn_plans *p, unsigned way, int type, uint64_t *bytes)
{
	uint32_t not = CONVERTED;

	if (way & VC_CONV_NO_TF32 && type == FLOAT32)
		not |= TENSOR_CORE;
	if (way & VC_CONV_DETERMINISTIC)
		not |= NONDETERMINISTIC;
	for (int i = 0; i < p->n; i++)
		if (!(p->at[i].notes & not)) {
			*bytes = (uint64_t)p->at[i].bytes;
			return true;
		}
	return false;
}

bool vc_convolutions_plan(const struct vc_conv_answers *a, const struct vc_conv_key *like,
			  const struct vc_convolution *c, uint64_t *bytes)
{
	static const char *const list[] = { "", "/fallback" };
	char key[VC_PLANS_KEY];
	struct vc_cudnn_plans p;

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		vc_convolution_text(c, list[i], key);
		if (!a->from->plans(a->from->arg, like->version, key, &p))
			return false;
		if (choose(&p, a->way, c->type, bytes))
			return true;
	}
	return false;
}

struct vc_conv_answers vc_convolutions_hold(const struct vc_answers *from,
					    const struct vc_convolutions *c, size_t n)
{
	struct vc_conv_answers best = { .from = from };

	for (unsigned way = 0; way < VC_CONV_WAYS; way++) {
		struct vc_conv_answers a = { .from = from, .way = way };

		for (size_t r = 0; r < n; r++)
			for (size_t i = 0; i < c[r].keys; i++) {
				const struct vc_conv_key *k = &c[r].key[i];
				uint64_t bytes;

				if (!vc_convolutions_plan(&a, k, &k->c, &bytes))
					continue;
				a.known++;
				a.agreed += !k->mixed && bytes == k->bytes;
			}
		if (a.agreed > best.agreed || !way)
			best = a;
	}
	return best;
}

/* ---- the same convolution in another recording ---- */

/* Where the group ends that begins at place `from` of the order. */
static size_t end_of(const struct vc_convolutions *c, size_t from)
{
	uint64_t group = c->key[c->call[c->order[from]].key].group;

	while (from < c->n && c->key[c->call[c->order[from]].key].group == group)
		from++;
	return from;
}

/* The kinds of convolutions of places [from, to) in order of their first time. How many: 0 where
 * they are more than `most`. */
static size_t kinds(const struct vc_convolutions *c, size_t from, size_t to, uint32_t *out,
		    size_t most)
{
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		uint32_t key = c->call[c->order[i]].key;
		size_t k = 0;

		while (k < n && out[k] != key)
			k++;
		if (k == n && n == most)
			return 0;
		if (k == n)
			out[n++] = key;
	}
	return n;
}

enum { KINDS = 32 };

/* Two groups of convolutions that may be the same: call by call where there are as many, else (one
 * recording makes more steps) kind by kind. */
static void match_group(const struct vc_convolutions *c, size_t from, size_t to,
			const struct vc_convolutions *o, size_t there, size_t end, uint32_t *match)
{
	uint32_t mine[KINDS], others[KINDS];
	size_t n = 0;

	if (to - from == end - there) {
		for (size_t i = from; i < to; i++)
			match[c->order[i]] = o->call[o->order[there + i - from]].key;
		return;
	}
	n = kinds(c, from, to, mine, KINDS);
	if (!n || n != kinds(o, there, end, others, KINDS))
		return;
	for (size_t i = from; i < to; i++)
		for (size_t k = 0; k < n; k++)
			if (mine[k] == c->call[c->order[i]].key)
				match[c->order[i]] = others[k];
}

uint32_t *vc_convolutions_match(const struct vc_convolutions *c,
				const struct vc_convolutions *other)
{
	uint32_t *match = malloc((c->n + 1) * sizeof(*match));
	size_t there = 0;

	for (size_t i = 0; match && i < c->n; i++)
		match[i] = VC_UNMATCHED;
	for (size_t from = 0, to; match && from < c->n; from = to) {
		uint64_t group = c->key[c->call[c->order[from]].key].group;

		to = end_of(c, from);
		while (there < other->n &&
		       other->key[other->call[other->order[there]].key].group < group)
			there++;
		if (there < other->n &&
		    other->key[other->call[other->order[there]].key].group == group)
			match_group(c, from, to, other, there, end_of(other, there), match);
	}
	return match;
}

/* ---- at another value ---- */

struct number { double seen[VC_CONV_SEEN]; };

/* A line through all that was seen, where it gives a whole number of one or more. */
static bool on_line(const struct number *v, const double *x, size_t n, double at, int64_t *out)
{
	size_t far = 0;
	double slope = 0, there;

	for (size_t i = 1; i < n; i++)
		if (fabs(x[i] - x[0]) > fabs(x[far] - x[0]))
			far = i;
	if (far)
		slope = (v->seen[far] - v->seen[0]) / (x[far] - x[0]);
	for (size_t i = 1; i < n; i++)
		if (fabs(v->seen[0] + slope * (x[i] - x[0]) - v->seen[i]) > WHOLE)
			return false;
	there = v->seen[0] + slope * (at - x[0]);
	*out = (int64_t)llround(there);
	return *out >= 1 && fabs(there - (double)*out) <= WHOLE;
}

/* Does y follow from x in all that was seen? */
static bool follows(const struct vc_convolution *const *seen, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t y[VC_CONVOLUTION_SIZES];

		if (!vc_convolution_output(seen[i], y) || memcmp(y, seen[i]->y, sizeof(y)) != 0)
			return false;
	}
	return true;
}

bool vc_convolutions_at(const struct vc_convolution *const *seen, const double *x, size_t n,
			double at, struct vc_convolution *out)
{
	bool known = follows(seen, n);

	*out = *seen[0];
	for (int i = 0; i < out->n; i++) {
		struct number vx, vy;

		if (i == 1)
			continue; /* channels are those of the group */
		for (size_t k = 0; k < n; k++) {
			vx.seen[k] = (double)seen[k]->x[i];
			vy.seen[k] = (double)seen[k]->y[i];
		}
		if (!on_line(&vx, x, n, at, &out->x[i]) ||
		    (!known && !on_line(&vy, x, n, at, &out->y[i])))
			return false;
	}
	return !known || vc_convolution_output(out, out->y);
}
