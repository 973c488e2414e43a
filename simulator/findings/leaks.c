/* SPDX-License-Identifier: Apache-2.0 */
/* leaks.c - see leaks.h */
#include "simulator/findings/leaks.h"

#include "common/site.h"
#include "common/vec.h"
#include "simulator/anatomy/anatomy.h"

#define WORTH (1u << 20)  /* bytes in all; the last loss of each step is less */
#define SURE 0.8          /* of a pattern: below, layers pass for steps */
enum { FEWEST = 4 };

/* A block that is never freed while the program works: born in a step, by a place. */
struct kept { uint64_t key, size; uint32_t step, site; };

struct search {
	const struct vc_session *s;
	uint32_t *step;           /* by event; UINT32_MAX: in none */
	uint32_t steps;
	bool marked;              /* the recording says where its steps end, so nothing else may */
	struct kept *at; size_t n;
};

/* ---- steps ---- */

static bool by_marks(struct search *f)
{
	const struct vc_trace *t = &f->s->rec->trace;
	uint32_t now = 0;

	for (size_t i = 0; i < t->n; i++) {
		f->step[i] = now;
		now += t->ev[i].kind == VC_EV_MARK && t->ev[i].flags == VC_MARK_STEP;
	}
	f->steps = now + 1;
	f->marked = now > 0;
	return now >= FEWEST;
}

static bool by_iterations(struct search *f)
{
	const struct vc_trace *t = &f->s->rec->trace;
	struct vc_anatomy a;

	if (vc_anatomy_of(&a, t, f->s->rec->device->device, NULL) < 0)
		return false;
	for (size_t i = 0; i < a.n; i++)
		f->step[a.block[i].event] = a.block[i].iteration;
	f->steps = a.confidence >= VC_ANATOMY_SURE ? a.iterations : 0;
	vc_anatomy_fini(&a);
	return f->steps >= FEWEST;
}

static int by_size(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return (a > b) - (a < b);
}

bool vc_is_one_pass(const struct vc_trace *t, uint16_t device, const struct vc_pattern_steps *p)
{
	uint64_t *size = calloc(t->n + 1, sizeof(*size)), n = 0, all = 0;
	size_t sizes = 0;
	bool found = false;

	for (size_t i = 0; i < t->n; i++)
		all += t->ev[i].device == device &&
		       (t->ev[i].kind == VC_EV_ALLOC || t->ev[i].kind == VC_EV_FREE);
	if (!size || p->steps < 4 || p->steps * p->events * 10 < all * 7)
		all = 0;
	for (size_t i = 0; i < t->n && all; i++) {
		const struct vc_event *e = &t->ev[i];

		if (e->device != device || (e->kind != VC_EV_ALLOC && e->kind != VC_EV_FREE))
			continue;
		n++;
		if (e->kind == VC_EV_ALLOC && n >= all / 4 && n < all / 4 * 3)
			size[sizes++] = e->size;
		if (n == all / 4 * 3)
			vc_sort(size, sizes, sizeof(*size), by_size);
		if (e->kind == VC_EV_ALLOC && n + p->events > all && n > all / 4 * 3 &&
		    e->size >= 1u << 20)
			found = found || !bsearch(&e->size, size, sizes, sizeof(*size), by_size);
	}
	free(size);
	return found;
}

/* Steps of equal length, counted back from the end: which event begins one does not matter here. */
static bool by_pattern(struct search *f)
{
	const struct vc_trace *t = &f->s->rec->trace;
	struct vc_pattern *p = vc_pattern_new(f->s->rec->device->device, NULL);
	struct vc_pattern_steps found = { 0 };
	uint64_t left = 0;

	if (p && vc_pattern_add(p, t->ev, t->n, NULL) == VC_OK)
		vc_pattern_find(p, &found, NULL);
	vc_pattern_free(p);
	if (found.steps < FEWEST || found.confidence < SURE || f->s->rec->device->ends_in_oom ||
	    vc_is_one_pass(t, f->s->rec->device->device, &found))
		return false;
	f->steps = (uint32_t)found.steps;
	for (size_t i = t->n; i-- > 0;) {
		uint64_t back = left / found.events;

		f->step[i] = back < found.steps ? (uint32_t)(found.steps - 1 - back) : UINT32_MAX;
		left += t->ev[i].device == f->s->rec->device->device &&
			(t->ev[i].kind == VC_EV_ALLOC || t->ev[i].kind == VC_EV_FREE);
	}
	return true;
}

/* ---- what they keep ---- */

static void collect(struct search *f)
{
	const struct vc_trace *t = &f->s->rec->trace;
	uint16_t device = f->s->rec->device->device;
	uint8_t *freed = calloc((f->s->rec->meta->max_id >> 3) + 1, 1);
	bool goes_on = false; /* what is freed behind the last allocation goes with the program */

	f->at = freed ? malloc((t->n + 1) * sizeof(*f->at)) : NULL;
	for (size_t i = t->n; f->at && i-- > 0;) {
		const struct vc_event *e = &t->ev[i];
		uint32_t site;

		if (e->device != device || e->id > f->s->rec->meta->max_id)
			continue;
		goes_on |= e->kind == VC_EV_ALLOC;
		if (e->kind == VC_EV_FREE && goes_on)
			freed[e->id >> 3] |= (uint8_t)(1u << (e->id & 7));
		if (e->kind != VC_EV_ALLOC || freed[e->id >> 3] >> (e->id & 7) & 1 ||
		    f->step[i] == UINT32_MAX || !f->step[i] || f->step[i] + 1 >= f->steps)
			continue;
		site = vc_site_shown(f->s->rec->meta, e->site);
		f->at[f->n++] = (struct kept){ site ? site : UINT64_C(1) << 63 | e->size, e->size,
					       f->step[i], site };
	}
	free(freed);
}

VC_COMPARE(by_key, struct kept,
	   VC_THEN(VC_ORDER(x->key, y->key), VC_ORDER(x->step, y->step)))

static struct vc_leak judge(struct search *f)
{
	struct vc_leak l = { 0 };

	vc_sort(f->at, f->n, sizeof(*f->at), by_key);
	for (size_t i = 0, k; i < f->n; i = k) {
		uint64_t bytes = 0;
		uint32_t steps = 0;

		for (k = i; k < f->n && f->at[k].key == f->at[i].key; k++) {
			steps += k == i || f->at[k].step != f->at[k - 1].step;
			bytes += f->at[k].size;
		}
		if (steps != f->steps - 2)
			continue;
		l.steps = steps;
		l.bytes += bytes;
		l.blocks += k - i;
		if (bytes > l.site_bytes) {
			l.site_bytes = bytes;
			l.site = f->at[i].site;
			l.size = f->at[i].size;
		}
	}
	return l.bytes >= WORTH ? l : (struct vc_leak){ 0 };
}

struct vc_leak vc_leak_find(const struct vc_session *s)
{
	struct search f = { .s = s };
	struct vc_leak l = { 0 };

	if (s->rec->streamed || !s->rec->trace.n || !s->rec->device)
		return l;
	f.step = malloc(s->rec->trace.n * sizeof(*f.step));
	for (size_t i = 0; f.step && i < s->rec->trace.n; i++)
		f.step[i] = UINT32_MAX;
	if (f.step && (by_marks(&f) || (!f.marked && (by_pattern(&f) || by_iterations(&f)))))
		collect(&f);
	if (f.n)
		l = judge(&f);
	VC_FREE(f.step, f.at);
	return l;
}

void vc_leak_report(struct vc_emit *e, const struct vc_meta *m, const struct vc_leak *l)
{
	char where[400];

	if (!l->steps) {
		vc_emit_null(e, "leak", NULL);
		return;
	}
	vc_emit_object(e, "leak", NULL);
	vc_emit_uint(e, "steps", NULL, l->steps);
	vc_emit_uint(e, "bytes", NULL, l->bytes);
	vc_emit_uint(e, "blocks", NULL, l->blocks);
	vc_site_text(m, l->site, where, sizeof(where));
	vc_emit_text(e, "site", NULL, *where ? where : NULL);
	vc_emit_uint(e, "site_bytes", NULL, l->site_bytes);
	vc_emit_end(e);
}
