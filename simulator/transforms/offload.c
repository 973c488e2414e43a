/* SPDX-License-Identifier: Apache-2.0 */
/* offload.c - what-if: activations wait in host memory (torch.autograd.graph.save_on_cpu): copied out
 * soon after they are made, back just before the backward pass needs them. */
#include <stdlib.h>

#include "simulator/transforms/clone.h"

struct config { uint64_t least, after; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "least", VC_P_SIZE, AT(least), "1MiB", "smaller blocks stay", NULL },
	{ "after", VC_P_UINT, AT(after), "2", "allocations until the copy is out", NULL },
	VC_PARAM_END
};

static int offload_open(struct vc_source *s, struct vc_error *err)
{
	(void)s;
	(void)err;
	return VC_OK;
}

static bool moves(const struct vc_clone *c, const struct config *cfg, const struct vc_block_life *b)
{
	return b && b->category == VC_CAT_ACTIVATION && b->size >= cfg->least && b->died_event != SIZE_MAX &&
	       b->died - b->born > 2 * cfg->after && c->a.span[b->span].phase == VC_PHASE_FORWARD;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct vc_clone c = { 0 };
	uint64_t host = 0, most = 0;
	int r = vc_clone_init(&c, s, w, err);

	for (size_t i = 0, block = 0; r == VC_OK && i < w->n; i++) {
		const struct vc_event *e = &w->in[i];
		const struct vc_block_life *b = e->kind == VC_EV_FREE ? vc_clone_block(&c, e->id) : NULL;

		if (e->kind == VC_EV_ALLOC && e->device == w->device && block++ >= cfg->after) {
			const struct vc_block_life *out = &c.a.block[block - 1 - cfg->after];
			if (moves(&c, cfg, out)) {
				r = vc_clone_free(&c, e, c.alias[out->id], err);
				if (r == VC_OK)
					r = vc_whole_host(s, w, e, out->id, out->size, err);
				host += out->size;
				most = host > most ? host : most;
			}
		}
		if (r == VC_OK && moves(&c, cfg, b)) { /* back for the moment of its use */
			r = vc_clone_alloc(&c, e, b->size, &c.alias[b->id], err);
			if (r == VC_OK)
				r = vc_whole_host(s, w, e, b->id, 0, err);
			host -= b->size;
		}
		if (r == VC_OK)
			r = vc_clone_event(&c, e, err);
	}
	if (r == VC_OK)
		vc_meta_note(s->meta, "offload: up to %.2f GiB of activations wait in pinned host memory",
			     (double)most / (1u << 30));
	vc_clone_fini(&c);
	return r;
}

static long offload_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_offload = {
	.name = "offload", .summary = "activations wait in host memory",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = offload_open, .next = offload_next, .close = vc_whole_close,
};
