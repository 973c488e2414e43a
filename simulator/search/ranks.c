/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c - see ranks.h */
#include "simulator/search/ranks.h"

#include <ctype.h>

#include "common/vec.h"
#include "common/workers.h"

struct asked {
	const struct vc_run_options *opt;
	struct vc_rank *at;
};

/* ---- what it asked for ---- */

/* The finalizer of splitmix64 (Steele, Lea and Flood, 2014): each bit depends on all of x. */
static uint64_t mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Two of 64 bits each: among a thousand ranks none is taken for another by accident. */
static void add_to_order(struct vc_rank *k, uint64_t x)
{
	k->order[0] = mix(k->order[0] + x);
	k->order[1] = mix(k->order[1] * 0x9e3779b97f4a7c15u + ~x);
}

static void add_to_set(struct vc_rank *k, uint64_t x)
{
	k->set[0] += mix(x);
	k->set[1] += mix(x ^ 0x6a09e667f3bcc909u);
}

static void add_request(struct vc_rank *k, const struct vc_event *e)
{
	bool there = e->kind == VC_EV_HEAP_BLOCK && (e->flags & VC_EVF_LIVE) &&
		     !(e->flags & VC_EVF_FINAL);

	if (e->kind == VC_EV_ALLOC || there) {
		k->requests += !there;
		k->bytes += there ? 0 : e->size;
		add_to_set(k, mix(e->size) + 2 * (uint64_t)e->stream + there);
	} else if (e->kind >= VC_EV_SEGMENT_ALLOC || e->kind == VC_EV_MARK) {
		return; /* evidence, and what says nothing of memory */
	}
	add_to_order(k, e->kind | (uint64_t)e->flags << 8 | (uint64_t)e->stream << 16);
	add_to_order(k, e->size);
	add_to_order(k, e->id);
}

static int read_requests(const struct vc_recording *rec, struct vc_rank *k, struct vc_error *err)
{
	static const struct vc_list none = { 0 };
	struct vc_source *src = vc_recording_source(rec, &none, err);
	struct vc_event ev[256];
	long n;

	if (!src)
		return err->status ? (int)err->status : VC_ENOMEM;
	while ((n = src->type->next(src, ev, 256, err)) > 0)
		for (long i = 0; i < n; i++)
			if (ev[i].device == k->device)
				add_request(k, &ev[i]);
	vc_source_free(src);
	return n < 0 ? (int)n : VC_OK;
}

/* ---- one rank ---- */

/* Recordings know it where a launcher said so. Others are called like those of `record`:
 * run.rank7.vct. */
static int64_t number_of(const struct vc_recording *rec)
{
	const char *slash = strrchr(rec->path, '/'), *name = slash ? slash + 1 : rec->path;
	int64_t number = -1;

	if (rec->meta->rank >= 0)
		return rec->meta->rank;
	for (const char *p = name; (p = strstr(p, "rank")); p++)
		if (isdigit((unsigned char)p[4 + (p[4] == '_' || p[4] == '-')]))
			number = strtol(p + 4 + (p[4] == '_' || p[4] == '-'), NULL, 10);
	return number;
}

static void keep(struct vc_rank *k, const struct vc_session *s, const struct vc_plan *p,
		 const struct vc_result *r)
{
	k->capacity = p->capacity;
	snprintf(k->card, sizeof(k->card), "%s", p->device ? p->device : "");
	snprintf(k->conf, sizeof(k->conf), "%s", p->conf ? p->conf : "");
	snprintf(k->torch, sizeof(k->torch), "%s", p->torch);
	k->allocated = r->stats.peak_allocated;
	k->reserved = r->stats.peak_reserved;
	k->used = r->stats.peak_used;
	k->has_interval = r->has_interval;
	k->low = r->low;
	k->high = r->high;
	k->verdict = vc_result_verdict(r);
	k->level = r->trust.level;
	k->checked = s->rec->fidelity.checked;
	k->exact = s->rec->fidelity.exact;
	k->cut_short = r->stats.cut_short || s->rec->device->ends_in_oom;
	k->died = r->oom.happened && k->verdict == VC_OOM;
	k->has_steps = s->rec->census.steps > 0;
	k->has_times = s->rec->meta->how[VC_CAP_TIMES] != VC_HOW_ABSENT;
	k->step = r->oom.steps;
	k->time_ns = r->oom.time_ns;
	k->event = r->oom.event;
	k->asked = r->oom.request;
}

/* What it would need on a card without end: who died did not reach its peak. */
static int find_need(const struct vc_session *s, const struct vc_plan *p,
		     const struct vc_result *r, struct vc_rank *k, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan free = vc_plan_unlimited(p);
	struct vc_result whole;

	k->need = r->stats.peak_reserved;
	if (vc_result_replayed(r) == VC_FITS)
		return VC_OK;
	VC_TRY(vc_session_replay(s, &free, nobody, &whole, err));
	k->need = whole.stats.peak_reserved;
	vc_result_fini(&whole);
	return VC_OK;
}

static int replay(const struct vc_session *s, struct vc_rank *k, struct vc_error *err)
{
	static const struct vc_observer_type *const watch[] = { &vc_observer_oom, NULL };
	struct vc_plan *plan = NULL;
	struct vc_result r;
	size_t n = 0;
	int rc = vc_session_plans(s, &plan, &n, err);

	if (rc == VC_OK)
		rc = vc_session_run(s, plan, watch, &r, err);
	if (rc == VC_OK) {
		keep(k, s, plan, &r);
		rc = find_need(s, plan, &r, k, err);
		vc_result_fini(&r);
	}
	free(plan);
	return rc;
}

static int job(void *arg, size_t i, struct vc_error *err)
{
	struct asked *a = arg;
	struct vc_rank *k = &a->at[i];
	struct vc_session s;
	int r = vc_session_open_one(&s, a->opt, k->path, 0, err);

	if (r == VC_OK)
		r = vc_tenants_parse(&a->opt->used, &s.tenants, err);
	if (r == VC_OK) {
		k->device = s.rec->device->device;
		k->number = number_of(s.rec);
		r = read_requests(s.rec, k, err);
	}
	if (r == VC_OK)
		r = replay(&s, k, err);
	vc_session_close(&s);
	return r;
}

/* ---- all of them ---- */

/* Paths are neighbours in the array of the caller: their order is that of the command line. */
VC_COMPARE(by_number, struct vc_rank,
	   VC_THEN(VC_ORDER((uint64_t)x->number, (uint64_t)y->number),
		   VC_ORDER(x->group, y->group)))

static int by_kind(const struct vc_rank *x, const struct vc_rank *y)
{
	int order = memcmp(x->set, y->set, sizeof(x->set));

	order = VC_THEN(order, VC_ORDER(x->requests, y->requests));
	order = VC_THEN(order, VC_ORDER(x->capacity, y->capacity));
	order = VC_THEN(order, strcmp(x->card, y->card));
	order = VC_THEN(order, strcmp(x->conf, y->conf));
	return VC_THEN(order, strcmp(x->torch, y->torch));
}

static int by_kind_and_place(const void *first, const void *second)
{
	const struct vc_rank *x = *(const struct vc_rank *const *)first;
	const struct vc_rank *y = *(const struct vc_rank *const *)second;

	return VC_THEN(by_kind(x, y), VC_ORDER(x, y));
}

VC_COMPARE(by_members, struct vc_rank_group,
	   VC_THEN(VC_ORDER(y->n, x->n), VC_ORDER(x->first, y->first)))

static void join(struct vc_ranks *r, struct vc_rank_group *g, const struct vc_rank *k)
{
	const struct vc_rank *first = &r->at[g->first];

	g->n++;
	g->same_order = g->same_order && !memcmp(first->order, k->order, sizeof(k->order));
	g->least = k->need < g->least ? k->need : g->least;
	g->most = k->need > g->most ? k->need : g->most;
}

static int make_groups(struct vc_ranks *r, struct vc_error *err)
{
	const struct vc_rank **sorted = calloc(r->n + 1, sizeof(*sorted));
	size_t *place = calloc(r->n + 1, sizeof(*place));

	r->group = calloc(r->n + 1, sizeof(*r->group));
	if (!sorted || !place || !r->group) {
		VC_FREE(sorted, place);
		return vc_nomem(err, "the groups of ranks");
	}
	for (size_t i = 0; i < r->n; i++)
		sorted[i] = &r->at[i];
	vc_sort(sorted, r->n, sizeof(*sorted), by_kind_and_place);
	for (size_t i = 0; i < r->n; i++) {
		if (!i || by_kind(sorted[i - 1], sorted[i]))
			r->group[r->groups++] = (struct vc_rank_group){
				.first = (size_t)(sorted[i] - r->at), .same_order = true,
				.least = UINT64_MAX };
		join(r, &r->group[r->groups - 1], sorted[i]);
	}
	vc_sort(r->group, r->groups, sizeof(*r->group), by_members);
	/* a rank belongs to the group whose first member is of its kind */
	for (size_t g = 0; g < r->groups; g++)
		place[r->group[g].first] = g;
	for (size_t i = 0, g = 0; i < r->n; i++) {
		if (!i || by_kind(sorted[i - 1], sorted[i]))
			g = place[sorted[i] - r->at];
		r->at[sorted[i] - r->at].group = g;
	}
	VC_FREE(sorted, place);
	return VC_OK;
}

const char *vc_ranks_clock_name(enum vc_ranks_clock c)
{
	static const char *const name[] = { "step", "time", "event" };

	return name[c];
}

/* The clock that tells who was first. */
static uint64_t clock_of(const struct vc_ranks *r, const struct vc_rank *k)
{
	return r->clock == VC_RANKS_BY_STEP ? k->step :
	       r->clock == VC_RANKS_BY_TIME ? k->time_ns : k->event;
}

/* Ranks wait for each other at each step, so the step is the clock that they share. Their times
 * are not: they begin when their process does, and dry runs come one after another. Among those of
 * the same step the time is as good a guess as any, and they are counted. */
static void find_first_death(struct vc_ranks *r)
{
	bool steps = true, times = true;

	r->first_to_die = VC_RANKS_NONE;
	for (size_t i = 0; i < r->n; i++) {
		r->deaths += r->at[i].died;
		steps = steps && (r->at[i].has_steps || !r->at[i].died);
		times = times && (r->at[i].has_times || !r->at[i].died);
	}
	r->clock = steps ? VC_RANKS_BY_STEP : times ? VC_RANKS_BY_TIME : VC_RANKS_BY_EVENT;
	for (size_t i = 0; i < r->n; i++) {
		const struct vc_rank *k = &r->at[i], *best;
		int order = -1;

		if (!k->died)
			continue;
		if (r->first_to_die != VC_RANKS_NONE) {
			best = &r->at[r->first_to_die];
			order = VC_ORDER(clock_of(r, k), clock_of(r, best));
			r->as_early = order < 0 ? 0 : r->as_early + !order;
			if (!order && times)
				order = VC_ORDER(k->time_ns, best->time_ns);
		}
		if (order < 0)
			r->first_to_die = i;
	}
}

static void measure(struct vc_ranks *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->n; i++) {
		sum += (double)r->at[i].need;
		if (r->at[i].need > r->at[r->largest].need)
			r->largest = i;
		if (r->at[i].need < r->at[r->least].need)
			r->least = i;
	}
	r->mean = sum / (double)r->n;
}

int vc_ranks_run(struct vc_ranks *r, const struct vc_run_options *opt, size_t n, char **paths,
		 size_t threads, struct vc_error *err)
{
	struct asked a = { .opt = opt };
	struct vc_work w = { .n = n, .threads = threads, .arg = &a, .job = job };

	*r = (struct vc_ranks){ .n = n, .at = calloc(n + 1, sizeof(*r->at)) };
	VC_HAVE(r->at, "the ranks", err);
	for (size_t i = 0; i < n; i++) {
		r->at[i].path = paths[i];
		r->at[i].group = i; /* as given, until there are groups */
	}
	a.at = r->at;
	VC_TRY(vc_workers_run(&w, err));
	vc_sort(r->at, n, sizeof(*r->at), by_number);
	VC_TRY(make_groups(r, err));
	measure(r);
	find_first_death(r);
	return VC_OK;
}

void vc_ranks_fini(struct vc_ranks *r)
{
	VC_FREE(r->at, r->group);
	*r = (struct vc_ranks){ 0 };
}

char *vc_ranks_members(const struct vc_ranks *r, size_t group, char *buf, size_t n)
{
	size_t len = 0;

	*buf = '\0';
	for (size_t i = 0, j; i < r->n && len < n; i = j + 1) {
		const struct vc_rank *k = &r->at[i];

		for (j = i; j + 1 < r->n && k->group == group && k->number >= 0 &&
			    r->at[j + 1].group == group &&
			    r->at[j + 1].number == r->at[j].number + 1;)
			j++;
		if (k->group != group)
			continue;
		len += (size_t)snprintf(buf + len, n - len, "%s", len ? "," : "");
		if (len >= n)
			break;
		if (k->number < 0)
			len += (size_t)snprintf(buf + len, n - len, "%s", k->path);
		else if (j > i)
			len += (size_t)snprintf(buf + len, n - len, "%" PRId64 "-%" PRId64,
						k->number, r->at[j].number);
		else
			len += (size_t)snprintf(buf + len, n - len, "%" PRId64, k->number);
	}
	if (len >= n && n > 4) /* more than the line holds */
		memcpy(buf + n - 4, "...", 4);
	return buf;
}
