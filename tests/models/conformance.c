/* SPDX-License-Identifier: Apache-2.0 */
/* conformance.c - the same battery for every row of models.def, and for every version and option of
 * the torch model: invariants after every step, no overlaps, nothing lost, the same twice. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/replay/model.h"

#define LIVE 400

struct world {
	struct vc_model m;
	struct vc_device_config device;
	struct vc_streams streams;
	struct vc_block block[LIVE];
	uint64_t id[LIVE];
	bool live[LIVE];
	uint64_t next_id, random, digest;
	bool manual; /* completions by sync only */
	char why[1200];
};

struct setup { const char *model, *params, *version, *conf; };

static const uint64_t handles[] = { 0, 16, 48 };
static int tests, failures;

static void report(bool ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void report(bool ok, const char *fmt, ...)
{
	va_list ap;

	printf("%sok %d - ", ok ? "" : "not ", ++tests);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	failures += !ok;
}

static uint64_t dice(struct world *w, uint64_t sides) /* xorshift64*: the same everywhere */
{
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return (w->random * 2685821657736338717ull >> 11) % sides;
}

static bool open_world(struct world *w, const struct setup *s, uint64_t seed)
{
	const struct vc_model_type *type = vc_model_by_name(s->model);
	struct vc_error err = { 0 };
	void *config = calloc(1, type->config_size + 1);

	*w = (struct world){ .random = seed, .next_id = 1, .device = { .total = 2ull << 30 } };
	w->streams = (struct vc_streams){ handles, 3 };
	w->m.type = type;
	w->m.config = config;
	w->m.state = calloc(1, type->state_size + 1);
	w->m.streams = &w->streams;
	w->m.version = s->version;
	w->m.conf = s->conf;
	w->m.device = vc_device_new(&w->device, &err);
	if (!config || !w->m.state || !w->m.device ||
	    vc_params_parse(type->params, config, s->params, &err) < 0 ||
	    (type->init && type->init(&w->m, &err) < 0)) {
		snprintf(w->why, sizeof(w->why), "%s", err.message);
		return false;
	}
	return true;
}

static void close_world(struct world *w)
{
	if (w->m.type->fini)
		w->m.type->fini(&w->m);
	vc_device_free_all(w->m.device);
	free(w->m.state);
	free((void *)(uintptr_t)w->m.config);
}

static void blame(struct world *w, const char *what)
{
	if (!w->why[0])
		snprintf(w->why, sizeof(w->why), "%s", what);
}

/* ---- no two live blocks overlap, and walk() agrees with the totals ---- */
struct look { struct world *w; uint64_t end, live, segments, reserved, seg_end; };

static int look_at(void *arg, const struct vc_extent *x)
{
	struct look *l = arg;

	if (x->what == VC_X_SEGMENT) {
		if (x->addr < l->seg_end)
			blame(l->w, "walk() must show segments from low to high addresses, and "
				    "they must not overlap");
		l->seg_end = x->addr + x->size;
		l->end = x->addr;
		l->reserved += x->size;
		l->segments++;
		return 0;
	}
	if (x->addr < l->end || x->addr + x->size > l->seg_end)
		blame(l->w, "walk() must show the blocks of a segment from low to high addresses, "
			    "and they must neither overlap nor leave it");
	l->end = x->addr + x->size;
	if (x->what == VC_X_LIVE && x->id) /* 0: a further piece of a stitched block */
		l->live++;
	return 0;
}

static void look(struct world *w)
{
	struct look l = { .w = w };
	const struct vc_totals *now = &w->m.now;
	struct vc_error err = { 0 };
	uint64_t live = 0;

	for (int i = 0; i < LIVE; i++)
		live += w->live[i];
	if (w->m.type->check(&w->m, &err) < 0)
		blame(w, err.message);
	w->m.type->walk(&w->m, look_at, &l);
	if (l.live != live)
		blame(w, "walk() shows other live blocks than there are");
	if (l.reserved != now->reserved)
		blame(w, "walk() and the reserved total disagree");
	if (now->allocated > now->active || now->active > now->reserved ||
	    now->reserved > vc_device_taken(w->m.device) ||
	    vc_device_taken(w->m.device) > w->device.total)
		blame(w, "allocated <= active <= reserved <= device does not hold");
}

/* ---- random steps ---- */
static uint64_t some_size(struct world *w)
{
	switch (dice(w, 8)) {
	case 0: case 1: case 2:
		return 1 + dice(w, 4096);
	case 3: case 4:
		return 1 + dice(w, 1 << 20);
	case 5: case 6:
		return 1 + dice(w, 12 << 20);
	default:
		return 1 + dice(w, 120 << 20);
	}
}

static void mix(struct world *w, uint64_t v)
{
	w->digest = (w->digest ^ v) * 1099511628211ull;
}

static void step_alloc(struct world *w, int i)
{
	struct vc_request rq = { .id = w->next_id++, .size = some_size(w),
				 .stream = (uint32_t)(dice(w, 4) % 3) };
	struct vc_error err = { 0 };
	int r = w->m.type->alloc(&w->m, &rq, &w->block[i], &err);

	mix(w, (uint64_t)r);
	if (r < 0)
		blame(w, err.message);
	if (r != VC_DONE)
		return;
	w->live[i] = true;
	w->id[i] = rq.id;
	mix(w, w->block[i].addr);
	if (w->block[i].size < rq.size)
		blame(w, "a block is smaller than asked for");
}

/* The engine looks for peaks after every answer but this one. */
static int give_back(struct world *w, int i)
{
	struct vc_totals was = w->m.now, *is = &w->m.now;
	int answer = w->m.type->free(&w->m, &w->block[i]);

	w->live[i] = false;
	if (answer == VC_DONE &&
	    (is->requested > was.requested || is->allocated > was.allocated ||
	     is->active > was.active || is->reserved > was.reserved || is->segments > was.segments))
		blame(w, "a free that was done at once made one of the totals larger");
	return answer;
}

static void step(struct world *w)
{
	int i = (int)dice(w, LIVE);
	struct vc_error err = { 0 };

	if (dice(w, 300) == 0 && w->m.type->trim) {
		mix(w, (uint64_t)w->m.type->trim(&w->m, 0, &err));
	} else if (!w->live[i]) {
		if (dice(w, 3))
			step_alloc(w, i);
	} else if (dice(w, 6) == 0 && w->m.type->use) {
		w->m.type->use(&w->m, &w->block[i], (uint32_t)dice(w, 3));
	} else {
		mix(w, (uint64_t)give_back(w, i));
	}
	if (dice(w, 20) == 0 && w->m.type->sync)
		w->m.type->sync(&w->m, (uint32_t)dice(w, 3));
	mix(w, w->m.now.reserved);
	mix(w, w->m.now.allocated);
}

static void free_everything(struct world *w)
{
	struct vc_error err = { 0 };

	for (int i = 0; i < LIVE; i++)
		if (w->live[i])
			w->m.type->free(&w->m, &w->block[i]);
	memset(w->live, 0, sizeof(w->live));
	if (w->m.type->sync)
		w->m.type->sync(&w->m, VC_STREAM_ALL);
	if (w->m.type->trim)
		w->m.type->trim(&w->m, 0, &err);
	look(w);
	if (w->m.now.active)
		blame(w, "blocks are left after everything was freed");
	if (!w->m.type->keeps_regions && (w->m.now.reserved || vc_device_taken(w->m.device)))
		blame(w, "memory is left after everything was freed and trimmed (keeps_regions of "
			 "the model's row says where that is so)");
}

static uint64_t play(const struct setup *s, struct world *w, bool checked)
{
	uint64_t digest;

	if (!open_world(w, s, 88172645463325252ull))
		return 0;
	for (int k = 0; k < 4000 && !w->why[0]; k++) {
		step(w);
		if (checked)
			look(w);
	}
	digest = w->digest;
	if (!w->why[0])
		free_everything(w);
	return digest;
}

#ifdef __x86_64__
enum { JUDGED = true };
#else
enum { JUDGED = false }; /* others round otherwise */
#endif

/* Answers stay what they were: a checksum for each setup, VC_UPDATE_GOLDEN=1 writes them anew. A
 * new setup is not judged. */
static bool is_as_it_was(const char *setup, uint64_t digest)
{
	static const char path[] = "tests/golden/told/conformance.txt";
	bool update = getenv("VC_UPDATE_GOLDEN"), same = true;
	FILE *f = fopen(path, !update ? "r" : tests < 3 ? "w" : "a");
	char line[400], name[300];
	uint64_t known;

	if (f && update)
		fprintf(f, "%016" PRIx64 " %s\n", digest, setup);
	while (f && !update && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %299[^\n]", &known, name) == 2 &&
		    !strcmp(name, setup))
			same = known == digest || !JUDGED;
	return f && !fclose(f) && same;
}

static void battery(const struct setup *s)
{
	char name[256];
	struct world *w = malloc(2 * sizeof(*w));
	uint64_t a, b;

	if (!w)
		exit(2);
	snprintf(name, sizeof(name), "%s%s%s%s%s%s%s", s->model, s->version ? " " : "",
		 s->version ? s->version : "", s->params ? " " : "", s->params ? s->params : "",
		 s->conf ? " " : "", s->conf ? s->conf : "");
	a = play(s, &w[0], true);
	if (w[0].why[0])
		printf("# %s\n", w[0].why);
	report(!w[0].why[0], "%s: invariants hold, nothing overlaps, nothing is lost", name);
	b = play(s, &w[1], false);
	report(a && a == b, "%s: the same steps twice give the same answers", name);
	report(is_as_it_was(name, a), "%s: and those that they gave before", name);
	close_world(&w[0]);
	close_world(&w[1]);
	free(w);
}

/* ---- warm start ---- */
struct heap { struct vc_extent x[4 * LIVE]; size_t n; };

static int collect(void *arg, const struct vc_extent *x)
{
	struct heap *h = arg;

	if (h->n == 4 * LIVE)
		return -1;
	h->x[h->n++] = *x;
	return 0;
}

static bool seed_from(struct world *to, const struct world *from, struct heap *h)
{
	struct vc_block *blocks = calloc(4 * LIVE, sizeof(*blocks));
	struct vc_heap heap = { .extent = h->x };
	struct vc_error err = { 0 };
	bool ok = blocks && from->m.type->walk(&from->m, collect, h) >= 0;

	heap.n = h->n;
	ok = ok && to->m.type->seed(&to->m, &heap, blocks, &err) >= 0;
	for (size_t k = 0; ok && k < h->n; k++)
		for (int i = 0; i < LIVE && h->x[k].what == VC_X_LIVE; i++)
			if (from->live[i] && from->id[i] == h->x[k].id)
				to->block[i] = blocks[k];
	memcpy(to->live, from->live, sizeof(to->live));
	memcpy(to->id, from->id, sizeof(to->id));
	to->random = from->random;
	to->next_id = from->next_id;
	free(blocks);
	return ok;
}

/* A seeded model must go on exactly as the one it was taken from. */
static void warm(const struct setup *s)
{
	struct world *w = malloc(2 * sizeof(*w));
	struct heap *h = calloc(1, sizeof(*h));
	bool same = true;

	if (!w || !h)
		exit(2);
	open_world(&w[0], s, 1234567);
	for (int k = 0; k < 1500; k++)
		if (!w[0].live[k % LIVE] && dice(&w[0], 2))
			step_alloc(&w[0], k % LIVE);
		else if (w[0].live[k % LIVE] && dice(&w[0], 2))
			w[0].live[k % LIVE] = false,
				      w[0].m.type->free(&w[0].m, &w[0].block[k % LIVE]);
	open_world(&w[1], s, 1);
	if (!seed_from(&w[1], &w[0], h))
		same = false;
	for (int k = 0; k < 4000 && same; k++) {
		w[0].digest = w[1].digest = 1;
		for (int n = 0; n < 2; n++) {
			int i = (int)dice(&w[n], LIVE);

			if (!w[n].live[i]) {
				step_alloc(&w[n], i);
			} else {
				give_back(&w[n], i);
			}
			mix(&w[n], w[n].m.now.reserved);
			mix(&w[n], w[n].m.now.active);
			look(&w[n]);
		}
		same = w[0].digest == w[1].digest && !w[0].why[0] && !w[1].why[0];
		if (!same)
			printf("# differs after %d steps %s %s\n", k, w[0].why, w[1].why);
	}
	report(same, "%s %s%s%s: a seeded heap goes on exactly", s->model, s->version,
	       s->conf ? " " : "", s->conf ? s->conf : "");
	close_world(&w[0]);
	close_world(&w[1]);
	free(w);
	free(h);
}

static void torch_rows(void)
{
	static const char *const version[] = { "2.0",  "2.1",  "2.2",  "2.3", "2.4",  "2.5",
					      "2.6",  "2.7",  "2.8",  "2.9", "2.10", "2.11",
					      "2.12", "2.13", "2.14", "2.15" };
	static const char *const params[] = {
		"fit=first",         "fit=next",
		"fit=worst",         "fit=recent",
		"segment=64MiB",     "completion=next",
		"completion=forced", "small_limit=512K,split_rest=64K" };

	for (size_t v = 0; v < sizeof(version) / sizeof(*version); v++) {
		battery(&(struct setup){ "torch", NULL, version[v], NULL });
		if (v)
			battery(&(struct setup){ "torch", NULL, version[v],
						"expandable_segments:True" });
		battery(&(struct setup){ "torch", "completion=next", version[v],
					 "max_split_size_mb:64,roundup_power2_divisions:4" });
	}
	for (size_t k = 0; k < sizeof(params) / sizeof(*params); k++) {
		battery(&(struct setup){ "torch", params[k], "2.9", NULL });
		battery(&(struct setup){ "torch", params[k], "2.15", "expandable_segments:True" });
	}
	warm(&(struct setup){ "torch", NULL, "2.9", NULL });
	warm(&(struct setup){ "torch", NULL, "2.11", "max_split_size_mb:64" });
	warm(&(struct setup){ "torch", NULL, "2.15", NULL });
	warm(&(struct setup){ "torch", NULL, "2.9", "expandable_segments:True" });
	warm(&(struct setup){ "torch", NULL, "2.15", "expandable_segments:True" });
}

/* Parameters under which a model works in another way. */
static void other_ways(void)
{
	static const struct setup way[] = {
		{ "bfc", "growth=true", NULL, NULL },
		{ "cuda_async", "bound=low", NULL, NULL },
		{ "cuda_async", "bound=low,framework=cuda,reuse=own", NULL, NULL },
		{ "cuda_async", "bound=high,framework=cuda,reuse=own", NULL, NULL },
		{ "rmm_pool", "initial_pool_size=0", NULL, NULL },
	};

	for (size_t k = 0; k < sizeof(way) / sizeof(*way); k++)
		battery(&way[k]);
}

/* conformance [MODEL]: one row of models.def as it is, or all of them. */
int main(int argc, char **argv)
{
	for (size_t k = 0; vc_models[k]; k++)
		if (argc < 2 || !strcmp(vc_models[k]->name, argv[1]))
			battery(&(struct setup){ vc_models[k]->name, NULL, NULL, NULL });
	if (argc < 2) {
		other_ways();
		torch_rows();
	}
	printf("1..%d\n", tests);
	return failures > 0;
}
