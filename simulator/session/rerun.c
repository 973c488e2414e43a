/* SPDX-License-Identifier: Apache-2.0 */
/* rerun.c - see rerun.h */
#include "simulator/session/rerun.h"


#include "simulator/replay/transform.h"
#include "simulator/session/carry.h"
#include "simulator/session/completion.h"
#include "simulator/session/job.h"
#include "simulator/session/spread.h"
#include "simulator/session/verify.h"

enum { MOST = VC_RERUN_VALUES, SEEDS = 4 };
#define OTHER 0.5 /* share of requests that stand again, below which it is another program */

bool vc_rerun_asked(const struct vc_run_options *opt, const char *by)
{
	return !strcmp(opt->by ? opt->by : "auto", by);
}

size_t vc_rerun_values(const struct vc_recording *of, const struct vc_param_value *at, size_t n,
		       struct vc_param_value out[VC_RERUN_VALUES])
{
	size_t k = 0;

	for (size_t i = 0; i < of->meta->params && k < MOST; i++)
		out[k++] = of->meta->param[i];
	for (size_t i = 0; i < n; i++) {
		size_t to = 0;

		while (to < k && strcmp(out[to].name, at[i].name))
			to++;
		if (to == MOST)
			continue;
		out[to] = at[i];
		k = to == k ? k + 1 : k;
	}
	return k;
}

size_t vc_rerun_makes(const struct vc_run_options *opt)
{
	struct vc_transform_use u;
	struct vc_error ignored;
	size_t n = 0;

	while (opt->runner && !vc_rerun_asked(opt, "recordings") && n < opt->transform.n &&
	       vc_transform_parse(&u, opt->transform.at[n], &ignored) == VC_OK &&
	       !vc_transform_unmade(&u))
		n++;
	return n;
}

static int open_run(const struct vc_run_options *opt, const char *path, struct vc_recording *rec,
		    struct vc_error *err)
{
	const struct vc_recording_ask ask = { .device = VC_NOT_GIVEN, .rank = VC_NOT_GIVEN,
					      .torch = opt->torch.n ? opt->torch.at[0] : NULL,
					      .asker = opt->asker, .verify = true,
					      .flags = VC_SESSION_IN_MEMORY };

	VC_TRY(vc_recording_open(rec, path, &ask, err));
	return vc_verify(rec, &ask, err);
}

static bool is_dry(const struct vc_recording *rec)
{
	return rec->meta->how[VC_CAP_NULL_GPU] == VC_HOW_RECORDED;
}

/* ---- the control run ---- */

static struct vc_run_wish as_recorded(const struct vc_rerun *r, struct vc_param_value all[MOST])
{
	return (struct vc_run_wish){ .of = r->of, .at = all,
				     .n = vc_rerun_values(r->of, NULL, 0, all) };
}

static int run_control(struct vc_rerun *r, struct vc_error *err)
{
	struct vc_param_value all[MOST];
	struct vc_run_wish wish = as_recorded(r, all);

	VC_TRY(r->opt->runner->run(r->opt, &wish, &r->control_ran, err));
	VC_TRY(open_run(r->opt, r->control_ran.path, &r->control, err));
	return vc_control_compare(r->of, &r->control, &r->found, err);
}

/* Once more, to see what differs from one dry run to the next. */
static int run_twice(struct vc_rerun *r, struct vc_control_run *again, struct vc_error *err)
{
	struct vc_param_value all[MOST];
	struct vc_run_wish wish = as_recorded(r, all);
	struct vc_recording other = { 0 };
	struct vc_ran ran;
	int rc;

	wish.seed = 1;
	rc = r->opt->runner->run(r->opt, &wish, &ran, err);
	if (rc == VC_OK)
		rc = open_run(r->opt, ran.path, &other, err);
	if (rc == VC_OK)
		rc = vc_control_compare(&r->control, &other, again, err);
	vc_recording_close(&other);
	return rc;
}

/* In `auto` a program that does not run is one that cannot be asked. */
static int may_not(const struct vc_run_options *opt, char why[VC_RERUN_WHY], struct vc_error *err)
{
	if (vc_rerun_asked(opt, "rerun"))
		return err->status ? (int)err->status :
				     vc_fail(err, VC_EUSAGE, "--by rerun: %s", why);
	if (vc_is_final(err->status))
		return (int)err->status;
	if (err->status)
		snprintf(why, VC_RERUN_WHY, "%.399s", err->message);
	*err = (struct vc_error){ 0 };
	return VC_OK;
}

/* What differs between two dry runs is what the data decide; between a card and a dry run it is
 * that, too, but for what is given back at once, which are workspaces. */
static bool data_decide(const struct vc_control_run *t, bool dry)
{
	return dry ? !t->same :
		     t->resized + t->only_recorded + t->only_run > t->at_once;
}

static double equal_share(const struct vc_control_run *t)
{
	return t->requests ? (double)t->equal / (double)t->requests : 1;
}

/* Two of its own runs show what the data decide, and how little of one may stand in another. */
static int judge(struct vc_rerun *r, char why[VC_RERUN_WHY], struct vc_error *err)
{
	const struct vc_control_run *t = &r->found;
	bool decide = data_decide(t, is_dry(r->of)) && r->opt->seeds != 1;
	bool other = (double)(t->equal + t->placed) < OTHER * (double)t->requests;
	struct vc_control_run again = { 0 };
	int rc = VC_OK;

	r->twice = decide || other;
	if (r->twice)
		rc = run_twice(r, &again, err);
	if (rc == VC_OK && other && equal_share(t) <= OTHER * equal_share(&again))
		snprintf(why, VC_RERUN_WHY, "the program is not the recorded one: a dry run at the "
			 "recorded value makes %" PRIu64 " of its %" PRIu64 " requests",
			 t->equal, t->requests);
	else if (rc == VC_OK && decide && !again.same)
		r->seeds = r->opt->seeds == VC_NOT_GIVEN ? SEEDS : (unsigned)r->opt->seeds;
	vc_control_fini(&again);
	return rc;
}

struct vc_rerun *vc_rerun_open(const struct vc_run_options *opt, struct vc_recording *of,
			       const struct vc_param_value *at, size_t n,
			       char why[VC_RERUN_WHY], struct vc_error *err)
{
	struct vc_param_value all[MOST];
	const struct vc_list made = { opt->transform.at, vc_rerun_makes(opt) };
	struct vc_run_wish wish = { .of = of, .at = all, .made = &made };
	struct vc_rerun *r;
	int rc;

	why[0] = '\0';
	if (!opt->runner || vc_rerun_asked(opt, "recordings"))
		return NULL;
	if (of->streamed)
		snprintf(why, VC_RERUN_WHY, "the recording is too long to be held against a run");
	r = calloc(1, sizeof(*r));
	if (!r) {
		vc_nomem(err, "a program that is run again");
		return NULL;
	}
	*r = (struct vc_rerun){ .opt = opt, .of = of, .seeds = 1, .made = made };
	wish.n = vc_rerun_values(of, at, n, all);
	rc = why[0] ? VC_OK : opt->runner->may(opt, &wish, why, err);
	if (rc == VC_OK && why[0] && n && made.n && !vc_rerun_asked(opt, "rerun")) {
		wish.made = NULL; /* the values without the change */
		r->made.n = 0;
		rc = opt->runner->may(opt, &wish, why, err);
	}
	if (rc == VC_OK && !why[0])
		rc = run_control(r, err);
	if (rc == VC_OK && !why[0])
		rc = judge(r, why, err);
	if (rc == VC_OK && !why[0])
		return r;
	may_not(opt, why, err);
	vc_rerun_close(r);
	return NULL;
}

void vc_rerun_close(struct vc_rerun *r)
{
	if (r) {
		vc_recording_close(&r->control);
		vc_control_fini(&r->found);
	}
	free(r);
}

/* ---- the values that are asked for ---- */

/* It may have been run with more memory than there is, for all that it asks for. Was it not? */
static bool play_card(const struct vc_rerun *r, const struct vc_card *card,
		      struct vc_recording *rec)
{
	struct vc_device_info *on = vc_meta_device(rec->meta, rec->device->device);
	const struct vc_device_info *was = vc_meta_device_known(r->of->meta, r->of->device->device);
	uint64_t ran_with = on ? on->total : 0;

	if (on && !card && was && was->total)
		on->total = was->total;
	else if (on && (card || (on->name && (card = vc_card_by_name(on->name)))))
		on->total = card->total;
	return on && on->total == ran_with;
}

/* Peaks of all of its runs at those values. */
static int peaks_of(const struct vc_rerun *r, struct vc_run_wish *wish, struct vc_peaks *out,
		    struct vc_error *err)
{
	for (wish->seed = 0; wish->seed < r->seeds; wish->seed++) {
		struct vc_recording rec = { 0 };
		struct vc_ran ran;
		int rc = r->opt->runner->run(r->opt, wish, &ran, err);

		if (rc == VC_OK)
			rc = open_run(r->opt, ran.path, &rec, err);
		if (rc == VC_OK)
			rc = vc_followed_peaks(&rec, &out[wish->seed], err);
		vc_recording_close(&rec);
		VC_TRY(rc);
	}
	return VC_OK;
}

/* Run it r->seeds times. *middle: which of the peaks is in the middle. */
static int run_spread(const struct vc_rerun *r, struct vc_run_wish *wish, struct vc_reran *out,
		      unsigned *middle, struct vc_error *err)
{
	struct vc_peaks run[VC_RERUN_SEEDS], recorded[VC_RERUN_SEEDS + 1];
	struct vc_param_value all[MOST];
	struct vc_run_wish again = as_recorded(r, all);

	VC_TRY(peaks_of(r, wish, run, err));
	VC_TRY(peaks_of(r, &again, recorded, err));
	VC_TRY(vc_followed_peaks(r->of, &recorded[r->seeds], err));
	*middle = vc_spread(run, recorded, r->seeds, &out->least, &out->most);
	return VC_OK;
}

/* What the recording and its control run differ in, into the run: it is no recording then. */
static int carry_over(const struct vc_rerun *r, struct vc_recording *rec, struct vc_reran *out,
		      struct vc_error *err)
{
	struct vc_trace t, *is = &rec->trace;
	int rc;

	if (!r->found.differ || r->seeds > 1 || r->made.n || r->of->device->has_start)
		return VC_OK;
	rc = vc_carry(&r->found, &r->control, rec, VC_CARRY_HIGH, &out->high, err);
	if (rc > 0)
		rc = vc_carry(&r->found, &r->control, rec, VC_CARRY_LOW, &t, err);
	if (rc <= 0)
		return rc;
	t.meta = is->meta;
	t.reads = is->reads;
	is->meta = NULL;
	vc_trace_fini(is);
	*is = t;
	for (size_t i = 0; i < t.n; i++)
		if (t.ev[i].kind == VC_EV_ALLOC && t.ev[i].id > t.meta->max_id)
			t.meta->max_id = t.ev[i].id;
	out->carried = true;
	out->whole = false;
	return vc_recording_count(rec, rec->device->device, err);
}

int vc_rerun_at(const struct vc_rerun *r, const struct vc_param_value *at, size_t n,
		const struct vc_card *card, struct vc_recording *rec, struct vc_reran *out,
		struct vc_error *err)
{
	struct vc_param_value all[MOST];
	struct vc_run_wish wish = { .of = r->of, .at = all, .made = &r->made, .card = card };
	struct vc_peaks peaks;
	unsigned middle = 0;

	wish.n = vc_rerun_values(r->of, at, n, all);
	if (r->seeds > 1)
		VC_TRY(run_spread(r, &wish, out, &middle, err));
	wish.seed = middle;
	VC_TRY(r->opt->runner->run(r->opt, &wish, &out->ran, err));
	VC_TRY(open_run(r->opt, out->ran.path, rec, err));
	VC_TRY(vc_followed_peaks(rec, &peaks, err));
	out->peak = peaks.peak_reserved;
	out->whole = play_card(r, card, rec);
	if (r->seeds < 2 || out->least > out->peak)
		out->least = out->peak;
	if (out->most < out->peak)
		out->most = out->peak;
	return carry_over(r, rec, out, err);
}

/* What the control run is off by even with all that the recording has beside it. */
static int widen_by_rest(const struct vc_rerun *r, const struct vc_plan *all, struct vc_result *out,
			 struct vc_error *err)
{
	struct vc_result recorded = { 0 }, control = { 0 };
	struct vc_job job = { .rec = r->of };

	for (int k = 0; k < 2; k++) {
		struct vc_job with = { .rec = &r->control };
		struct vc_trace t;
		int rc = vc_carry(&r->found, &r->control, with.rec,
				  k ? VC_CARRY_HIGH : VC_CARRY_LOW, &t, err);

		VC_TRY(rc);
		with.events = &t;
		rc = vc_job_widen(&with, all, &control, err);
		vc_trace_fini(&t);
		VC_TRY(rc);
	}
	VC_TRY(vc_job_widen(&job, all, &recorded, err));
	if (recorded.low < control.low)
		out->low -= control.low - recorded.low < out->low ? control.low - recorded.low :
								    out->low;
	if (recorded.high > control.high)
		out->high += recorded.high - control.high;
	return VC_OK;
}

int vc_rerun_interval(const struct vc_rerun *r, const struct vc_recording *run,
		      const struct vc_reran *ran, const struct vc_plan *plan,
		      struct vc_result *out, struct vc_error *err)
{
	uint64_t less = ran->peak - ran->least, more = ran->most - ran->peak, need;
	struct vc_plan all = vc_plan_unlimited(plan);
	struct vc_job job = { .rec = run };
	struct vc_result free = { 0 };

	if (r->found.same)
		return VC_OK;
	vc_completion_default(run, &all);
	VC_TRY(vc_job_widen(&job, &all, &free, err));
	need = free.high;
	job.events = &ran->high;
	if (ran->carried) {
		VC_TRY(vc_job_widen(&job, &all, &free, err));
		VC_TRY(widen_by_rest(r, &all, &free, err));
	} else if (r->seeds < 2 || !is_dry(r->of)) {
		vc_control_interval(&r->found, need, &free.low, &free.high);
	}
	out->low = need - less < free.low ? need - less : free.low;
	out->high = need + more > free.high ? need + more : free.high;
	out->has_interval = out->low < out->high;
	return VC_OK;
}

char *vc_rerun_words(const struct vc_rerun *r, const char *unknown, char *buf, size_t n)
{
	char differs[240], seeds[120] = "", times[48] = "";
	bool values = r->opt->set.n > 0 || !r->made.n;

	vc_control_words(&r->found, differs, sizeof(differs));
	if (r->seeds > 1)
		snprintf(times, sizeof(times), "so it was run %u times at each value", r->seeds);
	if (r->seeds > 1)
		snprintf(seeds, sizeof(seeds), "; its %s, %s",
			 differs[0] ? "data decide" : "blocks are freed in another order each time",
			 r->once ? "and another run may need more" : times);
	else if (!r->found.same && !differs[0])
		snprintf(seeds, sizeof(seeds), "; its blocks are freed in another order");
	snprintf(buf, n, "the program was run %s%s%s without a card; %s "
		 "%" PRIu64 " of %" PRIu64 " requests were those of the %s%s%s%s%s%s%s",
		 values ? "at this value" : "", values && r->made.n ? " and " : "",
		 r->made.n ? "with this change" : "",
		 r->made.n ? "as it was recorded" : "at the recorded value",
		 r->found.equal, r->found.requests, is_dry(r->of) ? "recording" : "card",
		 differs[0] ? " (" : "", differs, differs[0] ? ")" : "", seeds,
		 *unknown ? "; only a card knows: " : "", unknown);
	return buf;
}
