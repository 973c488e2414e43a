/* SPDX-License-Identifier: Apache-2.0 */
/* serving.c - the scheduler: running requests first, in order; then waiting ones, while there is
 * room. Who finds no block takes them from the request that came last. */
#include "simulator/serving/serving.h"

#include "common/vec.h"

enum state { ABSENT, WAITING, RUNNING };

struct vc_running {
	struct vc_kv_owner o;
	struct vc_place next_block; /* where it begins */
	uint32_t prev, next;       /* neighbours in the queue of the waiting; index + 1 */
	enum state state;
	uint64_t drafts;           /* proposed for the next step */
	bool chunk;                /* its last step left known tokens to compute */
};

/* ---- rules by release ---- */
#define AT(field) offsetof(struct vc_vllm_rules, field)
/* Each was seen in the releases, and driven. */
static const struct { unsigned minor; size_t field; bool value; } changes[] = {
	{ 19, AT(whole), true },         /* scheduler_reserve_full_isl */
	{ 24, AT(front), true },         /* BlockPool.free_blocks */
	{ 24, AT(watermark), true },     /* KVCacheManager.allocate_slots */
	{ 27, AT(front_cached), true },  /* BlockPool.free_blocks */
	{ 27, AT(hits_admitted), true }, /* KVCacheManager.record_prefix_cache_stats */
	{ 28, AT(front_cached), false },
	{ 31, AT(alone), true },         /* num_eligible_reqs of Scheduler.schedule */
	{ 31, AT(groups), true },        /* the oldest whose groups were driven */
	{ 32, AT(resent), true },        /* get_mamba_prefill_checkpoint_position at its callers */
	{ 33, AT(ahead), true },         /* num_hash_lookahead_tokens */
	{ 33, AT(verified), true },      /* cache_blocks in Scheduler.update_from_output */
	{ 33, AT(keyed_once), true },    /* MambaManager._cache_partial_tail_block, cache_blocks */
};

int vc_vllm_rules_for(const char *version, struct vc_vllm_rules *out)
{
	unsigned minor, oldest, newest;
	char end = '.';

	*out = (struct vc_vllm_rules){ 0 };
	if (sscanf(version ? version : VC_VLLM_NEWEST, "0.%u%c", &minor, &end) < 1 || end != '.' ||
	    sscanf(VC_VLLM_OLDEST, "0.%u", &oldest) != 1 ||
	    sscanf(VC_VLLM_NEWEST, "0.%u", &newest) != 1 || minor < oldest || minor > newest)
		return -1;
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
		if (changes[i].minor <= minor)
			*(bool *)((char *)out + changes[i].field) = changes[i].value;
	return 0;
}

/* ---- what a block holds ---- */
/* Whether a draft of an output's token is right: the same whenever it is proposed. */
static bool is_right(const struct vc_serving *s, const struct vc_serve_request *rq, uint64_t at)
{
	uint64_t h = vc_mix(rq->answer + vc_mix(at + 1));

	return (double)(h >> 11) < s->k.acceptance * (double)(1ull << 53);
}

static uint64_t hash_next(const struct vc_serving *s, struct vc_running *r,
			  const struct vc_serve_request *rq)
{
	uint64_t before = r->o.hashes ? r->o.hash[r->o.hashes - 1] : 0x9e3779b97f4a7c15u;
	uint64_t tokens = s->cache.size.hash + (r->o.hashes ? 0 : s->ahead);
	uint64_t h = vc_requests_hash(s->requests, rq, &r->next_block, tokens, before);

	return h ? h : 1;
}

static bool hash_more(const struct vc_serving *s, struct vc_running *r,
		      const struct vc_serve_request *rq)
{
	struct vc_kv_owner *o = &r->o;

	while (!s->k.no_caching &&
	       (o->hashes + 1) * s->cache.size.hash + s->ahead <= o->tokens) {
		if (!vc_vec_room(o->hash, o->hash_cap, o->hashes + 1))
			return false;
		o->hash[o->hashes] = hash_next(s, r, rq);
		o->hashes++;
	}
	return true;
}

/* KVCacheManager.allocate_slots, with `found` known tokens for a request that is let in. 1: done;
 * 0: not enough free blocks. */
static int allocate(struct vc_serving *s, struct vc_running *r, uint64_t more, uint64_t found,
		    struct vc_error *err)
{
	struct vc_kv_cache *c = &s->cache;
	bool admission = r->state == WAITING;
	uint64_t tokens = r->o.computed + found + more;
	int64_t spare = 0;

	if (admission && s->rules.watermark && s->runs)
		spare = (int64_t)(s->k.watermark * (double)c->pool.n);
	if (admission && s->rules.whole && !s->k.no_reserve &&
	    vc_kv_wanted(c, &r->o, vc_least(r->o.tokens, s->k.max_len), found, true, true) + spare >
	    (int64_t)c->pool.free)
		return 0;
	vc_kv_trim(c, &r->o, r->o.computed + found);
	if (vc_kv_wanted(c, &r->o, tokens, found, admission, false) + spare > (int64_t)c->pool.free)
		return 0;
	VC_TRY(vc_kv_allocate(c, &r->o, tokens, found, admission, err));
	VC_TRY(vc_kv_learn_blocks(c, &r->o, vc_least(tokens, r->o.tokens), err));
	s->now.operations++;
	return 1;
}

/* ---- the queue of the waiting ---- */
static void enqueue(struct vc_serving *s, uint32_t i, bool front)
{
	struct vc_running *r = &s->r[i];

	r->state = WAITING;
	r->prev = front ? 0 : s->last;
	r->next = front ? s->first : 0;
	*(r->prev ? &s->r[r->prev - 1].next : &s->first) = i + 1;
	*(r->next ? &s->r[r->next - 1].prev : &s->last) = i + 1;
	s->waits++;
}

static void dequeue(struct vc_serving *s, uint32_t i)
{
	struct vc_running *r = &s->r[i];

	*(r->prev ? &s->r[r->prev - 1].next : &s->first) = r->next;
	*(r->next ? &s->r[r->next - 1].prev : &s->last) = r->prev;
	s->waits--;
}

static void drop(const struct vc_serving *s, struct vc_running *r)
{
	for (size_t g = 0; r->o.table && g < s->cache.groups; g++)
		free(r->o.table[g].block);
	VC_FREE(r->o.hash, r->o.table);
	*r = (struct vc_running){ .state = ABSENT };
}

/* ---- a step ---- */
static bool compute(struct vc_serving *s, uint32_t i, uint64_t tokens, bool padded)
{
	struct vc_running *r = &s->r[i];
	uint64_t end = r->o.computed + tokens, drafts = end > r->o.tokens ? end - r->o.tokens : 0;

	if (!vc_vec_room(s->step, s->step_cap, s->served + 1))
		return false;
	s->step[s->served++] = (struct vc_served){ i, tokens, drafts, padded };
	s->now.tokens += tokens;
	r->drafts = 0;
	return true;
}

static int preempt_last(struct vc_serving *s, struct vc_error *err)
{
	uint32_t i = s->running[--s->runs];

	VC_HAVE(vc_vec_room(s->given_up, s->given_cap, s->gave_up + 1),
		"the preempted requests", err);
	s->given_up[s->gave_up++] = i;
	s->now.preemptions++;
	s->now.recomputed += s->r[i].o.computed;
	vc_kv_leave(&s->cache, &s->r[i].o);
	s->r[i].o.computed = s->r[i].drafts = 0;
	enqueue(s, i, true);
	return VC_OK;
}

/* Scheduler._mamba_block_aligned_split: a step ends where a state is to be kept. */
static uint64_t up_to_state(const struct vc_serving *s, const struct vc_running *r, uint64_t more,
			    uint64_t found)
{
	const struct vc_kv_cache *c = &s->cache;
	const struct vc_kv_owner *o = &r->o;
	uint64_t start = o->computed + found, end = start + more, block = s->k.block_size;
	uint64_t whole = o->prompt > o->tokens - 1 ? o->prompt : o->tokens - 1;
	uint64_t most, last, tail = 0;
	uint64_t step = s->rules.resent ? c->size.fine ? c->size.hash : c->size.scheduler :
					  c->size.hash;
	bool within = s->checkpoint && end >= whole &&
		      vc_kv_state_within(start, end, vc_kv_state_position(c, whole, step),
					 c->size.hash, block, s->checkpoint);

	if (start >= whole)
		return more;
	last = s->rules.resent ? vc_kv_state_position(c, o->tokens, block) :
				 o->tokens / block * block;
	if (!s->rules.resent && c->eagle)
		last -= vc_least(last, block);
	if (within)
		last = 0;
	most = s->k.long_prefill ? vc_least(s->k.max_batch, s->k.long_prefill) : s->k.max_batch;
	if (end < whole && (end / block * block > start || block <= most))
		end = end / block * block;
	if (c->size.fine && c->size.hash < c->size.scheduler && !within) {
		tail = o->prompt / c->size.hash * c->size.hash;
		if (s->rules.resent)
			tail = vc_kv_state_position(c, o->prompt, c->size.hash);
		else if (c->eagle)
			tail -= vc_least(tail, c->size.hash);
	}
	const uint64_t stops[] = {
		start % block && !within ? (start / block + 1) * block : 0,
		last,
		last < tail && tail < o->prompt ? tail : 0,
		start < o->junction && o->junction < end ?
			start + (o->junction - start) / block * block : 0,
	};

	most = end; /* the stops are compared with the end before any of them */
	for (size_t i = 0; i < sizeof(stops) / sizeof(*stops); i++)
		if (start < stops[i] && stops[i] < most)
			end = vc_least(end, stops[i]);
	return end > start ? end - start : 0;
}

static int step_running(struct vc_serving *s, uint64_t threshold, uint64_t *budget,
			bool *prefill, struct vc_error *err)
{
	uint64_t slots = s->k.draft_slots;

	for (size_t at = 0; at < s->runs && *budget > slots; at++) {
		uint32_t i = s->running[at];
		struct vc_running *r = &s->r[i];
		uint64_t more = r->o.tokens + r->drafts - r->o.computed;
		int got;

		if (threshold && more > threshold)
			more = threshold;
		more = vc_least(vc_least(more, *budget - slots), s->k.max_len - 1 - r->o.computed);
		more = s->states ? up_to_state(s, r, more, 0) : more;
		if (!more)
			continue;
		while (!(got = allocate(s, r, more, 0, err))) {
			VC_TRY(preempt_last(s, err));
			if (r->state == WAITING) /* it was the last itself */
				return VC_OK;
		}
		VC_TRY(got);
		VC_HAVE(compute(s, i, more, false), "the step", err);
		*prefill |= r->chunk;
		*budget -= more + slots;
	}
	return VC_OK;
}

static void count_hits(struct vc_serving *s, const struct vc_running *r, uint64_t found)
{
	if (s->k.no_caching)
		return;
	s->now.queries += r->o.tokens;
	s->now.hits += found;
}

/* A request whose last token alone is to be computed looks like those that verify drafts. */
static bool is_padded(const struct vc_serving *s, const struct vc_running *r, uint64_t found,
		      bool prefill, bool others)
{
	return s->k.drafts && r->o.tokens - found == 1 && !prefill && (others || found) &&
	       found + s->k.drafts + 2 <= s->k.max_len;
}

static int step_waiting(struct vc_serving *s, uint64_t threshold, uint64_t budget, bool prefill,
			struct vc_error *err)
{
	uint64_t slots = s->k.draft_slots;
	bool others = s->served > 0;

	while (s->first && budget > slots && s->runs < s->k.max_seqs) {
		uint32_t i = s->first - 1;
		struct vc_running *r = &s->r[i];
		uint64_t found = vc_kv_lookup(&s->cache, &r->o, r->o.tokens - 1), more;
		bool padded;
		int got;

		VC_HAVE(found != UINT64_MAX, "what a request shares", err);
		if (!s->rules.hits_admitted)
			count_hits(s, r, found);
		padded = is_padded(s, r, found, prefill, others);
		more = padded ? 1 + s->k.drafts : r->o.tokens - found;
		if (padded && more > budget - slots)
			break;
		if (threshold && more > threshold)
			more = threshold;
		more = vc_least(more, budget - slots);
		more = s->states ? up_to_state(s, r, more, found) : more;
		if (!more)
			break;
		if (padded && more != 1 + s->k.drafts)
			more = 1, padded = false;
		got = allocate(s, r, more, found, err);
		VC_TRY(got);
		if (!got)
			break;
		if (s->rules.hits_admitted)
			count_hits(s, r, found);
		dequeue(s, i);
		r->o.computed = found;
		VC_HAVE(vc_vec_room(s->running, s->running_cap, s->runs + 1) &&
			compute(s, i, more, padded), "the step", err);
		s->running[s->runs++] = i;
		r->state = RUNNING;
		budget -= more + slots;
	}
	return VC_OK;
}

int vc_serving_schedule(struct vc_serving *s, struct vc_error *err)
{
	uint64_t budget = s->k.max_batch, threshold = s->k.long_prefill;
	bool prefill = false;

	s->served = s->gave_up = 0;
	vc_kv_step_starts(&s->cache);
	if (s->rules.alone && s->runs + s->waits <= 1)
		threshold = 0;
	VC_TRY(step_running(s, threshold, &budget, &prefill, err));
	if (!s->gave_up)
		VC_TRY(step_waiting(s, threshold, budget, prefill, err));
	s->now.steps++;
	return vc_kv_step_ends(&s->cache, err);
}

static bool is_done(const struct vc_serving *s, const struct vc_running *r,
		    const struct vc_serve_request *rq)
{
	return r->o.tokens >= s->k.max_len || r->o.tokens - rq->prompt >= rq->output;
}

/* The next token, and drafts before it that were right; true: the request has all of them. */
static bool take_tokens(struct vc_serving *s, struct vc_running *r,
			const struct vc_serve_request *rq, const struct vc_served *step)
{
	uint64_t at = r->o.tokens - rq->prompt, right = 0;

	while (right < step->drafts && !step->padded && is_right(s, rq, at + right))
		right++;
	s->now.drafted += step->padded ? 0 : step->drafts;
	s->now.accepted += right;
	r->o.computed -= step->drafts - right;
	for (uint64_t more = right + 1; more && !is_done(s, r, rq); more--) {
		r->o.tokens++;
		s->now.generated++;
	}
	r->o.computed = vc_least(r->o.computed, r->o.tokens - 1);
	return is_done(s, r, rq);
}

/* Scheduler.update_from_output: who has computed all its tokens gets the next ones. */
int vc_serving_output(struct vc_serving *s, struct vc_error *err)
{
	size_t kept = 0;

	for (size_t k = 0; k < s->served; k++) {
		const struct vc_serve_request *rq = &s->requests->at[s->step[k].request];
		struct vc_running *r = &s->r[s->step[k].request];
		bool done;

		r->o.computed += s->step[k].tokens;
		r->chunk = r->o.computed < r->o.tokens;
		if (r->chunk)
			continue;
		done = take_tokens(s, r, rq, &s->step[k]);
		VC_HAVE(hash_more(s, r, rq), "the hashes of a request", err);
		if (s->k.drafts && s->rules.verified)
			VC_TRY(vc_kv_learn_blocks(&s->cache, &r->o, r->o.computed, err));
		r->drafts = s->k.drafts;
		if (!done)
			continue;
		vc_kv_leave(&s->cache, &r->o);
		drop(s, r);
		s->now.finished++;
	}
	for (size_t at = 0; at < s->runs; at++)
		if (s->r[s->running[at]].state == RUNNING)
			s->running[kept++] = s->running[at];
	s->runs = kept;
	return VC_OK;
}

/* ---- from outside ---- */
/* KVCacheCoordinator.eagle_group_ids: a bit of one group is that of its equals; where drafts come
 * from the model and no group is marked, all are. */
static void mark_eagle(struct vc_serving *s)
{
	struct vc_kv_cache *c = &s->cache;

	for (size_t g = 0; g < c->groups; g++) {
		c->group[g].eagle &= !s->ahead;
		c->eagle |= c->group[g].eagle;
	}
	for (size_t g = 0; g < c->groups; g++) {
		c->group[g].eagle |= s->k.eagle && !s->ahead && !c->eagle;
		for (size_t i = 0; i < c->groups; i++)
			c->group[i].eagle |= c->group[g].eagle &&
					     c->group[g].spec == c->group[i].spec;
	}
	c->eagle |= s->k.eagle && !s->ahead;
}

static int set_groups(struct vc_serving *s, struct vc_error *err)
{
	const struct vc_serving_config *k = &s->k;
	struct vc_kv_cache *c = &s->cache;

	c->group[0] = (struct vc_kv_group){ VC_KV_FULL, .block_size = k->block_size };
	c->groups = k->group ? k->groups : 1;
	c->rules = s->rules;
	c->caching = !k->no_caching;
	c->retention = k->retention;
	c->lookahead = k->lookahead;
	s->ahead = k->eagle && s->rules.ahead && c->caching;
	if (!k->group) {
		mark_eagle(s);
		return VC_OK;
	}
	if (!s->rules.groups)
		return vc_fail(err, VC_ENOSUP, "layers of several kinds are played as vLLM 0.31 "
			       "and newer do it");
	if (!k->groups || k->groups > VC_KV_GROUPS)
		return vc_fail(err, VC_ENOSUP, "%zu groups of layers: 1 to %d can be played",
			       k->groups, VC_KV_GROUPS);
	memcpy(c->group, k->group, k->groups * sizeof(*k->group));
	s->checkpoint = UINT64_MAX;
	mark_eagle(s);
	for (size_t g = 0; g < k->groups; g++) {
		if (k->group[g].kind != VC_KV_STATE)
			continue;
		s->states = c->caching;
		if (s->checkpoint == UINT64_MAX || !k->group[g].checkpoint)
			s->checkpoint = k->group[g].checkpoint;
	}
	return VC_OK;
}

int vc_serving_init(struct vc_serving *s, const struct vc_serving_config *k,
		    const struct vc_requests *requests, struct vc_error *err)
{
	*s = (struct vc_serving){ .k = *k, .requests = requests };
	if (vc_vllm_rules_for(k->version, &s->rules) < 0)
		return vc_fail(err, VC_EUSAGE, "vLLM \"%s\" is not known, try %s .. %s", k->version,
			       VC_VLLM_OLDEST, VC_VLLM_NEWEST);
	if (!k->block_size || !k->max_seqs || !k->max_batch || k->max_len < 2)
		return vc_fail(err, VC_EUSAGE, "%s",
			       !k->block_size ? "--block-size starts at 1 token" :
			       !k->max_seqs ? "--max-num-seqs starts at 1 request" :
			       !k->max_batch ? "--max-num-batched-tokens starts at 1 token" :
			       "--max-model-len starts at 2 tokens, one of them generated");
	if (k->blocks < 2 || k->blocks > UINT32_MAX - 2 || k->block_size > UINT32_MAX)
		return vc_fail(err, VC_EUSAGE, "a KV cache of %llu blocks: vLLM keeps one for "
			       "itself, so there must be two, and fewer than 2^32",
			       (unsigned long long)k->blocks);
	if (!(k->watermark >= 0 && k->watermark < 1))
		return vc_fail(err, VC_EUSAGE, "the watermark is a part of the blocks: 0 to 1");
	if (k->watermark > 0 && !s->rules.watermark)
		return vc_fail(err, VC_EUSAGE, "vLLM %s has no watermark, 0.24 has", k->version);
	VC_TRY(set_groups(s, err));
	if (!k->group && k->max_len > (k->blocks - 1) * k->block_size)
		return vc_fail(err, VC_EUSAGE, "vLLM does not start: a sequence of %llu tokens "
			       "does not fit into %llu blocks of %llu, the largest is %llu",
			       (unsigned long long)k->max_len, (unsigned long long)k->blocks - 1,
			       (unsigned long long)k->block_size,
			       (unsigned long long)((k->blocks - 1) * k->block_size));
	return vc_kv_cache_init(&s->cache, (uint32_t)k->blocks, k->match,
				k->in_flight ? k->in_flight : k->max_batch, k->max_len, err);
}

void vc_serving_fini(struct vc_serving *s)
{
	for (size_t i = 0; i < s->r_cap; i++)
		drop(s, &s->r[i]);
	VC_FREE(s->r, s->running, s->given_up, s->step);
	vc_kv_cache_fini(&s->cache);
}

const char *vc_serving_refuses(const struct vc_serving *s, const struct vc_serve_request *rq)
{
	return rq->prompt >= s->k.max_len ? "its prompt leaves no token of max_model_len" : NULL;
}

int vc_serving_add(struct vc_serving *s, uint32_t i, struct vc_error *err)
{
	VC_HAVE((size_t)i < s->r_cap ||
		vc_vec_grow_zeroed(&s->r, &s->r_cap, (size_t)i + 1, sizeof(*s->r)),
		"the requests", err);
	s->r[i].o = (struct vc_kv_owner){
		.tokens = s->requests->at[i].prompt, .prompt = s->requests->at[i].prompt,
		.encoder = s->k.encoder,
		.table = calloc(s->cache.groups, sizeof(struct vc_kv_table)),
	};
	VC_HAVE(s->r[i].o.table && hash_more(s, &s->r[i], &s->requests->at[i]),
		"the hashes of a request", err);
	enqueue(s, i, false);
	return VC_OK;
}

void vc_serving_abort(struct vc_serving *s, uint32_t i)
{
	size_t at = 0;

	if ((size_t)i >= s->r_cap || s->r[i].state == ABSENT)
		return;
	if (s->r[i].state == WAITING) {
		dequeue(s, i);
	} else {
		while (s->running[at] != i)
			at++;
		memmove(&s->running[at], &s->running[at + 1],
			(--s->runs - at) * sizeof(*s->running));
		vc_kv_leave(&s->cache, &s->r[i].o);
	}
	drop(s, &s->r[i]);
}

const uint32_t *vc_serving_blocks(const struct vc_serving *s, uint32_t i, size_t g, size_t *n)
{
	*n = s->r[i].o.table[g].n;
	return s->r[i].o.table[g].block;
}
