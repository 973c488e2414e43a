/* SPDX-License-Identifier: Apache-2.0 */
/* advice.c - see advice.h. One row per change, cheapest first. */
#include "simulator/advice.h"

#include <stdlib.h>
#include <string.h>

static const struct change {
	const char *kind, *text, *how;
	bool estimate; /* what the transform assumes is not in the recording */
} changes[] = {
	{ "conf", "let segments grow instead of lying side by side",
	  "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", false },
	{ "conf", "keep large blocks whole", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", false },
	{ "conf", "give cached memory back before the card is full",
	  "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8", false },
	{ "code", "call torch.cuda.empty_cache() between training and evaluation",
	  "-x empty_cache:at=switches", false },
	{ "code", "an optimizer with 8-bit states (bitsandbytes AdamW8bit)", "-x optimizer:to=adam8bit", true },
	{ "code", "an optimizer with factored states (Adafactor)", "-x optimizer:to=adafactor", true },
	{ "code", "autocast to bf16", "-x precision:to=amp", true },
	{ "code", "activation checkpointing (about a third more time per step)", "-x checkpoint", true },
	{ "code", "low-rank adapters instead of full training (LoRA)", "-x lora", true },
	{ "hardware", "two cards with ZeRO stage 2", "-x zero:stage=2,ranks=2", true },
	{ "hardware", "two cards with FSDP", "-x fsdp:ranks=2", true },
};

static bool is_better(const struct vc_result *now, const struct vc_result *then)
{
	enum vc_verdict a = vc_result_verdict(now), b = vc_result_verdict(then);

	return b < a;
}

static int try_transform(const struct vc_session *s, const struct vc_plan *p, const char *text,
			 struct vc_result *out, struct vc_error *err)
{
	struct vc_run_options o = *s->opt;
	struct vc_session t = *s;
	struct vc_plan plan = *p;
	const char **at = calloc(o.transform.n + 1, sizeof(*at));
	int r;

	if (!at)
		return vc_nomem(err, "advice");
	if (o.transform.n)
		memcpy(at, o.transform.at, o.transform.n * sizeof(*at));
	at[o.transform.n] = text;
	o.transform = (struct vc_list){ at, o.transform.n + 1 };
	t.opt = &o;
	if (plan.start == VC_START_WARM) /* other requests: not the recorded segments */
		plan.start = VC_START_REBUILD;
	r = vc_session_run(&t, &plan, NULL, out, err);
	free(at);
	return r;
}

static int try_conf(const struct vc_session *s, const struct vc_plan *p, const char *conf,
		    struct vc_result *out, struct vc_error *err)
{
	struct vc_plan plan = *p;

	if (p->conf[0] || !p->model->versions) /* settings of the user's own are not replaced */
		return vc_fail(err, VC_ENOSUP, "settings are given");
	plan.conf = conf;
	if (plan.start == VC_START_WARM)
		plan.start = VC_START_REBUILD;
	return vc_session_run(s, &plan, NULL, out, err);
}

size_t vc_advise(const struct vc_session *s, const struct vc_plan *p, const struct vc_result *r,
		 struct vc_advice out[VC_ADVICE_MOST])
{
	size_t n = 0;

	if (vc_result_verdict(r) == VC_FITS || s->streamed)
		return 0;
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes) && n < VC_ADVICE_MOST; i++) {
		const struct change *c = &changes[i];
		struct vc_result then = { 0 };
		struct vc_error err = { 0 };
		int rc = !strcmp(c->kind, "conf") ? try_conf(s, p, strchr(c->how, '=') + 1, &then, &err)
						  : try_transform(s, p, c->how + 3, &then, &err);

		if (rc < 0)
			continue;
		if (is_better(r, &then))
			out[n++] = (struct vc_advice){ c->kind, c->text, c->how, c->estimate,
				then.stats.peak_reserved, then.stats.flushes, vc_result_verdict(&then) };
		vc_result_fini(&then);
	}
	return n;
}
