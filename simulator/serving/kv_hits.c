/* SPDX-License-Identifier: Apache-2.0 */
/* kv_hits.c - the longest beginning of a request that all groups know: find_longest_cache_hit of
 * the managers, and of HybridKVCacheCoordinator over them. */
#include "common/vec.h"
#include "simulator/serving/kv_groups.h"

/* Groups of equal layers are looked up together: a block counts where all of them have it. */
struct lookup {
	struct vc_kv_cache *c;
	const struct vc_kv_owner *r;
	size_t group[VC_KV_GROUPS]; /* equal ones */
	size_t groups;
	const struct vc_kv_group *k; /* of the first */
	uint64_t hit;               /* alignment */
	bool eagle, failed;
	bool done;                  /* its eagle block was dropped at the current length */
	bool known;                 /* looked up before */
	uint64_t length;            /* of the last look */
};

static bool set(struct lookup *l, size_t i, uint64_t hash)
{
	uint32_t block[VC_KV_GROUPS];

	for (size_t g = 0; g < l->groups; g++)
		if (!(block[g] = vc_kv_find(&l->c->pool, vc_kv_key(hash, l->group[g]))))
			return false;
	for (size_t g = 0; g < l->groups; g++)
		l->c->hit[l->group[g]].block[i] = block[g];
	return true;
}

/* n blocks in all of the groups. */
static void cut(struct lookup *l, size_t n)
{
	for (size_t g = 0; g < l->groups; g++)
		l->c->hit[l->group[g]].n = n;
}

static bool clear(struct lookup *l, size_t room)
{
	for (size_t g = 0; g < l->groups; g++) {
		struct vc_kv_hit *h = &l->c->hit[l->group[g]];

		if (!vc_vec_room(h->block, h->cap, room))
			return false;
		memset(h->block, 0, room * sizeof(*h->block));
		h->n = 0;
	}
	return true;
}

/* The hash at the end of block i. */
static uint64_t hash_of(const struct lookup *l, size_t i)
{
	return l->r->hash[(i + 1) * (size_t)(l->k->block_size / l->c->size.hash) - 1];
}

static uint64_t find_full(struct lookup *l, uint64_t most, bool drop)
{
	uint64_t block = l->k->block_size, n = 0, length, fine = l->hit < block ? l->hit : 0;
	uint64_t per = fine ? block / fine : 1, hashed = l->r->hashes * l->c->size.hash;

	while (n < most / block && n < hashed / block && set(l, n, hash_of(l, n)))
		n++;
	length = n * block;
	for (uint64_t i = n * per + per - 1; fine && i-- > n * per; )
		if (i < most / fine && i < l->r->hashes && set(l, n, l->r->hash[i])) {
			length = (i + 1) * fine;
			break;
		}
	if (drop && length)
		length -= l->hit < block ? l->hit : block;
	length -= length % l->hit;
	cut(l, (size_t)(length / block + (length % block != 0)));
	return length;
}

static uint64_t find_sliding(struct lookup *l, uint64_t most, bool drop)
{
	uint64_t block = l->k->block_size, n = most / block, run = 0, i;
	uint64_t need = (l->k->window - 1 + block - 1) / block + drop;

	for (i = n; i--; ) {
		if (!set(l, i, hash_of(l, i))) {
			run = 0;
			continue;
		}
		if (!run && (drop ? i : i + 1) * block % l->hit) {
			for (size_t g = 0; g < l->groups; g++)
				l->c->hit[l->group[g]].block[i] = 0;
			continue;
		}
		if (++run >= need)
			break;
	}
	n = i + 1 ? i + run : run; /* none found: the first of them count all the same */
	while (n && (i + 1 == 0) && n * block % l->hit)
		n--;
	if (drop && n)
		do
			n--;
		while (n && n * block % l->hit);
	cut(l, n);
	return n * block;
}

static uint64_t find_chunked(struct lookup *l, uint64_t most)
{
	uint64_t block = l->k->block_size, n = most / l->k->window * l->k->window / block;

	while (n < most / block && set(l, n, hash_of(l, n)))
		n++;
	cut(l, n);
	return n * block;
}

static uint64_t find_state(struct lookup *l, uint64_t most)
{
	uint64_t block = l->k->block_size, fine = l->hit < block ? l->hit : 0;
	uint64_t n = fine ? most / fine : most / block;

	if (fine && n > l->r->hashes)
		n = l->r->hashes;
	while (n--) {
		uint64_t end = (n + 1) * (fine ? fine : block);

		if ((!fine && end % l->hit) ||
		    !set(l, (end - 1) / block, l->r->hash[end / l->c->size.hash - 1]))
			continue;
		cut(l, (end - 1) / block + 1);
		return end;
	}
	return 0;
}

static uint64_t find(struct lookup *l, uint64_t most, bool drop)
{
	if (!clear(l, (size_t)(most / l->k->block_size + 1))) {
		l->failed = true;
		return 0;
	}
	l->known = true;
	return l->length = l->k->kind == VC_KV_FULL ? find_full(l, most, drop) :
			   l->k->kind == VC_KV_SLIDING ? find_sliding(l, most, drop) :
			   l->k->kind == VC_KV_CHUNKED ? find_chunked(l, most) :
							 find_state(l, most);
}

/* verify_and_split_kv_cache_groups: full attention comes first. */
static size_t split(struct vc_kv_cache *c, const struct vc_kv_owner *r,
		    struct lookup of[VC_KV_GROUPS])
{
	size_t n = 0;

	for (int full = 1; full >= 0; full--)
		for (size_t g = 0; g < c->groups; g++) {
			const struct vc_kv_group *k = &c->group[g];
			size_t i = 0;

			if ((k->kind == VC_KV_FULL) != full)
				continue;
			while (i < n && of[i].k->spec != k->spec)
				i++;
			if (i == n)
				of[n++] = (struct lookup){ .c = c, .r = r, .k = k,
							   .hit = c->size.hit };
			of[i].group[of[i].groups++] = g;
			of[i].eagle |= k->eagle;
		}
	return n;
}

/* One look at all kinds of layers, each at most as long as the one before; `limit`: where a block
 * that is found to be computed again may end. */
static uint64_t look(struct lookup *of, size_t n, uint64_t limit, uint64_t length,
		     uint64_t *longest)
{
	for (size_t i = 0; i < n; i++) {
		struct lookup *l = &of[i];
		bool drop = l->eagle && !l->done;
		uint64_t most = length, hash = l->c->size.hash, found;

		if (l->k->kind == VC_KV_FULL && l->known) {
			length = l->length < length ? l->length : length;
			continue;
		}
		if (drop && l->k->kind != VC_KV_STATE) {
			bool fine = l->c->size.fine && l->k->kind == VC_KV_FULL &&
				    l->k->block_size > hash;

			most += fine ? hash : l->k->block_size;
			if (most > limit)
				most = limit;
		}
		found = find(l, most, drop);
		if (drop)
			l->done = true;
		else if (found < length)
			for (size_t k = 0; k < n; k++)
				of[k].done = false;
		length = found;
		*longest = length > *longest ? length : *longest;
	}
	return length;
}

uint64_t vc_kv_lookup(struct vc_kv_cache *c, struct vc_kv_owner *r, uint64_t most)
{
	struct lookup of[VC_KV_GROUPS];
	size_t n;
	uint64_t length = most, now, limit, longest = 0;
	bool failed = false;

	for (size_t g = 0; g < c->groups; g++)
		c->hit[g].n = 0;
	r->junction = 0;
	if (!c->caching)
		return 0;
	n = split(c, r, of);
	if (c->groups == 1) {
		length = find(of, most, of->eagle);
		return of->failed ? UINT64_MAX : length;
	}
	limit = c->rules.resent ? r->hashes * c->size.hash : most;
	while ((now = look(of, n, limit, length, &longest)) < length) {
		length = now;
		if (n == 2 && of->k->kind == VC_KV_FULL)
			break;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t block = of[i].k->block_size, blocks = (length + block - 1) / block;

		failed |= of[i].failed;
		for (size_t g = 0; of[i].k->kind == VC_KV_FULL && g < of[i].groups; g++)
			if (c->hit[of[i].group[g]].n > blocks)
				c->hit[of[i].group[g]].n = (size_t)blocks;
	}
	r->junction = longest > length ? longest : 0;
	return failed ? UINT64_MAX : length;
}
