/* SPDX-License-Identifier: Apache-2.0 */
/* empty_cache.c - what-if: torch.cuda.empty_cache() where one phase ends and another begins. */
#include "simulator/anatomy/anatomy.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/rewrite.h"

enum where { AT_ITERATIONS, AT_PHASES, AT_SWITCHES };
struct config { uint64_t at; };

static const struct vc_param params[] = {
	{ "at", VC_P_ENUM, offsetof(struct config, at), "switches",
	  "before each iteration, at each phase, or between training and evaluation",
	  "iterations,phases,switches" },
	VC_PARAM_END };

static bool wanted(const struct vc_anatomy *a, size_t k, enum where at)
{
	bool other = a->span[k].phase == VC_PHASE_OTHER,
	     before = a->span[k - 1].phase == VC_PHASE_OTHER;

	switch (at) {
	case AT_PHASES: return true;
	case AT_ITERATIONS: return a->span[k].phase == VC_PHASE_FORWARD && !a->span[k].micro;
	case AT_SWITCHES: return other != before;
	}
	return false;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *c = s->config;
	struct vc_anatomy a;
	int r = vc_whole_anatomy(w, s->meta, &a, err);

	VC_TRY(r);
	if (!a.iterations)
		r = vc_fail(err, VC_EUSAGE,
			    "empty_cache: no iterations found in the recording; mark them "
			    "(torch.cuda.nvtx, record --param) or cut them out with window");
	for (size_t k = 0; r == VC_OK && k < a.spans; k++) {
		const struct vc_span *p = &a.span[k];

		if (k && wanted(&a, k, (enum where)c->at)) {
			struct vc_event e = vc_event_like(&w->in[p->first], VC_EV_TRIM, 0, 0);
			r = vc_whole_put(w, &e, 1, err);
		}
		if (r == VC_OK)
			r = vc_whole_put(w, w->in + p->first, p->end - p->first, err);
	}
	vc_anatomy_fini(&a);
	return r;
}

static const struct vc_remedy remedies[] = {
	{ .cost = VC_COST_CALL, .kind = "code", .params = "at=switches",
	  .text = "empty the cache between training and evaluation",
	  .paste = "torch.cuda.empty_cache()" },
	{ .cost = VC_COST_CALL, .kind = "code", .params = "at=iterations",
	  .text = "empty the cache before each iteration", .slower = "slower",
	  .paste = "torch.cuda.empty_cache()" },
	{ .kind = NULL } };

const struct vc_source_type vc_transform_empty_cache = {
	.name = "empty_cache", .summary = "call empty_cache() where phases meet",
	.params = params, .config_size = sizeof(struct config),
	/* exact: the requests stay as recorded and the allocator is simulated */
	.margin = &(const struct vc_margin){ 0 },
	.step = vc_step_unchanged, .remedies = remedies,
	VC_WHOLE(rewrite),
};
