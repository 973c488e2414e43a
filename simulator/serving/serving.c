/* SPDX-License-Identifier: Apache-2.0 */
/* serving.c - the scheduler: running requests first, in order; then waiting ones, while there is
 * room. Who finds no block takes them from the request that came last. */
#include "simulator/serving/serving.h"

#include "common/vec.h"

enum state { ABSENT, WAITING, RUNNING };

struct vc_running {
	uint64_t tokens, computed; /* known so far, of them in the cache */
	uint64_t *hash;            /* of its full blocks */
	size_t hashes, hash_cap;
	uint32_t *block;
	size_t blocks, block_cap;
	size_t learned;            /* blocks whose hash the pool knows, or knew before */
	size_t text;               /* where the next block begins: text, and token in it */
	uint64_t offset;
	uint32_t prev, next;       /* neighbours in the queue of the waiting; index + 1 */
	enum state state;
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
static uint64_t mix(uint64_t h) /* splitmix64 */
{
	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
	return h ^ (h >> 31);
}

/* Tokens are known by their text and their place in it, so a block is the runs of them that it
 * consists of, behind the hash of the block before. 64 bits: that two of a million blocks are
 * taken for one another has a chance of one in 30 million. */
static uint64_t hash_next(const struct vc_serving *s, struct vc_running *r,
			  const struct vc_serve_request *rq)
{
	uint64_t h = r->hashes ? r->hash[r->hashes - 1] : 0x9e3779b97f4a7c15u;
	uint64_t left = s->k.block_size;

	while (left) {
		bool prompt = r->text < rq->texts;
		const struct vc_text *t = &s->requests->text[rq->first + (prompt ? r->text : 0)];
		uint64_t rest = prompt ? t->tokens - r->offset : left;
		uint64_t run = rest < left ? rest : left;

		if (run) {
			h = mix(h + (prompt ? t->name : rq->answer));
			h = mix(h + r->offset * 0x9e3779b97f4a7c15u + run);
		}
		r->offset += run;
		left -= run;
		if (prompt && r->offset == t->tokens) {
			r->text++;
			r->offset = 0;
		}
	}
	return h ? h : 1;
}

static bool hash_more(const struct vc_serving *s, struct vc_running *r,
		      const struct vc_serve_request *rq)
{
	while (!s->k.no_caching && (r->hashes + 1) * s->k.block_size <= r->tokens) {
		if (!vc_vec_room(r->hash, r->hash_cap, r->hashes + 1))
			return false;
		r->hash[r->hashes] = hash_next(s, r, rq);
		r->hashes++;
	}
	return true;
}

/* ---- slots ---- */
static uint64_t blocks_for(const struct vc_serving *s, uint64_t tokens)
{
	return (tokens + s->k.block_size - 1) / s->k.block_size;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* KVCacheManager.get_computed_blocks: known full blocks from the start, but never all tokens. */
static size_t find_hits(const struct vc_serving *s, const struct vc_running *r)
{
	size_t most = (size_t)((r->tokens - 1) / s->k.block_size), n = 0;

	while (n < most && n < r->hashes && vc_kv_find(&s->pool, r->hash[n]))
		n++;
	return n;
}

/* KVCacheManager.allocate_slots, with `hits` known blocks for a request that is let in. 1: done;
 * 0: not enough free blocks. */
static int allocate(struct vc_serving *s, struct vc_running *r, uint64_t more, size_t hits,
		    struct vc_error *err)
{
	struct vc_kv_pool *p = &s->pool;
	bool admission = r->state == WAITING;
	uint64_t tokens = r->computed + hits * s->k.block_size + more, wanted, spare = 0;
	uint64_t wants = blocks_for(s, min64(tokens, s->k.max_len)), idle = 0, full;

	if (admission && s->rules.watermark && s->runs)
		spare = (uint64_t)(s->k.watermark * (double)p->n);
	for (size_t i = 0; i < hits; i++)
		idle += !p->block[vc_kv_find(p, r->hash[i])].refs;
	if (admission && s->rules.whole && !s->k.no_reserve) {
		wanted = blocks_for(s, min64(r->tokens, s->k.max_len)) - hits + idle;
		if (wanted + spare > p->free)
			return 0;
	}
	wanted = wants > r->blocks + hits ? wants - r->blocks - hits : 0;
	if (wanted + idle + spare > p->free)
		return 0;
	VC_HAVE(vc_vec_room(r->block, r->block_cap, r->blocks + hits + wanted),
		"the blocks of a request", err);
	for (size_t i = 0; i < hits; i++) {
		r->block[r->blocks] = vc_kv_find(p, r->hash[i]);
		vc_kv_touch(p, r->block[r->blocks++]);
	}
	r->learned = hits > r->learned ? hits : r->learned;
	while (wanted--)
		r->block[r->blocks++] = vc_kv_take(p);
	full = min64(min64(tokens, r->tokens) / s->k.block_size, r->hashes);
	for (; r->learned < full; r->learned++)
		VC_HAVE(vc_kv_learn(p, r->block[r->learned], r->hash[r->learned]),
			"the known blocks", err);
	s->now.operations++;
	return 1;
}

static void release(struct vc_serving *s, struct vc_running *r)
{
	bool front = s->rules.front && !(s->rules.front_cached && s->k.no_caching);

	vc_kv_release(&s->pool, r->block, r->blocks, front);
	r->blocks = r->learned = 0;
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

static void drop(struct vc_running *r)
{
	VC_FREE(r->hash, r->block);
	*r = (struct vc_running){ .state = ABSENT };
}

/* ---- a step ---- */
static bool compute(struct vc_serving *s, uint32_t i, uint64_t tokens)
{
	if (!vc_vec_room(s->step, s->step_cap, s->served + 1))
		return false;
	s->step[s->served++] = (struct vc_served){ i, tokens };
	s->now.tokens += tokens;
	return true;
}

static int preempt_last(struct vc_serving *s, struct vc_error *err)
{
	uint32_t i = s->running[--s->runs];

	VC_HAVE(vc_vec_room(s->given_up, s->given_cap, s->gave_up + 1),
		"the preempted requests", err);
	s->given_up[s->gave_up++] = i;
	s->now.preemptions++;
	s->now.recomputed += s->r[i].computed;
	release(s, &s->r[i]);
	s->r[i].computed = 0;
	enqueue(s, i, true);
	return VC_OK;
}

static int step_running(struct vc_serving *s, uint64_t threshold, uint64_t *budget,
			struct vc_error *err)
{
	for (size_t at = 0; at < s->runs && *budget; at++) {
		uint32_t i = s->running[at];
		struct vc_running *r = &s->r[i];
		uint64_t more = r->tokens - r->computed;
		int got;

		if (threshold && more > threshold)
			more = threshold;
		more = min64(min64(more, *budget), s->k.max_len - 1 - r->computed);
		if (!more)
			continue;
		while (!(got = allocate(s, r, more, 0, err))) {
			VC_TRY(preempt_last(s, err));
			if (r->state == WAITING) /* it was the last itself */
				return VC_OK;
		}
		VC_TRY(got);
		VC_HAVE(compute(s, i, more), "the step", err);
		*budget -= more;
	}
	return VC_OK;
}

static void count_hits(struct vc_serving *s, const struct vc_running *r, size_t hits)
{
	if (s->k.no_caching)
		return;
	s->now.queries += r->tokens;
	s->now.hits += hits * s->k.block_size;
}

static int step_waiting(struct vc_serving *s, uint64_t threshold, uint64_t budget,
			struct vc_error *err)
{
	while (s->first && budget && s->runs < s->k.max_seqs) {
		uint32_t i = s->first - 1;
		struct vc_running *r = &s->r[i];
		size_t hits = s->k.no_caching ? 0 : find_hits(s, r);
		uint64_t more = r->tokens - hits * s->k.block_size;
		int got;

		if (!s->rules.hits_admitted)
			count_hits(s, r, hits);
		if (threshold && more > threshold)
			more = threshold;
		more = min64(more, budget);
		got = allocate(s, r, more, hits, err);
		VC_TRY(got);
		if (!got)
			break;
		if (s->rules.hits_admitted)
			count_hits(s, r, hits);
		dequeue(s, i);
		VC_HAVE(vc_vec_room(s->running, s->running_cap, s->runs + 1) &&
			compute(s, i, more), "the step", err);
		s->running[s->runs++] = i;
		r->state = RUNNING;
		r->computed = hits * s->k.block_size;
		budget -= more;
	}
	return VC_OK;
}

int vc_serving_schedule(struct vc_serving *s, struct vc_error *err)
{
	uint64_t budget = s->k.max_batch, threshold = s->k.long_prefill;

	s->served = s->gave_up = 0;
	if (s->rules.alone && s->runs + s->waits <= 1)
		threshold = 0;
	VC_TRY(step_running(s, threshold, &budget, err));
	if (!s->gave_up)
		VC_TRY(step_waiting(s, threshold, budget, err));
	s->now.steps++;
	return VC_OK;
}

/* Scheduler.update_from_output: who has computed all its tokens gets the next one. */
int vc_serving_output(struct vc_serving *s, struct vc_error *err)
{
	size_t kept = 0;

	for (size_t k = 0; k < s->served; k++) {
		const struct vc_serve_request *rq = &s->requests->at[s->step[k].request];
		struct vc_running *r = &s->r[s->step[k].request];

		r->computed += s->step[k].tokens;
		if (r->computed < r->tokens)
			continue;
		r->tokens++;
		s->now.generated++;
		VC_HAVE(hash_more(s, r, rq), "the hashes of a request", err);
		if (r->tokens < s->k.max_len && r->tokens - rq->prompt < rq->output)
			continue;
		release(s, r);
		drop(r);
		s->now.finished++;
	}
	for (size_t at = 0; at < s->runs; at++)
		if (s->r[s->running[at]].state == RUNNING)
			s->running[kept++] = s->running[at];
	s->runs = kept;
	return VC_OK;
}

/* ---- from outside ---- */
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
	if (k->max_len > (k->blocks - 1) * k->block_size)
		return vc_fail(err, VC_EUSAGE, "vLLM does not start: a sequence of %llu tokens "
			       "does not fit into %llu blocks of %llu, the largest is %llu",
			       (unsigned long long)k->max_len, (unsigned long long)k->blocks - 1,
			       (unsigned long long)k->block_size,
			       (unsigned long long)((k->blocks - 1) * k->block_size));
	return vc_kv_init(&s->pool, (uint32_t)k->blocks, err);
}

void vc_serving_fini(struct vc_serving *s)
{
	for (size_t i = 0; i < s->r_cap; i++)
		drop(&s->r[i]);
	VC_FREE(s->r, s->running, s->given_up, s->step);
	vc_kv_fini(&s->pool);
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
	s->r[i].tokens = s->requests->at[i].prompt;
	VC_HAVE(hash_more(s, &s->r[i], &s->requests->at[i]), "the hashes of a request", err);
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
		release(s, &s->r[i]);
	}
	drop(&s->r[i]);
}

const uint32_t *vc_serving_blocks(const struct vc_serving *s, uint32_t i, size_t *n)
{
	*n = s->r[i].blocks;
	return s->r[i].block;
}
