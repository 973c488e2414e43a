/* SPDX-License-Identifier: Apache-2.0 */
/* fit_recorded.c - see fit_recorded.h */
#include "commands/fit_recorded.h"

#include "simulator/session/verify.h"
#include "simulator/session/whatif.h"

/* The second value is meant for so much of the memory: it fits where the need has a constant part.
 * It is so many times the recorded one at most, and the prediction goes on from there. */
#define NEAR 0.7
enum { FAR = 8 };

/* Can -x be made in the program? At the recorded values, which are tried anyway. */
static int try_change(struct vc_fit_recorded *r, struct vc_error *err)
{
	struct vc_run_wish wish = { .n = 0 };
	struct vc_ran ran;
	int rc = vc_fit_recorded_run(r, &wish, &ran, err);

	if (rc == VC_OK || vc_is_final(rc) || !vc_rerun_asked(r->rerun->opt, "auto"))
		return rc;
	snprintf(r->why, sizeof(r->why), "%.399s", err->message);
	*err = (struct vc_error){ 0 };
	r->rerun->made.n = 0;
	return VC_OK;
}

int vc_fit_recorded_open(struct vc_fit_recorded *r, const struct vc_run_options *opt,
			 const char *path, const char *key, struct vc_error *err)
{
	const struct vc_recording_ask ask = { .device = opt->device, .rank = opt->rank,
					      .verify = opt->verify,
					      .flags = VC_SESSION_IN_MEMORY };
	/* 0 is no value that was recorded: it has to stand in the command line */
	struct vc_param_value at[VC_WHATIF_PARAMS + 1] = { { (char *)(uintptr_t)key, 0 } };
	char name[VC_WHATIF_PARAMS][VC_PARAM_TEXT];
	size_t n = key ? 1 : 0;

	if (vc_rerun_asked(opt, "recordings"))
		return VC_OK;
	for (size_t i = 0; i < opt->set.n && i < VC_WHATIF_PARAMS; i++)
		VC_TRY(vc_whatif_parse(opt->set.at[i], &at[n++], name[i], err));
	VC_TRY(vc_recording_open(&r->rec, path, &ask, err));
	if (ask.verify)
		VC_TRY(vc_verify(&r->rec, &ask, err));
	r->rerun = vc_rerun_open(opt, &r->rec, at, n, r->why, err);
	if (r->rerun)
		r->rerun->once = true;
	if (r->rerun && r->rerun->made.n)
		return try_change(r, err);
	return (int)err->status;
}

void vc_fit_recorded_close(struct vc_fit_recorded *r)
{
	vc_rerun_close(r->rerun);
	vc_recording_close(&r->rec);
}

static uint64_t memory_of(const struct vc_fit_recorded *r, const struct vc_card *card)
{
	const struct vc_device_info *on =
		vc_meta_device_known(r->rec.meta, r->rec.device->device);

	return card ? card->total : on ? on->total : 0;
}

bool vc_fit_recorded_on(const struct vc_fit_recorded *r, const struct vc_card *card)
{
	const struct vc_device_info *on =
		vc_meta_device_known(r->rec.meta, r->rec.device->device);

	return !card || (on && on->name && vc_card_by_name(on->name) == card);
}

size_t vc_fit_recorded_first(const struct vc_fit_recorded *r, const char *key,
			     const struct vc_card *card, uint64_t at[2])
{
	double ratio = (double)memory_of(r, card) / (double)(r->rerun->found.run + 1);
	double value = 0;

	for (size_t i = 0; i < r->rec.meta->params; i++)
		if (!strcmp(r->rec.meta->param[i].name, key))
			value = r->rec.meta->param[i].value;
	if (value < 1)
		return 0;
	at[0] = (uint64_t)value;
	at[1] = (uint64_t)(value * (NEAR * ratio < FAR ? NEAR * ratio : FAR));
	if (at[1] == at[0] || !at[1])
		at[1] = at[0] + 1;
	return 2;
}

int vc_fit_recorded_run(struct vc_fit_recorded *r, const struct vc_run_wish *wish,
			struct vc_ran *out, struct vc_error *err)
{
	uint64_t total = memory_of(r, wish->card), low, high;
	struct vc_param_value all[VC_RERUN_VALUES];
	struct vc_run_wish w = *wish;

	w.of = &r->rec;
	w.at = all;
	w.n = vc_rerun_values(&r->rec, wish->at, wish->n, all);
	w.made = &r->rerun->made;
	if (w.once && !r->rerun->found.same) {
		vc_control_interval(&r->rerun->found, total, &low, &high);
		w.capacity = total > high - total ? total - (high - total) : total;
	}
	return r->rerun->opt->runner->run(r->rerun->opt, &w, out, err);
}
