/* SPDX-License-Identifier: Apache-2.0 */
/* tail_batch.c - what-if: the last, smaller batch of an epoch (drop_last=False). Its blocks are of
 * other sizes, so they are cached beside the usual ones. */
#include "simulator/replay/transform.h"
#include "simulator/rewrite/copies.h"

struct config { double share; };

static const struct vc_param params[] = { { "share", VC_P_REAL, offsetof(struct config, share),
					  "0.5", "of the recorded batch, above 0 to 1", NULL },
					 VC_PARAM_END };

static int tail_batch_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->share > 0 && c->share <= 1 ? VC_OK :
	       vc_fail(err, VC_EUSAGE, "tail_batch: share=%g is not above 0 and up to 1", c->share);
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	struct vc_clone c = { 0 };
	struct vc_share share = { &c, ((const struct config *)s->config)->share };
	size_t first, end, rest = 0;
	uint32_t iteration;
	int r = vc_clone_init(&c, s, w, err);

	if (r == VC_OK && !vc_clone_steady(&c, &first, &end, &iteration))
		r = vc_fail(err, VC_EUSAGE, "tail_batch: no iterations found in the recording");
	if (r == VC_OK)
		r = vc_clone_steps(&c, &rest, err);
	if (r == VC_OK)
		r = vc_clone_range(&c, first, end, vc_clone_share, &share, err);
	if (r == VC_OK) /* and a usual one after it: the next epoch */
		r = vc_clone_range(&c, first, end, NULL, NULL, err);
	if (r == VC_OK)
		r = vc_clone_rest(&c, rest, err);
	vc_clone_fini(&c);
	return r;
}

const struct vc_source_type vc_transform_tail_batch = {
	.name = "tail_batch", .summary = "a last batch of another size, then a usual one",
	.params = params, .config_size = sizeof(struct config),
	.margin = &(const struct vc_margin){ .down = 1, .up = 3 },
	.step = vc_step_unchanged, /* one shorter step at the end */
	.open = tail_batch_open,
	VC_WHOLE(rewrite),
};
