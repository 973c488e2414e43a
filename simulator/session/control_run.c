/* SPDX-License-Identifier: Apache-2.0 */
/* control_run.c - see control_run.h */
#include "simulator/session/control_run.h"

#include "common/hash.h"
#include "common/vec.h"
#include "simulator/session/job.h"

enum { GRAM = 4,   /* requests in a row that say where both go on together */
       FAR = 4096  /* requests of the recording that may lie between */ };
#define ROW 0.9    /* share of blocks that live equally long where data decide sizes alone */

/* The requests of one side, in order, as the sizes that were asked for. */
struct side {
	const struct vc_recording *rec;
	uint64_t *size, *life, *stream, n; /* life: requests until it is given back */
	uint64_t *freed;                   /* frees before it, of all */
	uint64_t order;                    /* of requests and frees, as a number */
};

static int read_side(const struct vc_recording *rec, struct side *s, struct vc_error *err)
{
	const struct vc_trace *t = &rec->trace;
	uint64_t most = 0, freed = 0, words[3], *at;

	*s = (struct side){ .rec = rec };
	for (size_t i = 0; i < t->n; i++)
		most = t->ev[i].kind == VC_EV_ALLOC && t->ev[i].id > most ? t->ev[i].id : most;
	s->size = calloc(t->n + 1, sizeof(*s->size));
	s->life = calloc(t->n + 1, sizeof(*s->life));
	s->stream = calloc(t->n + 1, sizeof(*s->stream));
	s->freed = calloc(t->n + 1, sizeof(*s->freed));
	at = calloc(most + 1, sizeof(*at)); /* one more than the place of a block */
	if (!s->size || !s->life || !s->stream || !s->freed || !at) {
		free(at);
		return vc_nomem(err, "the requests of a recording");
	}
	for (size_t i = 0; i < t->n; i++) {
		const struct vc_event *ev = &t->ev[i];
		bool frees = ev->kind == VC_EV_FREE && ev->id <= most && at[ev->id];

		if (ev->device != rec->device->device || (ev->kind != VC_EV_ALLOC && !frees))
			continue;
		if (ev->kind == VC_EV_ALLOC) {
			s->size[s->n] = ev->size;
			s->stream[s->n] = ev->stream;
			s->freed[s->n] = freed;
			s->life[s->n++] = UINT64_MAX;
			at[ev->id] = s->n;
		} else {
			s->life[at[ev->id] - 1] = s->n - at[ev->id];
			freed++;
		}
		words[0] = s->order;
		words[1] = ev->kind == VC_EV_ALLOC ? ev->size : at[ev->id];
		words[2] = ev->kind;
		s->order = vc_hash_bytes(words, sizeof(words));
	}
	free(at);
	return VC_OK;
}

static void release(struct side *s)
{
	VC_FREE(s->size, s->life, s->stream, s->freed);
}

/* ---- where both go on together ---- */

struct gram { uint64_t hash, at; };

VC_COMPARE(by_hash, struct gram, VC_THEN(VC_ORDER(x->hash, y->hash), VC_ORDER(x->at, y->at)))

static struct gram *grams_of(const struct side *s, size_t *n, struct vc_error *err)
{
	struct gram *g;

	*n = s->n >= GRAM ? s->n - GRAM + 1 : 0;
	g = calloc(*n + 1, sizeof(*g));
	if (!g) {
		vc_nomem(err, "the requests of a recording");
		return NULL;
	}
	for (size_t i = 0; i < *n; i++)
		g[i] = (struct gram){ vc_hash_bytes(&s->size[i], GRAM * sizeof(*s->size)), i };
	vc_sort(g, *n, sizeof(*g), by_hash);
	return g;
}

/* The first place from `from` on of the requests that stand at `size`; UINT64_MAX: none. */
static uint64_t next_place(const struct gram *g, size_t n, const uint64_t *size, uint64_t from)
{
	uint64_t hash = vc_hash_bytes(size, GRAM * sizeof(*size));
	size_t i = vc_first_from(g, n, hash, hash);

	while (i < n && g[i].hash == hash && g[i].at < from)
		i++;
	return i < n && g[i].hash == hash ? g[i].at : UINT64_MAX;
}

/* From i and j on: the nearest pair of places where both ask for the same, several in a row. */
static void resume(const struct side *a, const struct side *b, const struct gram *g, size_t n,
		   uint64_t *i, uint64_t *j)
{
	uint64_t best = UINT64_MAX, x = a->n, y = b->n;

	for (uint64_t k = 0; k < FAR && k < best && *i + k + GRAM <= a->n; k++) {
		uint64_t at = next_place(g, n, &a->size[*i + k], *j);

		if (at == UINT64_MAX || k + (at - *j) >= best)
			continue;
		best = k + (at - *j);
		x = *i + k;
		y = at;
	}
	*i = x;
	*j = y;
}

/* ---- what differs ---- */

static int note(struct vc_control_run *t, struct vc_differs d, struct vc_error *err)
{
	uint64_t more = vc_minus(d.recorded, d.run), less = vc_minus(d.run, d.recorded);

	t->more = more > t->more ? more : t->more;
	t->less = less > t->less ? less : t->less;
	if (!vc_vec_room(t->differs, t->differ_cap, t->differ + 1))
		return vc_nomem(err, "what differs");
	t->differs[t->differ++] = d;
	return VC_OK;
}

/* Frees of what both have, between request `from` - 1 and request i, which only the recording makes
 * as it does those in between. */
static uint64_t frees_before(const struct side *a, uint64_t from, uint64_t i)
{
	uint64_t n = a->freed[i] - (from ? a->freed[from - 1] : 0);

	for (uint64_t k = from; k < i; k++)
		n -= a->life[k] < i - k;
	return n;
}

/* Requests i..x of the recording stand where the run has j..y: as many of both as there are differ
 * in size, the others are one side's. */
static int count_hole(struct vc_control_run *t, const struct side *a, const struct side *b,
		      uint64_t i, uint64_t x, uint64_t j, uint64_t y, struct vc_error *err)
{
	for (; i < x && j < y; i++, j++) {
		t->resized++;
		t->at_once += !a->life[i] && !b->life[j];
		VC_TRY(note(t, (struct vc_differs){ j, a->size[i], b->size[j], a->life[i], 0 },
			    err));
	}
	for (uint64_t from = i; i < x; i++) {
		t->only_recorded++;
		t->at_once += !a->life[i];
		VC_TRY(note(t, (struct vc_differs){ j, a->size[i], 0, a->life[i],
						    frees_before(a, from, i) }, err));
	}
	for (; j < y; j++) {
		t->only_run++;
		t->at_once += !b->life[j];
		VC_TRY(note(t, (struct vc_differs){ j, 0, b->size[j], 0, 0 }, err));
	}
	return VC_OK;
}

/* Do both go on alike behind one request that differs? */
static bool is_resized(const struct side *a, const struct side *b, uint64_t i, uint64_t j)
{
	return i == a->n ? j == b->n : j < b->n && a->size[i] == b->size[j];
}

static int compare(struct vc_control_run *t, const struct side *a, const struct side *b,
		   struct vc_error *err)
{
	size_t n;
	struct gram *g = grams_of(b, &n, err);
	uint64_t i = 0, j = 0;
	bool began = !a->rec->device->has_start;
	int r = VC_OK;

	if (!g)
		return VC_ENOMEM;
	while (r == VC_OK && (i < a->n || j < b->n)) {
		uint64_t x = i, y = j;

		if (i < a->n && j < b->n && a->size[i] == b->size[j] && (began || j)) {
			t->equal++;
			t->restreamed += !a->stream[i] != !b->stream[j];
			i++;
			j++;
			continue;
		}
		bool resized = began && i < a->n && j < b->n && is_resized(a, b, i + 1, j + 1);

		if (resized) {
			x = i + 1;
			y = j + 1;
		} else {
			resume(a, b, g, n, &x, &y);
		}
		/* one that begins later or ends earlier says nothing of the rest */
		r = count_hole(t, a, b, i, x, resized || (began && x < a->n) ? j : y, y, err);
		began = true;
		i = x;
		j = y;
	}
	free(g);
	return r;
}

/* Where hardly a size is equal, sizes do not say which request is which. If data decide nothing but
 * them, places do. */
static int compare_places(struct vc_control_run *t, const struct side *a, const struct side *b,
			  struct vc_error *err)
{
	struct vc_control_run placed = { .requests = t->requests, .same = t->same };
	uint64_t alike = 0;
	int r = VC_OK;

	for (uint64_t i = 0; a->n == b->n && i < a->n; i++)
		alike += a->life[i] == b->life[i];
	if (a->n != b->n || (double)alike < ROW * (double)a->n)
		return VC_OK;
	for (uint64_t i = 0; r == VC_OK && i < a->n; i++) {
		if (a->size[i] == b->size[i]) {
			placed.equal++;
			placed.restreamed += !a->stream[i] != !b->stream[i];
		} else {
			placed.placed++;
			r = count_hole(&placed, a, b, i, i + 1, i, i + 1, err);
		}
	}
	vc_control_fini(t);
	*t = placed;
	return r;
}

int vc_followed_peaks(const struct vc_recording *rec, struct vc_peaks *out, struct vc_error *err)
{
	struct vc_result r;

	VC_TRY(vc_job_follow(rec, rec->torch, NULL, &r, err));
	*out = (struct vc_peaks){ r.stats.peak_allocated, r.stats.peak_reserved };
	vc_result_fini(&r);
	return VC_OK;
}

int vc_control_compare(const struct vc_recording *recorded, const struct vc_recording *run,
		    struct vc_control_run *out, struct vc_error *err)
{
	struct side a = { 0 }, b = { 0 };
	struct vc_peaks was = { 0 }, is = { 0 };
	int r = read_side(recorded, &a, err);

	*out = (struct vc_control_run){ 0 };
	if (r == VC_OK)
		r = read_side(run, &b, err);
	if (r == VC_OK) {
		out->requests = a.n;
		out->same = a.n == b.n && a.order == b.order;
		r = compare(out, &a, &b, err);
		if (r == VC_OK && 2 * out->equal < out->requests && !recorded->device->has_start)
			r = compare_places(out, &a, &b, err);
	}
	if (r == VC_OK)
		r = vc_followed_peaks(recorded, &was, err);
	if (r == VC_OK)
		r = vc_followed_peaks(run, &is, err);
	out->recorded = was.peak_reserved;
	out->run = is.peak_reserved;
	out->same &= out->recorded == out->run && !out->restreamed;
	release(&a);
	release(&b);
	return r;
}

void vc_control_fini(struct vc_control_run *t)
{
	free(t->differs);
	*t = (struct vc_control_run){ 0 };
}

void vc_control_interval(const struct vc_control_run *t, uint64_t peak, uint64_t *low,
			 uint64_t *high)
{
	double off = (double)t->recorded - (double)t->run, down = 0, up = 0;
	double grows = t->run && peak > t->run ? (double)peak / (double)t->run : 1;
	const double by[] = { off, off * grows, (double)t->more * grows, -(double)t->less * grows };

	for (size_t i = 0; !t->same && i < sizeof(by) / sizeof(*by); i++) {
		down = by[i] < down ? by[i] : down;
		up = by[i] > up ? by[i] : up;
	}
	*low = -down >= (double)peak ? 0 : peak - (uint64_t)-down;
	*high = peak + (uint64_t)up;
}

char *vc_control_words(const struct vc_control_run *t, char *buf, size_t n)
{
	size_t at = 0;

	buf[0] = '\0';
	if (!t->resized && !t->only_recorded && !t->only_run && !t->restreamed)
		return buf;
	const struct { uint64_t n; const char *what; } part[] = {
		{ t->resized, "have another size" },
		{ t->only_recorded, "only the recording makes" },
		{ t->only_run, "only the dry run makes" },
		{ t->restreamed, "are on another stream" },
		{ t->at_once, "of these are given back at once, as workspaces are" } };
	for (size_t i = 0; i < sizeof(part) / sizeof(*part) && at < n; i++)
		if (part[i].n)
			at += (size_t)snprintf(buf + at, n - at, "%s%" PRIu64 " %s",
					       at ? ", " : "", part[i].n, part[i].what);
	return buf;
}
