/* SPDX-License-Identifier: Apache-2.0 */
/* sgl_plan.c - see sgl_plan.h. The sums are those of Python: memory in GiB, as numbers of 64 bits,
 * between the states and the tokens. */
#include "simulator/serving/sgl_plan.h"

#include <math.h>

/* MAMBA_CACHE_SIZE_MAX_RUNNING_REQUESTS_RATIO: states that a request needs at most, without
 * further buffers. */
enum { STATES_A_REQUEST = 3 };

static const double GIB = 1ull << 30;

/* a // b of Python, for numbers that have a fraction. */
static double floor_div(double a, double b)
{
	double quotient = (a - fmod(a, b)) / b;

	return fmod(a, b) < 0 ? floor(quotient) - 1 : floor(quotient + 0.5);
}

/* _handle_max_mamba_cache: the memory that is left for tokens, in GiB. */
static double take_states(const struct vc_sgl_server *v, struct vc_sgl_plan *p, double gib)
{
	double bytes = gib * v->state_ratio / (1 + v->state_ratio) * GIB;
	double one = (double)p->state_bytes;

	if (v->states)
		p->states = v->states;
	else if (!v->radix && v->running)
		p->states = v->running;
	else
		p->states = bytes > 2 * one ? (uint64_t)floor_div(bytes - one, one) : 0;
	return gib - (double)(p->states + 1) * one / GIB;
}

/* resolve_max_num_reqs */
static uint64_t most_running(const struct vc_sgl_server *v, const struct vc_sgl_plan *p)
{
	double guess = (double)p->tokens / (double)v->max_len * 512;
	uint64_t most = guess > 4096 ? 4096 : guess < 2048 ? 2048 : (uint64_t)guess, cap;

	if (v->running)
		most = v->running;
	if (most > p->tokens / 2)
		most = p->tokens / 2;
	cap = p->states / (v->radix ? STATES_A_REQUEST : 1);
	return p->state_bytes && cap < most ? cap : most;
}

static int check(const struct vc_sgl_server *v, struct vc_error *err)
{
	if (!v->page || v->page > 1u << 16 || !v->max_len)
		return vc_fail(err, VC_EUSAGE, "a page has 1 to 65536 tokens, and a request some");
	if (!(v->window_ratio > 0 && v->window_ratio <= 1))
		return vc_fail(err, VC_EUSAGE, "swa_full_tokens_ratio is above 0 and at most 1");
	if (!(v->state_ratio > 0 && v->state_ratio < 1000))
		return vc_fail(err, VC_EUSAGE, "mamba_full_memory_ratio is above 0");
	return VC_OK;
}

int vc_sgl_plan(const struct vc_kv_model *m, const struct vc_sgl_server *v, struct vc_sgl_plan *p,
		struct vc_error *err)
{
	double gib = (double)v->memory / GIB, bytes, cell;
	uint64_t widest = 0;

	*p = (struct vc_sgl_plan){ .tokens = 0 };
	VC_TRY(check(v, err));
	for (size_t i = 0; i < m->kinds; i++) {
		const struct vc_kv_layers *l = &m->of[i];
		bool window = v->windows && (l->kind == VC_KV_SLIDING || l->kind == VC_KV_CHUNKED);

		if (window && l->window > widest)
			widest = l->window;
		*(l->kind == VC_KV_STATE ? &p->state_bytes :
		  window ? &p->window_bytes : &p->full_bytes) += l->n * l->bytes;
	}
	if (p->state_bytes)
		gib = take_states(v, p, gib);
	bytes = gib > 0 ? floor(gib * GIB) : 0;
	cell = p->full_bytes ? (double)p->full_bytes + v->window_ratio * (double)p->window_bytes :
			       (double)p->window_bytes;
	if (!(cell > 0))
		return vc_fail(err, VC_ENOSUP, "no layer keeps the tokens: SGLang's tokens are a "
			       "setting then");
	p->tokens = (uint64_t)floor_div(bytes, cell) / v->page * v->page;
	p->window_tokens = p->window_bytes ? p->tokens : 0;
	if (p->full_bytes && p->window_bytes)
		p->window_tokens = (uint64_t)((double)p->tokens * v->window_ratio) / v->page *
				   v->page;
	p->narrow = p->full_bytes && p->window_bytes && widest + v->page >= p->window_tokens;
	p->running = most_running(v, p);
	return VC_OK;
}
