/* SPDX-License-Identifier: Apache-2.0 */
/* leak.c - what-if: many more iterations. What an iteration leaves behind adds up; the step at which
 * that runs out of memory is where the replay does. */
#include "simulator/transforms/clone.h"

struct config { uint64_t steps; };

static const struct vc_param params[] = {
	{ "steps", VC_P_UINT, offsetof(struct config, steps), "100", "iterations added at the end", NULL },
	VC_PARAM_END
};

static int leak_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->steps && c->steps <= 100000 ? VC_OK :
	       vc_fail(err, VC_EUSAGE, "leak: steps is 1 to 100000");
}

/* Bytes that one iteration never gives back. */
static uint64_t growth(const struct vc_clone *c, uint32_t iteration)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < c->a.n; i++)
		if (c->a.block[i].iteration == iteration && c->a.block[i].died_event == SIZE_MAX)
			sum += c->a.block[i].size;
	return sum;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct vc_clone c = { 0 };
	size_t first, end, rest = 0;
	uint32_t iteration;
	int r = vc_clone_init(&c, s, w, err);

	if (r == VC_OK && !vc_clone_steady(&c, &first, &end, &iteration))
		r = vc_fail(err, VC_EUSAGE, "leak: no iterations found in the recording");
	if (r == VC_OK)
		r = vc_clone_steps(&c, &rest, err);
	for (uint64_t k = 0; r == VC_OK && k < cfg->steps; k++) {
		struct vc_event mark = vc_event_like(&w->in[first], VC_EV_MARK, 0, 0);
		mark.flags = VC_MARK_STEP;
		r = vc_whole_put(w, &mark, 1, err);
		if (r == VC_OK)
			r = vc_clone_range(&c, first, end, NULL, NULL, err);
	}
	if (r == VC_OK)
		vc_meta_note(s->meta, "leak: each iteration keeps %.3f MiB that it never gives back; %llu more "
			     "iterations are added", (double)growth(&c, iteration) / (1 << 20),
			     (unsigned long long)cfg->steps);
	if (r == VC_OK)
		r = vc_clone_rest(&c, rest, err);
	vc_clone_fini(&c);
	return r;
}

static long leak_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_leak = {
	.name = "leak", .summary = "many more iterations: what each leaves behind adds up",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = leak_open, .next = leak_next, .close = vc_whole_close,
};
