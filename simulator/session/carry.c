/* SPDX-License-Identifier: Apache-2.0 */
/* carry.c - see carry.h. The k-th request of the control run is the k-th of the other: the same
 * program makes them in the same order. */
#include "simulator/session/carry.h"

#include "common/vec.h"
#include "simulator/rewrite/rewrite.h"

/* Given back once so many more requests were made. */
struct due { uint64_t id, at; };

struct carry {
	const struct vc_control_run *t;
	enum vc_carry_end end;
	uint64_t *was, *is, n;    /* requests of the control run and of the other, in order */
	uint64_t most, next;      /* ids: the largest, and the next new one */
	bool *gone;               /* by id: its request was left out */
	struct due *due; size_t dues;
	size_t seen;              /* of what differs */
	struct vc_trace *out;
};

static int read_sizes(const struct vc_recording *rec, uint64_t **sizes, uint64_t *n,
		      struct vc_error *err)
{
	*n = 0;
	*sizes = calloc(rec->trace.n + 1, sizeof(**sizes));
	VC_HAVE(*sizes, "the requests of a run", err);
	for (size_t i = 0; i < rec->trace.n; i++)
		if (rec->trace.ev[i].kind == VC_EV_ALLOC &&
		    rec->trace.ev[i].device == rec->device->device)
			(*sizes)[(*n)++] = rec->trace.ev[i].size;
	return VC_OK;
}

/* How much larger request k has become. */
static double growth(const struct carry *c, uint64_t k)
{
	return k < c->n && c->was[k] ? (double)c->is[k] / (double)c->was[k] : 1;
}

static uint64_t sized(const struct carry *c, uint64_t recorded, double by)
{
	bool larger = by > 1;

	return larger == (c->end == VC_CARRY_HIGH) ? (uint64_t)((double)recorded * by) : recorded;
}

static int give_back(struct carry *c, const struct vc_event *like, uint64_t k,
		     struct vc_error *err)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->dues; i++) {
		struct vc_event e = { .time_ns = like->time_ns, .id = c->due[i].id,
				      .stream = like->stream, .device = like->device,
				      .kind = VC_EV_FREE };

		if (c->due[i].at <= k)
			VC_TRY(vc_trace_append(c->out, &e, 1, err));
		else
			c->due[kept++] = c->due[i];
	}
	c->dues = kept;
	return VC_OK;
}

/* One that only the recording makes, before request k. */
static int add(struct carry *c, const struct vc_event *like, const struct vc_differs *d, uint64_t k,
	       struct vc_error *err)
{
	double before = k ? growth(c, k - 1) : 1, here = growth(c, k);
	bool high = c->end == VC_CARRY_HIGH;
	struct vc_event e = { .time_ns = like->time_ns, .id = ++c->next, .stream = like->stream,
			      .device = like->device, .kind = VC_EV_ALLOC, .site = like->site };

	e.size = sized(c, d->recorded, high == (before > here) ? before : here);
	VC_TRY(vc_trace_append(c->out, &e, 1, err));
	if (d->life != UINT64_MAX)
		c->due[c->dues++] = (struct due){ e.id, k + d->life };
	return d->life ? VC_OK : give_back(c, like, k, err);
}

/* Those that the recording makes before request k, so many frees behind the one before. */
static int add_due(struct carry *c, const struct vc_event *like, uint64_t k, uint64_t frees,
		   struct vc_error *err)
{
	const struct vc_control_run *t = c->t;

	for (; c->seen < t->differ && t->differs[c->seen].at <= k && !t->differs[c->seen].run &&
	       t->differs[c->seen].frees <= frees; c->seen++)
		VC_TRY(add(c, like, &t->differs[c->seen], k, err));
	return VC_OK;
}

static int request(struct carry *c, const struct vc_event *ev, uint64_t k, struct vc_error *err)
{
	struct vc_event e = *ev;
	bool left_out = false;

	VC_TRY(add_due(c, ev, k, UINT64_MAX, err));
	VC_TRY(give_back(c, ev, k, err));
	for (; c->seen < c->t->differ && c->t->differs[c->seen].at <= k; c->seen++) {
		const struct vc_differs *x = &c->t->differs[c->seen];

		if (x->recorded)
			e.size = sized(c, x->recorded, growth(c, k));
		else
			left_out = c->end == VC_CARRY_LOW;
	}
	if (left_out)
		c->gone[e.id] = true;
	return left_out ? VC_OK : vc_trace_append(c->out, &e, 1, err);
}

static int rewrite(struct carry *c, const struct vc_recording *run, struct vc_error *err)
{
	const struct vc_trace *t = &run->trace;
	const struct vc_event *e = NULL;
	uint64_t k = 0, frees = 0;

	for (size_t i = 0; i < t->n; i++) {
		e = &t->ev[i];
		bool here = e->device == run->device->device;
		bool block = here && e->kind <= VC_EV_USE && e->id <= c->most;

		if (vc_event_outdated(e) || (block && c->gone[e->id]))
			continue;
		if (here && e->kind == VC_EV_ALLOC) {
			VC_TRY(request(c, e, k++, err));
			frees = 0;
			continue;
		}
		if (here && e->kind == VC_EV_FREE)
			VC_TRY(add_due(c, e, k, frees++, err));
		VC_TRY(vc_trace_append(c->out, e, 1, err));
	}
	return e ? add_due(c, e, k, UINT64_MAX, err) : VC_OK;
}

int vc_carry(const struct vc_control_run *t, const struct vc_recording *control,
	     const struct vc_recording *run, enum vc_carry_end end, struct vc_trace *out,
	     struct vc_error *err)
{
	struct carry c = { .t = t, .end = end, .out = out };
	uint64_t other = 0;
	int r = read_sizes(control, &c.was, &other, err);

	*out = (struct vc_trace){ 0 };
	if (r == VC_OK)
		r = read_sizes(run, &c.is, &c.n, err);
	for (size_t i = 0; i < run->trace.n; i++)
		if (run->trace.ev[i].kind == VC_EV_ALLOC && run->trace.ev[i].id > c.most)
			c.most = run->trace.ev[i].id;
	c.next = c.most;
	c.gone = calloc(c.most + 1, sizeof(*c.gone));
	c.due = calloc(t->differ + 1, sizeof(*c.due));
	if (r == VC_OK && (!c.gone || !c.due))
		r = vc_nomem(err, "the requests of a run");
	if (r == VC_OK && other == c.n) {
		r = rewrite(&c, run, err);
		r = r < 0 ? r : 1;
	}
	VC_FREE(c.was, c.is, c.gone, c.due);
	if (r <= 0)
		vc_trace_fini(out);
	return r;
}
