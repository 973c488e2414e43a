/* SPDX-License-Identifier: Apache-2.0 */
/* mixture.c - what-if: batches of varying length. Each added iteration has its own share of the
 * recorded data, spread evenly over the range (golden-ratio sequence: the same on every machine). */
#include <math.h>

#include "simulator/transforms/clone.h"

struct config { double low, high; uint64_t steps; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "low", VC_P_REAL, AT(low), "0.5", "smallest share of the recorded data", NULL },
	{ "high", VC_P_REAL, AT(high), "1", "largest share", NULL },
	{ "steps", VC_P_UINT, AT(steps), "16", "iterations added at the end", NULL },
	VC_PARAM_END
};

static int mixture_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	if (!(c->low > 0 && c->low <= c->high) || !c->steps || c->steps > 100000)
		return vc_fail(err, VC_EUSAGE, "mixture: 0 < low <= high, and steps is 1 to 100000");
	return VC_OK;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *cfg = s->config;
	struct vc_clone c = { 0 };
	struct vc_share share = { &c, 1 };
	size_t first, end;
	uint32_t iteration;
	int r = vc_clone_init(&c, s, w, err);

	if (r == VC_OK && !vc_clone_steady(&c, &first, &end, &iteration))
		r = vc_fail(err, VC_EUSAGE, "mixture: no iterations found in the recording");
	if (r == VC_OK)
		r = vc_clone_all(&c, err);
	for (uint64_t k = 0; r == VC_OK && k < cfg->steps; k++) {
		double at = fmod(0.5 + (double)k * 0.6180339887498949, 1);
		share.share = k + 1 == cfg->steps ? cfg->high : cfg->low + at * (cfg->high - cfg->low);
		r = vc_clone_range(&c, first, end, vc_clone_share, &share, err);
	}
	vc_clone_fini(&c);
	return r;
}

static long mixture_next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	return vc_whole_next(s, ev, cap, rewrite, err);
}

const struct vc_source_type vc_transform_mixture = {
	.name = "mixture", .summary = "iterations with varying amounts of data",
	.params = params, .config_size = sizeof(struct config), .state_size = sizeof(struct vc_whole),
	.open = mixture_open, .next = mixture_next, .close = vc_whole_close,
};
