/* SPDX-License-Identifier: Apache-2.0 */
/* awake.c - what-if: nobody sleeps. vLLM without enable_sleep_mode, a program without its memory
 * saver: nothing is given back beneath PyTorch, and what lay in pools that exist for that
 * (CuMemAllocator.use_memory_pool, torch_memory_saver's region) is asked for outside of them. */
#include "simulator/replay/transform.h"
#include "simulator/rewrite/rewrite.h"

static bool is_pool_event(const struct vc_event *e)
{
	return e->kind >= VC_EV_POOL_CREATE && e->kind <= VC_EV_POOL_RELEASE;
}

/* Graphs are captured into a pool, with or without sleep. */
static bool captures(const struct vc_whole *w, size_t begin)
{
	for (size_t i = begin + 1; i < w->n && w->in[i].kind != VC_EV_POOL_END; i++)
		if (w->in[i].kind == VC_EV_CAPTURE_BEGIN)
			return true;
	return false;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	uint64_t most = 0;
	bool *served;
	int r = VC_OK;

	for (size_t i = 0; i < w->n; i++)
		most = is_pool_event(&w->in[i]) && w->in[i].id > most ? w->in[i].id : most;
	served = calloc(most + 1, sizeof(*served));
	VC_HAVE(served, "the pools of a recording", err);
	for (size_t i = 0; i < w->n; i++)
		if (w->in[i].kind == VC_EV_POOL_CREATE && w->in[i].flags & VC_EVF_SERVED)
			served[w->in[i].id] = true;
	for (size_t i = 0; i < w->n; i++)
		if (w->in[i].kind == VC_EV_POOL_BEGIN && captures(w, i))
			served[w->in[i].id] = false;
	for (size_t i = 0; r == VC_OK && i < w->n; i++) {
		struct vc_event e = w->in[i];

		if (e.kind == VC_EV_PAGES_OUT || e.kind == VC_EV_PAGES_IN ||
		    (is_pool_event(&e) && served[e.id]) || vc_event_outdated(&e))
			continue;
		if (e.kind == VC_EV_POOL_CREATE)
			e.flags &= (uint8_t)~VC_EVF_SERVED;
		r = vc_whole_put(w, &e, 1, err);
	}
	free(served);
	return r;
}

const struct vc_source_type vc_transform_awake = {
	.name = "awake", .summary = "nothing is given back beneath PyTorch (no sleep mode)",
	/* vLLM's cache takes what its profile leaves: 0.8 % off (docs/measurements/serving.md) */
	.margin = &(const struct vc_margin){ .down = 1, .up = 1, .layout = true },
	.step = vc_step_unchanged,
	VC_WHOLE(rewrite),
};
