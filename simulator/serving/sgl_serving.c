/* SPDX-License-Identifier: Apache-2.0 */
/* sgl_serving.c - see sgl_serving.h. */
#include "simulator/serving/sgl_serving.h"

#include "common/vec.h"

enum {
	MOST_NEW = 4096,   /* SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION */
	AHEAD = 20,        /* SGLANG_RETRACT_DECODE_STEPS */
	PASSES = 32,       /* WAITING_PREFIX_REFRESH_INTERVAL */
	REFRESHED = 128,   /* WAITING_QUEUE_PREFIX_MATCH_MAX */
	BESIDE = 5,        /* tokens that max_req_input_len leaves */
};

/* SGLANG_INIT_NEW_TOKEN_RATIO, its least part, and how fast it falls. */
static const double RATIO = 0.7, LEAST = 0.7 * 0.14, FALL = (0.7 - 0.7 * 0.14) / 600;

struct vc_sgl_request {
	uint64_t tokens, prompt, most_new;
	uint64_t found, end;   /* tokens known before the next prefill; where it ends */
	uint64_t kept, has;    /* tokens in the tree, in pages; tokens with a place */
	uint32_t node;         /* where the tree's part ends */
	uint64_t *page;        /* what its full pages hold */
	size_t pages, page_cap;
	struct vc_place next_page; /* where it begins */
	bool holds, done;
};

static uint64_t up(const struct vc_sgl_serving *s, uint64_t tokens)
{
	return (tokens + s->k.page - 1) / s->k.page;
}

/* ---- what a page holds ---- */
static bool know_pages(const struct vc_sgl_serving *s, uint32_t i)
{
	struct vc_sgl_request *r = &s->r[i];

	while (!s->k.no_caching && (r->pages + 1) * s->k.page <= r->tokens) {
		if (!vc_vec_room(r->page, r->page_cap, r->pages + 1))
			return false;
		r->page[r->pages] = vc_requests_hash(s->requests, &s->requests->at[i],
						     &r->next_page, s->k.page, 0);
		r->pages++;
	}
	return true;
}

/* ---- places ---- */
static uint64_t available(const struct vc_sgl_serving *s)
{
	return s->free * s->k.page;
}

static uint64_t evictable(const struct vc_sgl_serving *s)
{
	return (s->tree.held - s->tree.locked) * s->k.page;
}

/* evict_to_free_tokens */
static void make_room(struct vc_sgl_serving *s, uint64_t tokens)
{
	uint64_t pages;

	while (available(s) < tokens && (pages = vc_sgl_evict(&s->tree))) {
		s->free += pages;
		s->now.evicted += pages;
	}
}

/* checkpoint_into_tree: what was computed up to there is known; who had it twice gives back. */
static int publish(struct vc_sgl_serving *s, uint32_t i, uint64_t up_to, struct vc_error *err)
{
	struct vc_sgl_request *r = &s->r[i];
	uint64_t pages = up_to / s->k.page, kept = r->kept / s->k.page, known;
	uint64_t prompt = r->prompt / s->k.page;
	uint32_t node, other;

	if (s->k.no_caching || !up_to)
		return VC_OK;
	known = vc_sgl_insert(&s->tree, r->page, pages, &node);
	VC_HAVE(known != UINT64_MAX, "the radix tree", err);
	s->free += known > kept ? known - kept : 0;
	if (prompt && prompt < pages)
		VC_HAVE(vc_sgl_insert(&s->tree, r->page, prompt, &other) != UINT64_MAX,
			"the radix tree", err);
	vc_sgl_unlock(&s->tree, r->node);
	vc_sgl_lock(&s->tree, node);
	r->node = node;
	r->kept = pages * s->k.page;
	return VC_OK;
}

/* release_kv_cache */
static int release(struct vc_sgl_serving *s, uint32_t i, bool known, struct vc_error *err)
{
	struct vc_sgl_request *r = &s->r[i];

	if (known)
		VC_TRY(publish(s, i, r->has, err));
	s->free += up(s, r->has) - r->kept / s->k.page;
	vc_sgl_unlock(&s->tree, r->node);
	r->node = 0;
	r->kept = r->has = 0;
	r->holds = false;
	return VC_OK;
}

static int leave(struct vc_sgl_serving *s, uint32_t i, bool known, struct vc_error *err)
{
	VC_TRY(release(s, i, known, err));
	s->r[i].done = true;
	s->alive--;
	free(s->r[i].page);
	s->r[i].page = NULL;
	return VC_OK;
}

/* ---- lists ---- */
static bool append(uint32_t **list, size_t *n, size_t *cap, uint32_t i)
{
	if (*n == *cap && !vc_vec_grow(list, cap, *n + 1, sizeof(**list)))
		return false;
	(*list)[(*n)++] = i;
	return true;
}

/* Those that are done, or the one that is `but`, go. */
static size_t filter(const struct vc_sgl_serving *s, uint32_t *list, size_t n, uint32_t but)
{
	size_t kept = 0;

	for (size_t k = 0; k < n; k++)
		if (!s->r[list[k]].done && list[k] + 1 != but)
			list[kept++] = list[k];
	return kept;
}

/* ---- a prefill ---- */
struct budget { /* PrefillAdder and its PrefillBudget */
	double total;
	uint64_t now;
	int64_t input, chunk;
	uint32_t cut;     /* index + 1 of a request that is prefilled in part */
};

static double rest(const struct vc_sgl_serving *s, const struct budget *b)
{
	return (double)(available(s) + evictable(s)) - b->total;
}

static bool has_room(const struct vc_sgl_serving *s, const struct budget *b)
{
	return rest(s, b) > 0 && available(s) + evictable(s) > b->now;
}

static bool is_spent(const struct vc_sgl_serving *s, const struct budget *b)
{
	return b->input <= 0 || (s->k.chunk && b->chunk <= 0);
}

static uint64_t still_new(const struct vc_sgl_request *r)
{
	uint64_t had = r->tokens - r->prompt;

	return vc_least(r->most_new > had ? r->most_new - had : 0, MOST_NEW);
}

static bool take(struct vc_sgl_serving *s, struct budget *b, uint32_t i, uint64_t more,
		 uint64_t most_new)
{
	uint64_t pages = up(s, more) * s->k.page;

	if (!vc_vec_room(s->step, s->step_cap, s->served + 1))
		return false;
	s->step[s->served++] = (struct vc_sgl_served){ i, more };
	s->r[i].end = s->r[i].found + more;
	b->total += (double)(pages + s->k.page + most_new);
	b->now += pages + s->k.page;
	b->input -= (int64_t)pages;
	b->chunk -= (int64_t)pages;
	return true;
}

static bool continue_chunk(struct vc_sgl_serving *s, struct budget *b)
{
	uint32_t i = s->chunked - 1;
	struct vc_sgl_request *r = &s->r[i];
	int64_t most = b->chunk, left = (int64_t)(r->tokens - r->found), room = (int64_t)rest(s, b);

	if (room < most && room > 0)
		most = room;
	if (left <= most)
		s->chunked = 0;
	else
		left = most;
	b->cut = s->chunked;
	return take(s, b, i, (uint64_t)left, b->cut ? 0 : vc_least(r->most_new, MOST_NEW));
}

enum admission { GO_ON, NO_TOKEN, OTHER, NO_MEMORY };

/* add_one_req, while what it found is locked. */
static enum admission admit(struct vc_sgl_serving *s, struct budget *b, uint32_t i)
{
	struct vc_sgl_request *r = &s->r[i];
	uint64_t more = r->tokens - r->found, most_new = vc_least(r->most_new, MOST_NEW);
	int64_t pages = (int64_t)(up(s, more) * s->k.page);

	if ((double)(more + still_new(r) + s->k.page) >= rest(s, b))
		return NO_TOKEN;
	if (!s->k.chunk && s->served && pages >= b->input)
		return OTHER;
	if (s->k.chunk && pages > b->chunk) {
		uint64_t end = r->found + (uint64_t)b->chunk / s->k.page * s->k.page;

		end = end / s->k.page * s->k.page;
		if (end <= r->found)
			return OTHER;
		more = end - r->found;
		most_new = 0;
		b->cut = s->chunked = i + 1;
	}
	vc_sgl_lock(&s->tree, r->node);
	if (!take(s, b, i, more, most_new))
		return NO_MEMORY;
	return has_room(s, b) ? is_spent(s, b) ? OTHER : GO_ON : NO_TOKEN;
}

static enum admission add_one(struct vc_sgl_serving *s, struct budget *b, uint32_t i)
{
	struct vc_sgl_request *r = &s->r[i];
	enum admission what;
	size_t before = s->served;
	uint32_t node = 0;
	uint64_t found = s->k.no_caching ? 0 :
			 vc_sgl_match(&s->tree, r->page, (r->tokens - 1) / s->k.page, &node);

	if (found == UINT64_MAX)
		return NO_MEMORY;
	r->node = node;
	r->found = r->kept = found * s->k.page;
	vc_sgl_lock(&s->tree, node);
	what = admit(s, b, i);
	vc_sgl_unlock(&s->tree, node);
	if (s->served > before) {
		s->now.queries += r->tokens;
		s->now.hits += r->found;
	} else {
		r->node = 0;
		r->kept = 0;
	}
	return what;
}

/* _touch_waiting_prefixes: the first of the queue last. */
static bool refresh(struct vc_sgl_serving *s)
{
	size_t n = s->waits < REFRESHED ? s->waits : REFRESHED;

	if (!s->k.refresh || s->k.no_caching || !n || s->passes++ % PASSES)
		return true;
	while (n--) {
		const struct vc_sgl_request *r = &s->r[s->waiting[n]];
		uint32_t node;

		if (vc_sgl_match(&s->tree, r->page, r->pages, &node) == UINT64_MAX)
			return false;
	}
	return true;
}

static struct budget open_budget(const struct vc_sgl_serving *s)
{
	struct budget b = { .input = (int64_t)s->k.prefill, .chunk = (int64_t)s->k.chunk };

	for (size_t k = 0; k < s->runs; k++) {
		const struct vc_sgl_request *r = &s->r[s->running[k]];

		b.total += (double)vc_least(r->most_new - (r->tokens - r->prompt), MOST_NEW) *
			   s->ratio;
	}
	return b;
}

static int admit_waiting(struct vc_sgl_serving *s, struct budget *b, struct vc_error *err)
{
	size_t k = 0, first = s->served;

	for (; k < s->waits && !(has_room(s, b) && is_spent(s, b)); k++) {
		enum admission what;

		if (s->served + s->runs >= s->k.running)
			s->full = true;
		if (s->full)
			break;
		what = add_one(s, b, s->waiting[k]);
		VC_HAVE(what != NO_MEMORY, "the admission of a request", err);
		if (what == NO_TOKEN)
			s->full = s->served > 0 || s->runs > 0;
		if (what != GO_ON) {
			k += s->served > first &&
			     s->step[s->served - 1].request == s->waiting[k];
			break;
		}
	}
	memmove(s->waiting, s->waiting + k, (s->waits - k) * sizeof(*s->waiting));
	s->waits -= k;
	return VC_OK;
}

static int prefill(struct vc_sgl_serving *s, struct vc_error *err)
{
	struct budget b;
	uint64_t tokens = 0;

	if (!s->runs)
		s->full = false;
	if ((s->full || !s->waits) && !s->chunked)
		return VC_OK;
	if (s->runs >= s->k.running && !s->chunked) {
		s->full = true;
		return VC_OK;
	}
	VC_HAVE(refresh(s), "the radix tree", err);
	b = open_budget(s);
	if (s->chunked)
		VC_HAVE(continue_chunk(s, &b), "the step", err);
	VC_TRY(admit_waiting(s, &b, err));
	for (size_t k = 0; k < s->served; k++)
		tokens += s->step[k].tokens;
	if (s->served)
		make_room(s, s->k.page == 1 ? tokens : tokens + s->served * s->k.page);
	for (size_t k = 0; k < s->served; k++) {
		struct vc_sgl_request *r = &s->r[s->step[k].request];
		uint64_t has = r->holds ? r->has : r->kept;

		s->free -= up(s, r->end) - up(s, has);
		r->has = r->end;
		r->holds = true;
		VC_HAVE(append(&s->last, &s->lasts, &s->last_cap, s->step[k].request), "the step",
			err);
	}
	return VC_OK;
}

/* ---- decoding ---- */
static uint64_t wanted(const struct vc_sgl_serving *s, size_t n)
{
	uint64_t pages = 0;

	for (size_t k = 0; k < n; k++)
		pages += s->r[s->running[k]].has % s->k.page == 0;
	return pages * s->k.page;
}

static bool fits(struct vc_sgl_serving *s)
{
	uint64_t tokens = wanted(s, s->runs);

	make_room(s, tokens);
	return available(s) >= tokens;
}

/* Who has most tokens of its own comes first, of equals the shortest prompt; the last goes back. */
static void rank(struct vc_sgl_serving *s)
{
	for (size_t k = 1; k < s->runs; k++) {
		uint32_t i = s->running[k];
		const struct vc_sgl_request *a = &s->r[i];
		size_t at = k;

		for (; at; at--) {
			const struct vc_sgl_request *b = &s->r[s->running[at - 1]];
			uint64_t na = a->tokens - a->prompt, nb = b->tokens - b->prompt;

			if (na < nb || (na == nb && a->prompt >= b->prompt))
				break;
			s->running[at] = s->running[at - 1];
		}
		s->running[at] = i;
	}
}

static int take_out(struct vc_sgl_serving *s, bool back, struct vc_error *err)
{
	uint32_t i = s->running[--s->runs];
	struct vc_sgl_request *r = &s->r[i];

	if (!back) {
		s->now.aborted++;
		s->dropped++;
		VC_TRY(leave(s, i, false, err));
		make_room(s, s->runs * AHEAD);
		return VC_OK;
	}
	s->now.retractions++;
	s->now.recomputed += r->has;
	VC_TRY(release(s, i, false, err));
	make_room(s, s->runs * AHEAD);
	r->found = r->end = 0;
	VC_HAVE(append(&s->back, &s->backs, &s->back_cap, i), "the waiting", err);
	return VC_OK;
}

/* retract_decode */
static int retract(struct vc_sgl_serving *s, struct vc_error *err)
{
	uint64_t had = 0, most = 0;
	bool first = true;

	rank(s);
	while (first || !fits(s)) {
		if (s->runs == 1)
			break;
		first = false;
		VC_TRY(take_out(s, true, err));
	}
	if (s->runs <= 1 && !fits(s))
		VC_TRY(take_out(s, false, err));
	for (size_t k = 0; k < s->runs; k++) {
		had += s->r[s->running[k]].tokens - s->r[s->running[k]].prompt;
		most += s->r[s->running[k]].most_new;
	}
	s->ratio = (double)(had + AHEAD * s->runs) / (double)(most + 1);
	s->ratio = s->ratio > 1 ? 1 : s->ratio;
	return VC_OK;
}

static int decode(struct vc_sgl_serving *s, struct vc_error *err)
{
	size_t before = s->runs;

	if (!before)
		return VC_OK;
	if (!fits(s))
		VC_TRY(retract(s, err));
	else
		s->ratio = s->ratio - FALL > LEAST ? s->ratio - FALL : LEAST;
	for (size_t k = 0; k < s->backs; k++)
		VC_HAVE(append(&s->waiting, &s->waits, &s->waiting_cap, s->back[k]),
			"the waiting", err);
	if (s->runs < before)
		s->full = false;
	make_room(s, s->runs * s->k.page);
	VC_HAVE(vc_vec_room(s->step, s->step_cap, s->runs + 1), "the step", err);
	for (size_t k = 0; k < s->runs; k++) {
		struct vc_sgl_request *r = &s->r[s->running[k]];

		s->free -= r->has % s->k.page == 0;
		r->has++;
		s->step[s->served++] = (struct vc_sgl_served){ s->running[k], 1 };
	}
	s->decodes = true;
	return VC_OK;
}

/* ---- a step ---- */
/* The last prefill joins those that run, but for the request of which a part is left. */
static int join(struct vc_sgl_serving *s, struct vc_error *err)
{
	size_t before = s->runs, n;

	if (s->chunked && s->r[s->chunked - 1].end > s->r[s->chunked - 1].found) {
		struct vc_sgl_request *r = &s->r[s->chunked - 1];

		VC_TRY(publish(s, s->chunked - 1, r->end, err));
		r->found = r->end;
	}
	n = filter(s, s->last, s->lasts, s->chunked);
	if (n < s->lasts)
		s->full = false;
	for (size_t k = 0; k < n; k++)
		VC_HAVE(append(&s->running, &s->runs, &s->running_cap, s->last[k]),
			"those that run", err);
	s->lasts = 0;
	before = s->runs;
	s->runs = filter(s, s->running, s->runs, 0);
	if (s->runs < before)
		s->full = false;
	return VC_OK;
}

int vc_sgl_schedule(struct vc_sgl_serving *s, struct vc_error *err)
{
	s->served = s->backs = s->dropped = 0;
	s->decodes = false;
	VC_TRY(join(s, err));
	VC_TRY(prefill(s, err));
	if (!s->served)
		VC_TRY(decode(s, err));
	if (!s->served) { /* nothing runs */
		s->ratio = RATIO;
		return VC_OK;
	}
	s->now.steps++;
	for (size_t k = 0; k < s->served; k++)
		s->now.tokens += s->step[k].tokens;
	return VC_OK;
}

int vc_sgl_output(struct vc_sgl_serving *s, struct vc_error *err)
{
	for (size_t k = 0; k < s->served; k++) {
		uint32_t i = s->step[k].request;
		struct vc_sgl_request *r = &s->r[i];

		if (!s->decodes && i + 1 == s->chunked)
			continue;
		r->tokens++;
		s->now.generated++;
		VC_HAVE(know_pages(s, i), "the pages of a request", err);
		if (r->tokens - r->prompt >= r->most_new) {
			s->now.finished++;
			VC_TRY(leave(s, i, true, err));
		} else if (!s->decodes) {
			VC_TRY(publish(s, i, r->end, err));
			r->found = r->end;
		}
	}
	return VC_OK;
}

/* ---- from outside ---- */
static uint64_t most_len(const struct vc_sgl_config *k)
{
	return vc_least(k->max_len, k->tokens) - 1;
}

int vc_sgl_serving_init(struct vc_sgl_serving *s, const struct vc_sgl_config *k,
			const struct vc_requests *requests, struct vc_error *err)
{
	*s = (struct vc_sgl_serving){ .k = *k, .requests = requests, .ratio = RATIO };
	if (!k->page || k->page > 1u << 16 || k->tokens / k->page < 2 || k->tokens > 1ull << 40)
		return vc_fail(err, VC_EUSAGE, "a cache of %llu tokens in pages of %llu: SGLang "
			       "needs two pages", (unsigned long long)k->tokens,
			       (unsigned long long)k->page);
	if (!k->running || !k->prefill || k->max_len < BESIDE + 3)
		return vc_fail(err, VC_EUSAGE, "SGLang needs a request that may run, and %d tokens "
			       "of it", BESIDE + 3);
	s->free = k->tokens / k->page;
	return vc_sgl_radix_init(&s->tree, err);
}

void vc_sgl_serving_fini(struct vc_sgl_serving *s)
{
	for (size_t i = 0; i < s->r_cap; i++)
		free(s->r[i].page);
	VC_FREE(s->r, s->waiting, s->running, s->last, s->back, s->step);
	vc_sgl_radix_fini(&s->tree);
}

const char *vc_sgl_refuses(const struct vc_sgl_serving *s, const struct vc_serve_request *rq)
{
	return rq->prompt + BESIDE >= most_len(&s->k) ?
		       "its prompt leaves less than five tokens of the context" : NULL;
}

int vc_sgl_add(struct vc_sgl_serving *s, uint32_t i, struct vc_error *err)
{
	const struct vc_serve_request *rq = &s->requests->at[i];

	VC_HAVE((size_t)i < s->r_cap ||
		vc_vec_grow_zeroed(&s->r, &s->r_cap, (size_t)i + 1, sizeof(*s->r)),
		"the requests", err);
	s->r[i] = (struct vc_sgl_request){
		.tokens = rq->prompt, .prompt = rq->prompt,
		.most_new = vc_least(rq->output, most_len(&s->k) - rq->prompt - 1),
	};
	s->alive++;
	VC_HAVE(know_pages(s, i) && append(&s->waiting, &s->waits, &s->waiting_cap, i),
		"the requests", err);
	return VC_OK;
}
