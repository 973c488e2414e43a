/* SPDX-License-Identifier: Apache-2.0 */
/* kv_groups.c - which blocks a request needs in each group, takes, keeps and makes known. */
#include "simulator/serving/kv_groups.h"

#include "common/vec.h"

/* ---- sizes ---- */
static uint64_t gcd(uint64_t a, uint64_t b)
{
	return b ? gcd(b, a % b) : a;
}

/* resolve_kv_cache_block_sizes and partial_hash_hits_enabled. */
static int set_sizes(struct vc_kv_cache *c, uint64_t match, struct vc_error *err)
{
	struct vc_kv_sizes *z = &c->size;
	uint64_t common = 0, multiple = 1;
	bool states = false, whole = false;

	for (size_t g = 0; g < c->groups; g++) {
		common = gcd(common, c->group[g].block_size);
		multiple *= c->group[g].block_size / gcd(multiple, c->group[g].block_size);
		if (!c->caching)
			multiple = 1; /* nobody looks for anything */
		if (multiple > 1u << 30)
			return vc_fail(err, VC_EUSAGE, "blocks of the groups of layers have no "
				       "common multiple below 2^30 tokens");
	}
	z->scheduler = multiple;
	z->hash = !c->caching || c->groups == 1 ? multiple : match ? match : common;
	if (common % z->hash && c->caching)
		return vc_fail(err, VC_EUSAGE, "prefix_match_unit %llu does not divide the blocks "
			       "of all groups", (unsigned long long)z->hash);
	for (size_t g = 0; g < c->groups; g++) {
		const struct vc_kv_group *k = &c->group[g];

		states |= k->kind == VC_KV_STATE && k->block_size > z->hash;
		whole |= k->kind != VC_KV_FULL && k->kind != VC_KV_STATE &&
			 k->block_size != z->hash;
	}
	z->fine = c->caching && c->groups > 1 && states && !whole;
	z->hit = z->fine ? z->hash : z->scheduler;
	return VC_OK;
}

int vc_kv_cache_init(struct vc_kv_cache *c, uint32_t blocks, uint64_t match, uint64_t in_flight,
		     uint64_t max_len, struct vc_error *err)
{
	VC_TRY(set_sizes(c, match, err));
	c->max_len = max_len;
	for (size_t g = 0; g < c->groups; g++) {
		const struct vc_kv_group *k = &c->group[g];

		if (c->caching && (k->kind == VC_KV_CROSS ||
		    (k->kind == VC_KV_CHUNKED && k->block_size != c->size.hit)))
			return vc_fail(err, VC_ENOSUP, "vLLM has no prefix cache for these groups "
				       "of layers: --no-prefix-caching");
		c->cap[g] = UINT64_MAX;
		if (k->kind == VC_KV_SLIDING)
			c->cap[g] = vc_per(vc_least(k->window - 1 + in_flight, max_len),
				       k->block_size) + 1;
		else if (k->kind == VC_KV_CHUNKED)
			c->cap[g] = vc_per(vc_least(k->window + in_flight, max_len), k->block_size);
	}
	return vc_kv_init(&c->pool, blocks, err);
}

void vc_kv_cache_fini(struct vc_kv_cache *c)
{
	for (size_t g = 0; g < VC_KV_GROUPS; g++)
		free(c->hit[g].block);
	VC_FREE(c->copy, c->fresh, c->end);
	vc_kv_fini(&c->pool);
}

/* ---- tables ---- */
static bool push(struct vc_kv_table *t, uint32_t block, size_t times)
{
	if (!vc_vec_room(t->block, t->cap, t->n + times))
		return false;
	while (times--)
		t->block[t->n++] = block;
	return true;
}

static bool push_new(struct vc_kv_cache *c, struct vc_kv_table *t, size_t n)
{
	if (!vc_vec_room(t->block, t->cap, t->n + n))
		return false;
	while (n--)
		t->block[t->n++] = vc_kv_take(&c->pool);
	return true;
}

static bool front(const struct vc_kv_cache *c)
{
	return c->rules.front && !(c->rules.front_cached && !c->caching);
}

static void release_range(struct vc_kv_cache *c, struct vc_kv_table *t, size_t first, size_t last)
{
	vc_kv_release(&c->pool, t->block + first, last - first, front(c));
	memset(t->block + first, 0, (last - first) * sizeof(*t->block));
}

void vc_kv_leave(struct vc_kv_cache *c, struct vc_kv_owner *r)
{
	for (size_t g = 0; g < c->groups; g++) {
		struct vc_kv_table *t = &r->table[g];

		vc_kv_release(&c->pool, t->block, t->n, front(c));
		*t = (struct vc_kv_table){ .block = t->block, .cap = t->cap };
	}
}

/* ---- what attention looks at no more ---- */
static uint64_t skipped(const struct vc_kv_group *g, uint64_t computed)
{
	switch (g->kind) {
	case VC_KV_SLIDING: return computed + 1 > g->window ? computed + 1 - g->window : 0;
	case VC_KV_CHUNKED: return computed / g->window * g->window;
	case VC_KV_STATE: return computed ? computed - 1 : 0;
	default: return 0;
	}
}

static bool aligned(const struct vc_kv_cache *c, size_t g)
{
	return c->group[g].kind == VC_KV_STATE && c->caching;
}

void vc_kv_trim(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t computed)
{
	for (size_t g = 0; g < c->groups; g++) {
		const struct vc_kv_group *k = &c->group[g];
		struct vc_kv_table *t = &r->table[g];
		size_t last = (size_t)vc_least(skipped(k, computed) / k->block_size, t->n);
		size_t first = last;

		if (aligned(c, g)) {
			/* at once: blocks without a hash keep this order at the front */
			if (last > t->retired) {
				release_range(c, t, t->retired, last);
				t->retired = last;
			}
			continue;
		}
		while (first && t->block[first - 1])
			first--;
		if (first < last)
			release_range(c, t, first, last);
	}
}

/* ---- how many ---- */
static int64_t idle(const struct vc_kv_cache *c, const struct vc_kv_hit *h, size_t from)
{
	int64_t n = 0;

	for (size_t i = from; i < h->n; i++)
		n += h->block[i] && !c->pool.block[h->block[i]].refs;
	return n;
}

uint64_t vc_kv_state_position(const struct vc_kv_cache *c, uint64_t tokens, uint64_t step)
{
	uint64_t at = (c->eagle && c->rules.resent ? tokens : tokens - 1) / step * step;

	return c->eagle ? at - vc_least(at, step) : at;
}

bool vc_kv_state_within(uint64_t start, uint64_t end, uint64_t at, uint64_t hash, uint64_t block,
			uint64_t alignment)
{
	int64_t first = start ? (int64_t)((start - 1) / block) : -1;

	return alignment && start % hash == 0 && (int64_t)vc_per(end, block) - 2 > first &&
	       start + hash <= at && at < end && (at - start) % alignment == 0;
}

/* _needs_internal_checkpoint: the position, or 0. */
static uint64_t checkpoint_of(const struct vc_kv_cache *c, const struct vc_kv_group *k,
			      const struct vc_kv_table *t, uint64_t start, uint64_t end,
			      uint64_t prefill_end)
{
	uint64_t at = vc_kv_state_position(c, end, c->rules.resent ? c->size.hit : c->size.hash);
	uint64_t blocks = vc_per(end, k->block_size), i = blocks - 2;

	if (!k->checkpoint || end < prefill_end || blocks < 2 ||
	    !vc_kv_state_within(start, end, at, c->size.hash, k->block_size, k->checkpoint))
		return 0;
	return i >= t->n || !t->block[i] || (t->running && i >= t->n - k->states) ? at : 0;
}

/* A draft model writes slots behind the tokens of a step. */
static uint64_t slots(const struct vc_kv_cache *c, uint64_t tokens)
{
	return vc_least(tokens + c->lookahead, c->max_len);
}

static bool ends_within(const struct vc_kv_group *k, const struct vc_kv_hit *h, uint64_t found)
{
	return h->n && found % k->block_size;
}

static bool is_fresh(const struct vc_kv_cache *c, uint32_t block)
{
	uint64_t hash = c->pool.entry[block].hash;

	for (size_t i = c->freshes; hash && i--; )
		if (c->fresh[i] == hash)
			return true;
	return false;
}

/* MambaManager.get_num_blocks_to_allocate, where the prefix cache is on. */
static int64_t wanted_states(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r,
			     uint64_t tokens, uint64_t found, const struct vc_kv_hit *h, bool whole)
{
	const struct vc_kv_group *k = &c->group[g];
	struct vc_kv_table *t = &r->table[g];
	int64_t more = (int64_t)(vc_per(tokens, k->block_size) + k->states) - (int64_t)h->n -
		       (int64_t)t->n, most;
	bool partial = ends_within(k, h, r->computed + found) || t->partial;
	uint64_t end = c->retention ? 0 :
		       r->prompt > r->tokens - 1 ? r->prompt : r->tokens - 1;
	uint64_t at = checkpoint_of(c, k, t, r->computed + found, tokens, end);

	if (partial)
		more = (more > 0 ? more : 0) + 1;
	if (!whole) {
		t->checkpoint = at;
		t->checkpoint_at = at ? (size_t)vc_per(tokens, k->block_size) - 2 : 0;
	}
	most = 1 + partial + (at > 0);
	if (!t->running || (at && !c->rules.resent))
		most += (int64_t)k->states;
	return (more > most ? most : more) + idle(c, h, 0);
}

static int64_t wanted_of(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r, uint64_t tokens,
			 uint64_t found, const struct vc_kv_hit *h, bool whole)
{
	const struct vc_kv_group *k = &c->group[g];
	const struct vc_kv_table *t = &r->table[g];
	uint64_t need, gone, have = h->n + t->n;

	if (k->kind == VC_KV_STATE && h->n && is_fresh(c, h->block[h->n - 1]))
		return (int64_t)c->pool.n + 1; /* not in this step */
	if (aligned(c, g))
		return wanted_states(c, g, r, tokens, found, h, whole);
	if (!whole && k->kind != VC_KV_CROSS)
		tokens = slots(c, tokens);
	need = vc_per(tokens, k->block_size) + (k->kind == VC_KV_STATE ? k->states : 0);
	if (whole)
		need = vc_least(need, c->cap[g]);
	if (t->tracked)
		return need > t->n ? (int64_t)(need - t->n) : 0;
	gone = skipped(k, r->computed + found) / k->block_size;
	have = gone > have ? gone : have;
	return (int64_t)(need > have ? need - have : 0) +
	       idle(c, h, gone > t->n ? gone - t->n : 0) +
	       ends_within(k, h, r->computed + found);
}

int64_t vc_kv_wanted(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t tokens, uint64_t found,
		     bool admission, bool whole)
{
	static const struct vc_kv_hit none = { NULL, 0, 0 };
	int64_t sum = 0;

	for (size_t g = 0; g < c->groups; g++) {
		uint64_t n = c->group[g].kind != VC_KV_CROSS ? tokens : admission ? r->encoder : 0;

		sum += wanted_of(c, g, r, n, found, admission ? &c->hit[g] : &none, whole);
	}
	return sum;
}

/* ---- take them ---- */
/* add_local_computed_blocks */
static bool add_hits(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r, uint64_t found)
{
	const struct vc_kv_group *k = &c->group[g];
	struct vc_kv_table *t = &r->table[g];
	const struct vc_kv_hit *h = &c->hit[g];
	size_t gone = (size_t)(skipped(k, found) / k->block_size);

	if (k->kind == VC_KV_CROSS)
		return true;
	if (!push(t, 0, gone))
		return false;
	for (size_t i = gone; i < h->n; i++) {
		if (h->block[i])
			vc_kv_touch(&c->pool, h->block[i]);
		if (!push(t, h->block[i], 1))
			return false;
	}
	t->cached = t->n;
	t->tracked = true;
	if (h->n > gone && found % k->block_size) {
		t->partial_at = (size_t)(found / k->block_size);
		t->partial = h->block[h->n - 1];
		t->cached = t->partial_at;
	}
	return true;
}

static bool copy(struct vc_kv_cache *c, size_t g, uint32_t from, uint32_t to)
{
	if (!vc_vec_room(c->copy, c->copy_cap, c->copies + 1))
		return false;
	c->copy[c->copies++] = (struct vc_kv_copy){ (uint32_t)g, from, to };
	return true;
}

/* A block that others know is written by this request alone from now on. */
static bool own(struct vc_kv_cache *c, size_t g, struct vc_kv_table *t)
{
	uint32_t block = vc_kv_take(&c->pool);

	t->block[t->partial_at] = block;
	c->pool.block[block].refs++;
	return copy(c, g, t->partial, block);
}

static bool note_fresh(struct vc_kv_cache *c, uint64_t hash)
{
	if (!vc_vec_room(c->fresh, c->fresh_cap, c->freshes + 1))
		return false;
	c->fresh[c->freshes++] = hash;
	return true;
}

/* The request goes on writing into the block, so others find a copy of it. */
static bool leave_copy(struct vc_kv_cache *c, size_t g, struct vc_kv_table *t)
{
	uint32_t block = vc_kv_take(&c->pool);

	if (!vc_kv_move(&c->pool, t->partial, block) || !copy(c, g, t->partial, block))
		return false;
	c->pool.block[t->partial].refs++;
	return !c->pool.entry[block].hash || note_fresh(c, c->pool.entry[block].hash);
}

/* Scratch states move behind what this step leaves behind. */
static bool relocate(struct vc_kv_table *t, size_t first, size_t last)
{
	for (size_t i = first; i < last; i++) {
		if (!push(t, t->block[i], 1))
			return false;
		t->block[i] = 0;
	}
	return true;
}

/* MambaManager.allocate_new_blocks, where the prefix cache is on. */
static bool take_states(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r, uint64_t tokens)
{
	const struct vc_kv_group *k = &c->group[g];
	struct vc_kv_table *t = &r->table[g];
	size_t states = (size_t)k->states, need = (size_t)vc_per(tokens, k->block_size) + states;
	size_t before = t->n, gone = need - states - 1, keep = t->checkpoint > 0;

	if (need <= before && !t->partial && !keep) {
		t->running = true;
		return true;
	}
	if (before < gone && gone - keep > before && !push(t, 0, gone - keep - before))
		return false;
	if (t->running && (c->rules.resent || !keep)) {
		size_t last = gone - (c->rules.resent ? keep : 0);

		if (!relocate(t, before - states, last < before ? last : before))
			return false;
	}
	if (t->partial && !(t->running ? leave_copy(c, g, t) : own(c, g, t)))
		return false;
	t->partial = 0;
	t->running = true;
	return need <= t->n || push_new(c, t, need - t->n);
}

static bool take(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r, uint64_t tokens)
{
	const struct vc_kv_group *k = &c->group[g];
	struct vc_kv_table *t = &r->table[g];
	size_t need = (size_t)(vc_per(k->kind == VC_KV_CROSS ? tokens : slots(c, tokens),
				  k->block_size) + (k->kind == VC_KV_STATE ? k->states : 0));

	if (aligned(c, g))
		return take_states(c, g, r, tokens);
	if (t->partial && !own(c, g, t))
		return false;
	t->partial = 0;
	return need <= t->n || push_new(c, t, need - t->n);
}

int vc_kv_allocate(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t tokens, uint64_t found,
		   bool admission, struct vc_error *err)
{
	bool any = false;

	for (size_t g = 0; admission && g < c->groups; g++)
		any |= c->hit[g].n > 0;
	for (size_t g = 0; any && g < c->groups; g++)
		VC_HAVE(add_hits(c, g, r, found), "the blocks of a request", err);
	for (size_t g = 0; g < c->groups; g++) {
		uint64_t n = c->group[g].kind != VC_KV_CROSS ? tokens : admission ? r->encoder : 0;

		VC_HAVE(take(c, g, r, n), "the blocks of a request", err);
	}
	return VC_OK;
}

/* ---- who is known from now on ---- */
/* Tokens whose blocks are learnt: an eagle group keeps one more, which a hit looks at and drops. */
static uint64_t learnable(const struct vc_kv_cache *c, size_t g, uint64_t tokens)
{
	uint64_t n = tokens;

	if (c->groups == 1)
		return tokens;
	if (!c->size.fine)
		n = tokens / c->size.scheduler * c->size.scheduler;
	return n && c->group[g].eagle ? vc_least(tokens, n + c->group[g].block_size) : n;
}

/* The last `need` blocks before `end` tokens, and `shift` more. */
static bool before(const struct vc_kv_cache *c, uint64_t i, uint64_t block, uint64_t end,
		   uint64_t need, uint64_t shift)
{
	uint64_t last = end / c->size.hit * c->size.hit / block + shift;

	return i < last && i + need >= last;
}

/* replay_boundaries: where a request with these tokens of a prompt can go on. */
static uint64_t again(const struct vc_kv_cache *c, uint64_t tokens)
{
	uint64_t at = tokens / c->size.scheduler * c->size.scheduler;

	return c->eagle ? at - vc_least(at, c->size.scheduler) : tokens;
}

/* reachable_block_mask: whether any hit can end so that it needs block i. */
static bool reachable(const struct vc_kv_cache *c, size_t g, const struct vc_kv_owner *r,
		      uint64_t i)
{
	const struct vc_kv_group *k = &c->group[g];
	uint64_t block = k->block_size, step = c->retention == VC_KV_DENSE ? c->size.hit :
		 c->retention, per = step / block;
	uint64_t shift = k->kind == VC_KV_SLIDING && k->eagle, need = 1;

	if (k->kind == VC_KV_SLIDING)
		need = vc_per(k->window - 1, block) + shift;
	if (k->kind == VC_KV_STATE ? c->retention == VC_KV_DENSE || (step && per <= 1) :
	    k->kind != VC_KV_SLIDING || c->size.hit % block || (step && need >= per))
		return true;
	if (step && i >= shift && (i - shift) % per >= per - need)
		return true;
	if (c->retention == VC_KV_DENSE)
		return false;
	if (before(c, i, block, again(c, r->prompt - 1), need, shift) ||
	    (c->eagle && before(c, i, block, again(c, r->prompt), need, shift)))
		return true;
	return r->junction && (before(c, i, block, r->junction, need, shift) ||
			       (k->eagle && c->rules.keyed_once && r->junction >= block &&
				before(c, i, block, r->junction - block, need, shift)));
}

static bool learn_full(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r, uint64_t tokens,
		       size_t *end)
{
	const struct vc_kv_group *k = &c->group[g];
	struct vc_kv_table *t = &r->table[g];
	size_t scale = (size_t)(k->block_size / c->size.hash);
	size_t full = (size_t)vc_least(tokens / k->block_size, r->hashes / scale), from = t->cached;

	*end = full;
	if (from >= full)
		return true;
	t->cached = full;
	t->tracked = true;
	for (size_t i = from; i < full && i < t->n; i++) {
		uint32_t b = t->block[i];

		if (!b || !reachable(c, g, r, i))
			continue;
		vc_kv_unlearn(&c->pool, b); /* it was known in part */
		if (!vc_kv_learn(&c->pool, b, vc_kv_key(r->hash[(i + 1) * scale - 1], g),
				 (i + 1) * k->block_size))
			return false;
	}
	return true;
}

/* cache_partial_block: the key, 0: no memory. */
static uint64_t learn_part(struct vc_kv_cache *c, size_t g, const struct vc_kv_owner *r,
			   uint32_t block, uint64_t tokens, bool replace)
{
	uint64_t key = vc_kv_key(r->hash[tokens / c->size.hash - 1], g);

	if (replace || (!vc_kv_known(&c->pool, block, key) && c->pool.entry[block].hash &&
			c->pool.block[block].tokens < tokens))
		vc_kv_unlearn(&c->pool, block);
	return vc_kv_learn(&c->pool, block, key, tokens) ? key : 0;
}

/* FullAttentionManager._cache_partial_tail_block */
static bool learn_tail(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r, uint64_t tokens)
{
	const struct vc_kv_group *k = &c->group[g];
	struct vc_kv_table *t = &r->table[g];
	uint64_t end = r->prompt - (c->rules.resent && !k->eagle), hash = c->size.hash;
	size_t i;

	end = vc_least(end / hash, r->hashes) * hash;
	i = (size_t)(end / k->block_size);
	if (k->block_size == hash || !end || end > tokens || end % k->block_size == 0 ||
	    i >= t->n || !t->block[i])
		return true;
	return learn_part(c, g, r, t->block[i], end, false) != 0;
}

/* The state that was taken within this step's prompt; true in *done: there is one. */
static bool learn_checkpoint(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r,
			     uint64_t tokens, uint64_t *key)
{
	const struct vc_kv_group *k = &c->group[g];
	const struct vc_kv_table *t = &r->table[g];
	uint64_t at = t->checkpoint, step = c->rules.resent ? c->size.hit : c->size.hash;
	uint32_t b = t->block[t->checkpoint_at];
	bool of_prompt = at == vc_kv_state_position(c, r->prompt, step), kept = false;

	if (at % k->block_size == 0) {
		uint64_t per = c->retention == VC_KV_DENSE ? 1 : c->retention / k->block_size;

		kept = c->retention && (per <= 1 || at / k->block_size % per == 0);
	}
	if (c->rules.resent ? !of_prompt && !kept && at != r->junction :
	    !c->retention && tokens < r->prompt && !of_prompt && at != r->junction) {
		vc_kv_unlearn(&c->pool, b);
		return true;
	}
	if (!b || (c->pool.entry[b].hash && c->pool.block[b].tokens == at))
		return true;
	*key = learn_part(c, g, r, b, at, true);
	return *key != 0;
}

/* MambaManager._cache_partial_tail_block */
static bool learn_part_state(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r,
			     uint64_t tokens, uint64_t *key)
{
	const struct vc_kv_group *k = &c->group[g];
	struct vc_kv_table *t = &r->table[g];
	uint64_t hash = c->size.hash, end;
	size_t i;

	if (t->checkpoint)
		return learn_checkpoint(c, g, r, tokens, key);
	if (!tokens || tokens % hash)
		return true;
	end = r->prompt / hash * hash;
	if (c->rules.resent)
		end = vc_kv_state_position(c, r->prompt, hash);
	else if (k->block_size == hash || tokens % k->block_size == 0)
		return true;
	else if (c->eagle)
		end -= vc_least(end, hash);
	i = (size_t)vc_per(tokens, k->block_size) - 1;
	if (tokens != end || i >= t->n || !t->block[i] ||
	    (c->rules.keyed_once && c->pool.entry[t->block[i]].hash &&
	     c->pool.block[t->block[i]].tokens == tokens))
		return true;
	*key = learn_part(c, g, r, t->block[i], tokens, false);
	if (*key && tokens % k->block_size) {
		t->partial = t->block[i];
		t->partial_at = t->cached = i;
		t->tracked = true;
	}
	return *key != 0;
}

/* MambaManager.cache_blocks */
static bool learn_states(struct vc_kv_cache *c, size_t g, struct vc_kv_owner *r, uint64_t tokens)
{
	struct vc_kv_table *t = &r->table[g];
	size_t from = t->cached, full;
	uint64_t key = 0;

	if (!learn_full(c, g, r, tokens, &full) || !learn_part_state(c, g, r, tokens, &key) ||
	    (key && !note_fresh(c, key)))
		return false;
	for (size_t i = from; i < full && i < t->n; i++)
		if (t->block[i] && c->pool.entry[t->block[i]].hash &&
		    !note_fresh(c, c->pool.entry[t->block[i]].hash))
			return false;
	return true;
}

int vc_kv_learn_blocks(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t tokens,
		       struct vc_error *err)
{
	for (size_t g = 0; c->caching && g < c->groups; g++) {
		enum vc_kv_kind kind = c->group[g].kind;
		uint64_t n = learnable(c, g, tokens);
		size_t end;

		VC_HAVE(kind == VC_KV_STATE ? learn_states(c, g, r, n) :
			learn_full(c, g, r, n, &end) &&
			(kind != VC_KV_FULL || learn_tail(c, g, r, n)), "the known blocks", err);
	}
	return VC_OK;
}

/* ---- a step ---- */
void vc_kv_step_starts(struct vc_kv_cache *c)
{
	c->freshes = 0;
}

int vc_kv_step_ends(struct vc_kv_cache *c, struct vc_error *err)
{
	size_t n = 2 * c->copies, at = n;

	/* vc_kv_release() frees the last first, and vLLM frees these in order */
	VC_HAVE(vc_vec_room(c->end, c->end_cap, n), "the copied blocks", err);
	for (size_t g = 0; at && g < c->groups; g++)
		for (size_t i = 0; i < c->copies; i++)
			if (c->copy[i].group == g) {
				c->end[--at] = c->copy[i].from;
				c->end[--at] = c->copy[i].to;
			}
	vc_kv_release(&c->pool, c->end, n, front(c));
	c->copies = 0;
	return VC_OK;
}
