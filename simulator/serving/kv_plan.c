/* SPDX-License-Identifier: Apache-2.0 */
/* kv_plan.c - get_kv_cache_groups and get_kv_cache_capacity of the releases. */
#include "simulator/serving/kv_plan.h"

#include "common/vec.h"

/* What a block of one kind of layers looks like before they are grouped. */
struct page { uint64_t tokens, bytes; };

/* HybridAttentionMambaModelConfig, _align_hybrid_block_size: so many tokens that a block of
 * attention is no smaller than a state. */
static uint64_t attention_block(const struct vc_kv_model *m, const struct vc_kv_server *v)
{
	uint64_t state = 0, token = 0, step = m->mla ? (v->minor < 31 ? 64 : 128) : 16;

	for (size_t i = 0; i < m->kinds; i++) {
		const struct vc_kv_layers *l = &m->of[i];

		if (l->kind == VC_KV_STATE)
			state = l->bytes > state ? l->bytes : state;
		else if (!l->draft && !token)
			token = l->bytes;
	}
	if (!state || !token)
		return v->block_size;
	if (v->minor >= 21 && v->block_size > step)
		step = v->block_size;
	step *= vc_per(state, step * token);
	return step > v->block_size ? step : v->block_size;
}

/* unify_kv_cache_spec_page_size: all blocks of the size of the largest, by more tokens where that
 * goes, else by padding. */
static int unify(const struct vc_kv_model *m, const struct vc_kv_server *v, struct page *page,
		 struct vc_error *err)
{
	uint64_t most = 0;

	for (size_t i = 0; i < m->kinds; i++)
		most = page[i].bytes > most ? page[i].bytes : most;
	for (size_t i = 0; i < m->kinds; i++) {
		if (m->of[i].kind != VC_KV_STATE && most % page[i].bytes == 0)
			page[i].tokens *= most / page[i].bytes;
		else if (m->of[i].kind != VC_KV_STATE && (m->mla || v->minor < 21))
			return vc_fail(err, VC_ENOSUP, "blocks of %" PRIu64 " and %" PRIu64
				       " bytes: vLLM does not start, because it makes no common "
				       "size of them", page[i].bytes, most);
		page[i].bytes = most;
	}
	return VC_OK;
}

static bool alike(const struct vc_kv_layers *a, const struct vc_kv_layers *b)
{
	return a->kind == b->kind && (a->kind == VC_KV_FULL || a->window == b->window) &&
	       a->kind != VC_KV_STATE;
}

/* FullAttentionSpec.merge_window_sizes, where windows are played as full attention. */
static int one_window(const struct vc_kv_model *m, struct vc_error *err)
{
	uint64_t window[2] = { 0, 0 };

	for (size_t i = 0; i < m->kinds; i++) {
		uint64_t *w = &window[m->of[i].kind == VC_KV_CHUNKED];

		if (m->of[i].kind != VC_KV_SLIDING && m->of[i].kind != VC_KV_CHUNKED)
			continue;
		if (*w && *w != m->of[i].window)
			return vc_fail(err, VC_ENOSUP, "windows of %" PRIu64 " and %" PRIu64
				       " tokens: vLLM makes no one group of them", *w,
				       m->of[i].window);
		*w = m->of[i].window;
	}
	return VC_OK;
}

/* _get_kv_cache_groups_uniform_page_size: layers of a group, the same number in each. */
static uint64_t group_size(const struct vc_kv_model *m, unsigned minor)
{
	uint64_t few = UINT64_MAX, many = 0;

	for (size_t i = 0; i < m->kinds; i++) {
		few = m->of[i].n < few ? m->of[i].n : few;
		many = m->of[i].n > many ? m->of[i].n : many;
	}
	if (minor < 12)
		return few;
	return (double)many < (double)few * (minor < 18 ? 1.25 : 1.5) ? many : few;
}

static int add(struct vc_kv_plan *p, const struct vc_kv_model *m, const struct vc_kv_server *v,
	       size_t kind, struct page page, uint64_t layers, struct vc_error *err)
{
	const struct vc_kv_layers *l = &m->of[kind];
	struct vc_kv_group *g = &p->group[p->groups];

	if (p->groups == VC_KV_GROUPS)
		return vc_fail(err, VC_ENOSUP, "more than %d groups of layers", VC_KV_GROUPS);
	*g = (struct vc_kv_group){ l->kind, page.tokens, l->window,
				   l->kind == VC_KV_STATE ? v->states : 0, 0, (unsigned)kind,
				   l->draft };
	p->layers[p->groups] = layers;
	p->kind[p->groups++] = kind;
	if (page.tokens < p->block_size || p->groups == 1)
		p->block_size = page.tokens;
	return VC_OK;
}

/* max_memory_usage_bytes of a group, in its blocks. */
static uint64_t most_blocks(const struct vc_kv_group *g, const struct vc_kv_server *v,
			    uint64_t in_flight, uint64_t tokens)
{
	switch (g->kind) {
	case VC_KV_SLIDING:
		return vc_per(vc_least(g->window - 1 + in_flight, tokens), g->block_size) + 1;
	case VC_KV_CHUNKED:
		return vc_per(vc_least(g->window + in_flight, tokens), g->block_size);
	case VC_KV_STATE:
		return (v->caching && v->minor >= 15 ? 2 : 1) + g->states;
	case VC_KV_CROSS:
		return vc_per(v->encoder, g->block_size);
	default:
		return vc_per(tokens, g->block_size);
	}
}

static int together(const struct vc_kv_model *m, const struct vc_kv_server *v,
		    const struct page *page, struct vc_kv_plan *p, struct vc_error *err)
{
	uint64_t layers = 0;

	for (size_t i = 0; i < m->kinds; i++) {
		layers += m->of[i].n;
		p->block_bytes += m->of[i].n * page[i].bytes;
	}
	return add(p, m, v, 0, page[0], layers, err);
}

static int apart(const struct vc_kv_model *m, const struct vc_kv_server *v, struct page *page,
		 struct vc_kv_plan *p, struct vc_error *err)
{
	uint64_t size = group_size(m, v->minor);

	VC_TRY(unify(m, v, page, err));
	p->block_bytes = page[0].bytes * size;
	for (size_t i = 0; i < m->kinds; i++)
		for (uint64_t n = vc_per(m->of[i].n, size), at = 0; at < n; at++)
			VC_TRY(add(p, m, v, i, page[i], vc_per(m->of[i].n - at, n), err));
	return VC_OK;
}

int vc_kv_plan(const struct vc_kv_model *given, const struct vc_kv_server *v,
	       struct vc_kv_plan *out, struct vc_error *err)
{
	struct vc_kv_model own = *given, *m = &own;
	struct page page[VC_KV_LAYERS];
	uint64_t block = attention_block(m, v);
	bool same = true, full = false;

	*out = (struct vc_kv_plan){ .in_flight = v->max_batch * (v->minor < 28 ? 1 : 2) };
	if (!m->kinds)
		return vc_fail(err, VC_ENOSUP, "no layer keeps anything of the tokens");
	for (size_t i = 0; i < m->kinds; i++)
		full |= m->of[i].kind == VC_KV_FULL;
	if (v->one_kind && full)
		VC_TRY(one_window(m, err));
	for (size_t i = 0; i < m->kinds; i++) {
		struct vc_kv_layers *l = &m->of[i];

		if (v->one_kind && full && (l->kind == VC_KV_SLIDING || l->kind == VC_KV_CHUNKED))
			l->kind = VC_KV_FULL; /* unify_hybrid_kv_cache_specs */
		page[i] = (struct page){ block, l->kind == VC_KV_STATE ? l->bytes :
							 block * l->bytes };
		if (l->kind == VC_KV_STATE && !v->caching)
			page[i].tokens = v->max_len;
		same &= alike(l, &m->of[0]);
	}
	VC_TRY(same || m->kinds == 1 ? together(m, v, page, out, err) :
	       apart(m, v, page, out, err));
	for (size_t g = 0; g < out->groups; g++)
		out->request[g] = most_blocks(&out->group[g], v, out->in_flight, v->max_len);
	return VC_OK;
}

uint64_t vc_kv_plan_blocks(const struct vc_kv_plan *p, const struct vc_kv_server *v,
			   uint64_t tokens)
{
	uint64_t sum = 0;

	for (size_t g = 0; g < p->groups; g++)
		sum += most_blocks(&p->group[g], v, p->in_flight, tokens);
	return sum;
}

uint64_t vc_kv_plan_longest(const struct vc_kv_plan *p, const struct vc_kv_server *v,
			    uint64_t blocks, uint64_t most)
{
	uint64_t low = 0, high = most;

	while (low < high) {
		uint64_t middle = low + (high - low + 1) / 2;

		if (vc_kv_plan_blocks(p, v, middle) < blocks)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

uint64_t vc_kv_plan_tokens(const struct vc_kv_plan *p, const struct vc_kv_server *v,
			   uint64_t blocks, double *requests)
{
	*requests = (double)blocks / (double)vc_kv_plan_blocks(p, v, v->max_len);
	if (v->minor < 21) /* a part of the blocks for each group, as if all were kept */
		return blocks / p->groups * p->block_size;
	return (uint64_t)(*requests * (double)v->max_len);
}
