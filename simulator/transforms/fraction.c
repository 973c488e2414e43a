/* SPDX-License-Identifier: Apache-2.0 */
/* fraction.c - what-if: torch.cuda.set_per_process_memory_fraction at the start. */

#include "simulator/replay/transform.h"
#include "simulator/rewrite/rewrite.h"

struct config { double f; bool instead; };

static const struct vc_param params[] = { { "f", VC_P_REAL, offsetof(struct config, f), "0.9",
					  "share of the device's memory, 0 to 1", NULL },
					 { "instead", VC_P_BOOL, offsetof(struct config, instead),
					  "false", "in place of its own limits", NULL },
					 VC_PARAM_END };

static int fraction_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (!(c->f >= 0 && c->f <= 1)) /* PyTorch refuses what is outside */
		return vc_fail(err, VC_EUSAGE, "fraction: f=%g is not between 0 and 1", c->f);
	return VC_OK;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *c = s->config;
	struct vc_event e = { .kind = VC_EV_FRACTION, .device = w->device };
	size_t head = 0;

	memcpy(&e.size, &c->f, sizeof(e.size)); /* the event holds the bits of a double */
	while (head < w->n && w->in[head].kind >= VC_EV_HEAP_SEGMENT)
		head++; /* the starting heap stays first */
	VC_TRY(vc_whole_put(w, w->in, head, err));
	VC_TRY(vc_whole_put(w, &e, 1, err));
	for (size_t i = head; c->instead && i < w->n; i++)
		if (w->in[i].kind != VC_EV_FRACTION)
			VC_TRY(vc_whole_put(w, &w->in[i], 1, err));
	return c->instead ? VC_OK : vc_whole_put(w, w->in + head, w->n - head, err);
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_SETTING, .kind = "code", .params = "f=1,instead=true",
	  .text = "let the process have the whole card, which it limits itself",
	  .paste = "torch.cuda.set_per_process_memory_fraction(1.0)", .needs = VC_TRAIT_LIMITED },
	{ .cost = VC_COST_LIMIT, .kind = "code", .params = "f=0.95",
	  .text = "give back cached memory at a limit below the card's",
	  .paste = "torch.cuda.set_per_process_memory_fraction(0.95)" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_fraction = {
	.name = "fraction", .summary = "limit the process to a share of the device from the start",
	.params = params, .config_size = sizeof(struct config),
	/* exact: the requests stay as recorded and the allocator is simulated */
	.margin = &(const struct vc_margin){ 0 },
	.step = vc_step_unchanged, .remedies = remedies, .open = fraction_open,
	VC_WHOLE(rewrite),
};
