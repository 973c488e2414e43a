/* SPDX-License-Identifier: Apache-2.0 */
/* convolutions.c - see convolutions.h */
#include "simulator/predict/convolutions.h"

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
	struct vc_convolution like = *c;
	char text[VC_PLANS_KEY];

	for (int i = 0; i < c->n; i++)
		if (i != 1)
			like.x[i] = like.y[i] = 1;
	vc_convolution_text(&like, "", text);
	return vc_hash_bytes(text, strlen(text));
}

struct reading {
	struct vc_convolutions *out;
	struct vc_map key; /* by label: key + 1; without one: UINT64_MAX */
	size_t calls, keys;
	uint32_t made, then; /* requests so far, and up to the plan that was executed last */
};

/* The key of a label, which is known from then on; VC_UNMATCHED: it is of no convolution. */
static int key_of(struct reading *r, const struct vc_meta *meta, uint32_t label, uint32_t *out)
{
	const uint64_t *known = vc_map_get(&r->key, label);
	struct vc_convolutions *c = r->out;
	struct vc_conv_key k = { .bytes = UINT64_MAX, .most = UINT64_MAX };

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

/* As much each time? */
static void note(struct vc_conv_key *k, uint64_t *known, uint64_t bytes)
{
	k->mixed |= *known != UINT64_MAX && *known != bytes;
	*known = bytes;
}

/* The call whose plan was executed just before, if nothing was asked for since. */
static struct vc_conv_call *going_on(const struct reading *r, uint32_t key)
{
	struct vc_conv_call *last = r->out->n ? &r->out->call[r->out->n - 1] : NULL;

	return last && r->made == r->then && last->key == key ? last : NULL;
}

static int add_nameless(struct vc_convolutions *c, uint32_t block)
{
	if (!vc_vec_one(c->nameless, c->others))
		return VC_ENOMEM;
	c->nameless[c->others++] = block;
	return VC_OK;
}

static int add_call(struct reading *r, const struct vc_allocations *m, size_t event)
{
	const struct vc_event *e = &m->trace->ev[event];
	struct vc_convolutions *c = r->out;
	uint32_t last = r->made - 1, key;
	bool in_last = e->addr && r->made && m->trace->ev[m->event[last]].addr == e->addr &&
		       m->take[last].size >= e->size;

	if (key_of(r, m->trace->meta, e->label, &key))
		return VC_ENOMEM;
	if (key == VC_UNMATCHED && in_last)
		return add_nameless(c, last);
	if (key == VC_UNMATCHED || (e->size && !in_last))
		return VC_OK;
	struct vc_conv_call *before = going_on(r, key);

	r->then = r->made;
	if (before) {
		before->tried = true;
		return VC_OK;
	}
	if (!vc_vec_room(c->call, r->calls, c->n + 1))
		return VC_ENOMEM;
	c->call[c->n++] = (struct vc_conv_call){
		.event = (uint32_t)event, .key = key, .block = in_last ? last : VC_UNMATCHED,
		.tried = in_last && m->take[last].size != e->size };
	return VC_OK;
}

static void note_all(struct vc_convolutions *c, const struct vc_allocations *m)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct vc_conv_call *call = &c->call[i];
		struct vc_conv_key *k = &c->key[call->key];

		note(k, call->tried ? &k->most : &k->bytes,
		     call->block == VC_UNMATCHED ? 0 : m->take[call->block].size);
	}
}

/* Workspace is asked for by the last request before the convolution is computed. */
int vc_convolutions_read(struct vc_convolutions *c, const struct vc_allocations *m,
			 struct vc_error *err)
{
	struct reading r = { .out = c };
	int rc = VC_OK;

	*c = (struct vc_convolutions){ .n = 0 };
	for (size_t i = 0; !rc && i < m->trace->n; i++) {
		const struct vc_event *e = &m->trace->ev[i];

		if (e->device != m->device)
			continue;
		if (e->kind == VC_EV_ALLOC)
			r.made++;
		else if (e->kind == VC_EV_PLAN)
			rc = add_call(&r, m, i);
	}
	free(r.key.slot);
	note_all(c, m);
	return rc ? vc_nomem(err, "the convolutions of a recording") : VC_OK;
}

void vc_convolutions_fini(struct vc_convolutions *c)
{
	VC_FREE(c->call, c->key, c->nameless);
	*c = (struct vc_convolutions){ .n = 0 };
}

/* ---- what cuDNN says ---- */

/* What the first plan that a program takes borrows, or the most of those that it tries. */
static bool choose(const struct vc_cudnn_plans *p, unsigned way, int type, bool tried,
		   uint64_t *bytes)
{
	uint32_t not = CONVERTED;
	bool any = false;

	if (way & VC_CONV_NO_TF32 && type == FLOAT32)
		not |= TENSOR_CORE;
	if (way & VC_CONV_DETERMINISTIC)
		not |= NONDETERMINISTIC;
	for (int i = 0; i < p->n && (tried || !any); i++) {
		uint64_t borrows = (uint64_t)p->at[i].bytes;

		if (p->at[i].notes & not)
			continue;
		*bytes = any && *bytes > borrows ? *bytes : borrows;
		any = true;
	}
	return any;
}

/* A program takes the first plan of the first list, and looks into the other where there is none
 * for it; it tries those of both. */
bool vc_convolutions_plan(const struct vc_conv_answers *a, const struct vc_conv_key *like,
			  const struct vc_convolution *c, bool tried, uint64_t *bytes)
{
	static const char *const list[] = { "", "/fallback" };
	char key[VC_PLANS_KEY];
	struct vc_cudnn_plans p;
	bool any = false;

	for (size_t i = 0; i < sizeof(list) / sizeof(*list) && (tried || !any); i++) {
		uint64_t borrows = 0;

		vc_convolution_text(c, list[i], key);
		if (!a->from->plans(a->from->arg, like->version, key, &p))
			return false;
		if (!choose(&p, a->way, c->type, tried, &borrows))
			continue;
		*bytes = any && *bytes > borrows ? *bytes : borrows;
		any = true;
	}
	return any;
}

bool vc_convolutions_agree(const struct vc_conv_answers *a, const struct vc_conv_key *k,
			   bool *known)
{
	bool agree = !k->mixed;
	uint64_t bytes;

	*known = true;
	for (int tried = 0; tried < 2; tried++) {
		uint64_t seen = tried ? k->most : k->bytes;

		if (seen == UINT64_MAX)
			continue;
		*known &= vc_convolutions_plan(a, k, &k->c, tried, &bytes);
		agree &= *known && bytes == seen;
	}
	return agree;
}

struct vc_conv_answers vc_convolutions_hold(const struct vc_answers *from,
					    const struct vc_convolutions *c, size_t n)
{
	struct vc_conv_answers best = { .from = from };

	for (unsigned way = 0; way < VC_CONV_WAYS; way++) {
		struct vc_conv_answers a = { .from = from, .way = way };

		for (size_t r = 0; r < n; r++)
			for (size_t i = 0; i < c[r].keys; i++) {
				bool known, agree = vc_convolutions_agree(&a, &c[r].key[i], &known);

				a.known += known;
				a.agreed += agree;
			}
		if (a.agreed > best.agreed || !way)
			best = a;
	}
	return best;
}

/* ---- the same convolution in another recording ---- */

uint32_t vc_convolutions_match(const struct vc_convolutions *c, size_t key,
			       const struct vc_convolutions *other)
{
	size_t before = 0, mine = 0, theirs = 0;
	uint32_t found = VC_UNMATCHED;

	for (size_t i = 0; i < c->keys; i++) {
		before += i < key && c->key[i].group == c->key[key].group;
		mine += c->key[i].group == c->key[key].group;
	}
	for (size_t i = 0; i < other->keys; i++)
		if (other->key[i].group == c->key[key].group && theirs++ == before)
			found = (uint32_t)i;
	return theirs == mine ? found : VC_UNMATCHED;
}

/* ---- at another value ---- */

/* A line through all that was seen, where it gives a whole number of one or more. */
static bool on_line(const double *seen, const double *x, size_t n, double at, int64_t *out)
{
	size_t far = 0;
	double slope = 0, there;

	for (size_t i = 1; i < n; i++)
		if (fabs(x[i] - x[0]) > fabs(x[far] - x[0]))
			far = i;
	if (far)
		slope = (seen[far] - seen[0]) / (x[far] - x[0]);
	for (size_t i = 1; i < n; i++)
		if (fabs(seen[0] + slope * (x[i] - x[0]) - seen[i]) > WHOLE)
			return false;
	there = seen[0] + slope * (at - x[0]);
	if (!(there < INT32_MAX)) /* nor is there a tensor with such a size */
		return false;
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

/* One size of all that was seen: the i-th from `at` bytes on. */
static bool size_at(const struct vc_convolution *const *seen, size_t offset, int i, const double *x,
		    size_t n, double at, struct vc_convolution *out)
{
	double sizes[VC_CONV_SEEN] = { 0 };
	int64_t size;

	for (size_t k = 0; k < n; k++) {
		memcpy(&size, (const char *)seen[k] + offset + (size_t)i * sizeof(size),
		       sizeof(size));
		sizes[k] = (double)size;
	}
	if (!on_line(sizes, x, n, at, &size))
		return false;
	memcpy((char *)out + offset + (size_t)i * sizeof(size), &size, sizeof(size));
	return true;
}

bool vc_convolutions_at(const struct vc_convolution *const *seen, const double *x, size_t n,
			double at, struct vc_convolution *out)
{
	bool known = follows(seen, n);

	*out = *seen[0];
	for (int i = 0; i < out->n; i++)
		if (!size_at(seen, offsetof(struct vc_convolution, x), i, x, n, at, out) ||
		    !size_at(seen, offsetof(struct vc_convolution, w), i, x, n, at, out) ||
		    (!known &&
		     !size_at(seen, offsetof(struct vc_convolution, y), i, x, n, at, out)))
			return false;
	return !known || vc_convolution_output(out, out->y);
}
