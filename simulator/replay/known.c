/* SPDX-License-Identifier: Apache-2.0 */
/* known.c - see known.h
 *
 * Two runs of one trace are the same where the model would decide the same (it says so itself) and
 * the device would give the same answers: each of those holds for a span of free bytes. */
#include "simulator/replay/known.h"

#include <pthread.h>

#include "simulator/replay/past.h"
#include "simulator/replay/sizes.h"

enum { MOST = 256, TEXT = 256, CHAPTERS = 4 };

struct entry {
	const struct vc_model_type *type;
	char params[TEXT], version[32], conf[TEXT];
	enum vc_start asked, start;
	bool past;           /* there was one before: which, of this trace */
	uint64_t before;
	enum vc_heap_order heap_order;
	double fraction;
	uint16_t device_index;
	bool stop_at_oom, follow;
	struct vc_device_config device;
	struct vc_device_span span;
	void *witness; /* type->witness_size bytes */
	const struct vc_observer_type *watched[CHAPTERS]; /* their chapters are in `made` */
	size_t chapters;
	struct vc_result made;
};

struct known {
	struct vc_memo memo; /* first */
	pthread_mutex_t lock;
	struct entry *entry[MOST];
	size_t n;            /* ever kept; the oldest ones go */
};

static void drop_entry(struct entry *e)
{
	if (e) {
		free(e->witness);
		vc_result_fini(&e->made);
	}
	free(e);
}

static void drop(struct vc_memo *m)
{
	struct known *k = (struct known *)m;

	for (size_t i = 0; i < MOST; i++)
		drop_entry(k->entry[i]);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static int make(const struct vc_trace *t, uint64_t key, const void *arg, struct vc_memo **out,
		struct vc_error *err)
{
	struct known *k = calloc(1, sizeof(*k));

	VC_HAVE(k, "the runs of a trace", err);
	pthread_mutex_init(&k->lock, NULL);
	k->memo.drop = drop;
	k->memo.bytes = sizeof(*k) + MOST * sizeof(struct entry);
	*out = &k->memo;
	return VC_OK;
}

static struct known *known_of(const struct vc_trace *t)
{
	struct vc_error ignored = { 0 };
	struct vc_memo *m;

	if (!t || !t->memos || vc_memo_get(t, 0, make, NULL, &m, &ignored) < 0)
		return NULL;
	return (struct known *)m;
}

static bool same_text(const char *kept, const char *asked)
{
	return !strcmp(kept, asked ? asked : "");
}

/* The same answers of the device, whose bytes other processes and the context lie beside. */
static bool same_device(const struct entry *e, const struct vc_run *run, const struct vc_model *m)
{
	const struct vc_device_config *a = &e->device, *b = vc_device_config(m->device);
	uint64_t room = vc_device_available(m->device);

	if (a->kind != b->kind || a->va != b->va || a->order != b->order || a->calls != b->calls)
		return false;
	if (run->follow && e->type->repeats) /* answers are those of the recording */
		return true;
	if (!e->type->repeats)
		return a->total == b->total && a->prop_total == b->prop_total &&
		       a->context == b->context && a->others == b->others && a->more == b->more;
	return room >= e->span.least && room < e->span.below;
}

/* Has it every chapter that is asked for? */
static bool has_watched(const struct entry *e, const struct vc_observer_type *const *asked)
{
	for (; asked && *asked; asked++) {
		size_t i = 0;

		while (i < e->chapters && e->watched[i] != *asked)
			i++;
		if (i == e->chapters)
			return false;
	}
	return true;
}

/* The part that was replayed of a run that was given up stands for runs that may be, too. */
static bool is_enough(const struct entry *e, const struct vc_run *run)
{
	return !e->made.given_up ||
	       (run->enough && run->enough->is(run->enough->arg, &e->made.stats));
}

static bool repeats(const struct vc_sizes *sizes, const struct vc_model *m, const void *witness)
{
	const struct vc_model_type *type = m->type;
	bool same = type->repeats(m, witness);

	for (size_t i = 0; same && type->rounds && i < sizes->n; i++)
		same = type->rounds(m, witness, sizes->at[i]);
	return same;
}

bool vc_known_repeats(const struct vc_trace *t, const struct vc_model *m, const void *witness)
{
	struct vc_error ignored = { 0 };
	struct vc_sizes *sizes;
	bool same;

	if (vc_sizes_of(t, &sizes, &ignored) < 0)
		return false;
	same = repeats(sizes, m, witness);
	vc_memo_put(&sizes->memo);
	return same;
}

/* A past is not kept for as long as its runs are, so its address says nothing. */
static bool same_past(const struct entry *e, const struct vc_past *before)
{
	return before ? e->past && e->before == before->memo.key : !e->past;
}

static bool is_same(const struct entry *e, const struct vc_run *run, const struct vc_model *m,
		    const struct vc_sizes *sizes)
{
	const struct vc_model_type *type = e->type;

	return type == run->model && e->asked == run->start && e->follow == run->follow &&
	       same_past(e, run->before) && e->heap_order == run->heap_order &&
	       e->device_index == run->device_index &&
	       (e->fraction == run->fraction || (e->fraction < 0 && run->fraction < 0)) &&
	       (e->stop_at_oom == run->stop_at_oom || !e->made.stats.ooms) &&
	       same_text(e->params, run->model_params) && has_watched(e, run->observers) &&
	       same_device(e, run, m) && is_enough(e, run) &&
	       (type->repeats ? repeats(sizes, m, e->witness) :
				same_text(e->version, run->version) &&
					same_text(e->conf, run->conf));
}

/* The peak of what is used has moved by what lies beside the allocator. */
static bool repeat(const struct entry *e, struct vc_run *run, struct vc_result *out)
{
	bool whole = true;

	for (size_t i = 0; run->observers && run->observers[i]; i++)
		whole = whole && run->observers[i]->repeat(&e->made, out);
	if (!whole) {
		vc_result_fini(out);
		return false;
	}
	out->stats = e->made.stats;
	out->given_up = e->made.given_up;
	out->stats.peak_used += run->device.context + run->device.others;
	out->stats.peak_used -= e->device.context + e->device.others;
	out->stats.others_at_used += run->device.others - e->device.others;
	run->start = e->start;
	return true;
}

const struct vc_trace *vc_known_trace(const struct vc_run *run)
{
	const struct vc_source *s = run->source;
	const struct vc_trace *t = s->type->trace && !s->upstream ? s->type->trace(s) : NULL;

	return run->check || (run->follow && run->whole != t) ? NULL : t;
}

bool vc_known_find(const struct vc_trace *t, struct vc_run *run, const struct vc_model *m,
		   struct vc_result *out)
{
	struct known *k = known_of(t);
	struct vc_error ignored = { 0 };
	struct vc_sizes *sizes = NULL;
	bool found = false;

	/* Before the lock: a memo may be found out by a run, which then waits for the lock. */
	if (k && vc_sizes_of(t, &sizes, &ignored) == VC_OK) {
		pthread_mutex_lock(&k->lock);
		for (size_t i = 0; i < MOST && k->entry[i] && !found; i++)
			found = is_same(k->entry[i], run, m, sizes) &&
				repeat(k->entry[i], run, out);
		pthread_mutex_unlock(&k->lock);
		vc_memo_put(&sizes->memo);
	}
	if (k)
		vc_memo_put(&k->memo);
	return found;
}

static bool copy(char *to, size_t room, const char *from)
{
	size_t n = from ? strlen(from) : 0;

	if (n < room)
		memcpy(to, from ? from : "", n + 1);
	return n < room;
}

static struct entry *entry_of(const struct vc_run *run, enum vc_start asked,
			      const struct vc_model *m, const struct vc_result *made)
{
	const struct vc_model_type *type = run->model;
	struct entry *e = calloc(1, sizeof(*e));
	bool whole = e && copy(e->params, sizeof(e->params), run->model_params) &&
		     copy(e->version, sizeof(e->version), run->version) &&
		     copy(e->conf, sizeof(e->conf), run->conf);

	if (whole && type->repeats) {
		e->witness = calloc(1, type->witness_size);
		whole = e->witness && type->witness(m, e->witness);
	}
	if (!whole) {
		drop_entry(e);
		return NULL;
	}
	e->type = type;
	e->asked = asked;
	e->start = run->start;
	e->past = run->before;
	e->before = run->before ? run->before->memo.key : 0;
	e->heap_order = run->heap_order;
	e->fraction = run->fraction;
	e->device_index = run->device_index;
	e->stop_at_oom = run->stop_at_oom;
	e->follow = run->follow;
	e->device = *vc_device_config(m->device);
	e->span = vc_device_span(m->device);
	e->made.stats = made->stats;
	e->made.given_up = made->given_up;
	for (size_t i = 0; run->observers && run->observers[i] && e->chapters < CHAPTERS; i++) {
		const struct vc_observer_type *o = run->observers[i];

		if (o->repeat && o->repeat(made, &e->made))
			e->watched[e->chapters++] = o;
	}
	return e;
}

void vc_known_keep(const struct vc_trace *t, const struct vc_run *run, enum vc_start asked,
		   const struct vc_model *m, const struct vc_result *made)
{
	struct known *k = known_of(t);
	struct entry *e = k ? entry_of(run, asked, m, made) : NULL;

	if (e) {
		pthread_mutex_lock(&k->lock);
		drop_entry(k->entry[k->n % MOST]);
		k->entry[k->n++ % MOST] = e;
		pthread_mutex_unlock(&k->lock);
	}
	if (k)
		vc_memo_put(&k->memo);
}
