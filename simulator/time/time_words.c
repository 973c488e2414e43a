/* SPDX-License-Identifier: Apache-2.0 */
/* time_words.c - the time of a step in JSON and in sentences. */

#include "common/kernel_name.h"
#include "common/vec.h"
#include "simulator/time/time.h"

enum { KERNELS = 64 }; /* that are named, at most */

/* Why a dry run does not say how long the GPU waits for data. */
#define STANDS "the null GPU's clock stands while the program prepares its data"

/* Peak rates that no kernel quite reaches give two digits, no more. */
#define ROUGH "from the card's published rates, not measured: rough"

/* On the null GPU, where kernels say what they do: docs/measurements/time.md. */
#define FROM_WORK "from what its kernels compute and move: rough"

static double two_digits(double v)
{
	double unit = v > 0 ? pow(10, floor(log10(v)) - 1) : 1;

	return round(v / unit) * unit;
}

static bool is_rough(const struct vc_timing *t)
{
	return t->modelled || t->roofline;
}

static const char *ns_words(uint64_t ns, bool rough, char buf[32])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double v = two_digits((double)ns);
	size_t u = 0;

	if (!rough)
		return vc_ns_text(ns, buf);
	for (; u < 3 && v >= 999.5; u++)
		v /= 1000;
	snprintf(buf, 32, "%.4g %s", v, units[u]);
	return buf;
}

/* A rate of `each` a step: "30.22", and two digits where times are not measured on that card. */
static const char *rate_words(const struct vc_timing *t, double each, char buf[32])
{
	double v = t->step_ns ? each * 1e9 / (double)t->step_ns : 0;

	if (is_rough(t))
		snprintf(buf, 32, "%.10g", two_digits(v));
	else
		snprintf(buf, 32, "%.4g", v);
	return buf;
}

const char *vc_time_pace_words(const struct vc_timing *t, char *buf, size_t n)
{
	struct vc_timing slow = *t, fast = *t;
	char rate[32], low[32], high[32];
	int at = 0;

	*buf = '\0';
	if (!t->step_ns)
		return buf;
	slow.step_ns = t->high_ns;
	fast.step_ns = t->low_ns;
	if (t->samples > 0)
		at = snprintf(buf, n, "%9s samples/s ", rate_words(t, t->samples, rate));
	at += snprintf(buf + at, n - (size_t)at, "%8s it/s", rate_words(t, 1, rate));
	if (!t->same && t->low_ns < t->high_ns)
		snprintf(buf + at, n - (size_t)at, " (%s .. %s)%s",
			 rate_words(&slow, 1, low), rate_words(&fast, 1, high),
			 is_rough(t) ? " rough" : "");
	else if (is_rough(t))
		snprintf(buf + at, n - (size_t)at, " rough");
	return buf;
}

static void real_or_null(struct vc_emit *e, const char *key, bool known, double v)
{
	vc_emit_real(vc_emit_known(e, known), key, NULL, v);
}

static void uint_or_null(struct vc_emit *e, const char *key, bool known, uint64_t v)
{
	vc_emit_uint(vc_emit_known(e, known), key, NULL, v);
}

/* What a step waits for most. */
static const char *bound(const struct vc_timing *t)
{
	double idle = 1 - t->busy;

	return idle < 0.1 ? "gpu" : !t->modelled && t->wait > idle / 2 ? "data" : "host";
}

static const char *basis(const struct vc_timing *t)
{
	return !t->step_ns ? NULL : t->roofline ? "roofline" : t->same ? "recorded" :
	       t->recordings > 1 ? "laws" : "bounds";
}

static void report_trust(struct vc_emit *e, const struct vc_timing *t)
{
	bool known = t->step_ns > 0;

	vc_emit_text(e, "basis", NULL, basis(t));
	vc_emit_bool(e, "modelled", NULL, known && t->modelled);
	if (known && t->low_ns < t->high_ns) {
		vc_emit_array(e, "interval_ns", NULL);
		vc_emit_uint(e, NULL, NULL, t->low_ns);
		vc_emit_uint(e, NULL, NULL, t->high_ns);
		vc_emit_end(e);
	} else {
		vc_emit_null(e, "interval_ns", NULL);
	}
	real_or_null(e, "unmatched", known, 1 - t->matched);
	real_or_null(e, "renamed", known, t->renamed);
	vc_emit_text(e, "bound", NULL, known ? bound(t) : NULL);
	real_or_null(e, "mfu", known && t->mfu > 0, t->mfu);
	real_or_null(e, "unknown", known, t->unknown);
	vc_emit_text(e, "unknown_kernel", NULL, known ? t->kernel : NULL);
	vc_emit_text(e, "why", NULL, known || !t->why[0] ? NULL : t->why);
}

void vc_time_report(struct vc_emit *e, const struct vc_result *r)
{
	const struct vc_timing *t = &r->timing;
	bool known = t->step_ns > 0;
	double rate = known ? 1e9 / (double)t->step_ns : 0;

	vc_emit_object(e, "time", NULL);
	uint_or_null(e, "recorded_ns", r->stats.has_times, r->stats.time_ns);
	uint_or_null(e, "predicted_ns", r->stats.predicted_ns > 0, r->stats.predicted_ns);
	vc_emit_uint(e, "driver_ns", NULL, r->stats.driver_ns);
	real_or_null(e, "gpu_busy", known, t->busy);
	uint_or_null(e, "step_ns", known, t->step_ns);
	uint_or_null(e, "recorded_step_ns", known, t->recorded_ns);
	real_or_null(e, "steps_per_s", known, rate);
	real_or_null(e, "samples_per_s", known && t->samples > 0, rate * t->samples);
	/* on the null GPU the clock stands while the program waits for its data */
	real_or_null(e, "data_wait", known && !t->modelled, t->wait);
	vc_emit_text(e, "data_wait_why", NULL, known && t->modelled ? STANDS : NULL);
	real_or_null(e, "flushes_per_step", t->flushes >= 0 && r->pace.n + r->stats.events > 0,
		     t->flushes);
	real_or_null(e, "segments_per_step", t->mallocs >= 0, t->mallocs);
	uint_or_null(e, "step_driver_ns", t->mallocs >= 0, t->driver_ns);
	report_trust(e, t);
	vc_emit_end(e);
}

void vc_time_report_ranks(struct vc_emit *e, const struct vc_timing *t)
{
	bool known = t->step_ns > 0;
	char step[32], low[32], high[32];

	vc_emit_object(e, "time", NULL);
	uint_or_null(e, "step_ns", known, t->step_ns);
	uint_or_null(e, "low_ns", known, t->low_ns);
	uint_or_null(e, "high_ns", known, t->high_ns);
	vc_emit_text(e, "why", NULL, known ? NULL : t->why);
	vc_emit_end(e);
	if (!known)
		vc_emit_line(e, "  time of a step unknown: %s", t->why);
	else
		vc_emit_line(e, "  about %s a step (%s .. %s), ranks that wait for each other "
			     "included; computed " FROM_WORK, ns_words(t->step_ns, true, step),
			     ns_words(t->low_ns, true, low), ns_words(t->high_ns, true, high));
}

/* Of kernels whose work was recorded: what they do, and how well the card does it. */
static void report_shares(struct vc_emit *e, const struct vc_profile *p)
{
	const struct vc_shares *s = p ? &p->shares : NULL;
	bool known = p && p->card && s->ns > 0;

	real_or_null(e, "flops_per_step", known, known ? s->flops : 0);
	real_or_null(e, "mfu", known, known ? s->ideal / (double)p->step_ns : 0);
	real_or_null(e, "unknown", known, known ? s->unknown / s->ns : 0);
	vc_emit_text(e, "unknown_kernel", NULL, known ? s->name : NULL);
	vc_emit_object(e, "kinds", NULL);
	for (int k = 0; known && k < VC_WORK_KINDS; k++)
		if (s->kind[k] > 0)
			vc_emit_real(e, vc_kernel_work_kind((enum vc_work_kind)k), NULL,
				     s->kind[k] / s->ns);
	vc_emit_end(e);
}

/* Launches of one kernel that do the same work. */
struct alike { const struct vc_beat *beat; double ns; size_t n; };

VC_COMPARE(by_kernel, struct alike,
	   VC_THEN(VC_ORDER(x->beat->exact, y->beat->exact), strcmp(x->beat->work, y->beat->work)))
VC_COMPARE(by_time, struct alike,
	   VC_THEN(VC_ORDER(y->ns, x->ns), VC_ORDER(x->beat->exact, y->beat->exact)))

static size_t gather_alike(const struct vc_profile *p, struct alike *at)
{
	size_t n = 0;

	for (size_t i = 0; i < p->beats; i++)
		at[i] = (struct alike){ &p->beat[i], p->beat[i].ns, 1 };
	vc_sort(at, p->beats, sizeof(*at), by_kernel);
	for (size_t i = 0; i < p->beats; i++)
		if (n && !by_kernel(&at[n - 1], &at[i])) {
			at[n - 1].ns += at[i].ns;
			at[n - 1].n++;
		} else {
			at[n++] = at[i];
		}
	vc_sort(at, n, sizeof(*at), by_time);
	return n;
}

/* The kernels that the typical step spends most time in. */
static void report_kernels(struct vc_emit *e, const struct vc_profile *p)
{
	struct alike *at = p ? calloc(p->beats + 1, sizeof(*at)) : NULL;
	size_t n = at ? gather_alike(p, at) : 0;
	char name[VC_KERNEL_NAME];

	vc_emit_array(e, "kernels", NULL);
	for (size_t i = 0; i < n && i < KERNELS; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "name", NULL, vc_kernel_name(at[i].beat->name, name));
		vc_emit_text(e, "work", NULL, *at[i].beat->work ? at[i].beat->work : NULL);
		vc_emit_uint(e, "launches", NULL, at[i].n);
		vc_emit_uint(e, "ns", NULL, (uint64_t)(at[i].ns + 0.5));
		vc_emit_end(e);
	}
	vc_emit_end(e);
	free(at);
}

const char *vc_time_profile_words(const struct vc_profile *p, char *buf, size_t n)
{
	char step[32], low[32], high[32];
	size_t at;

	*buf = '\0';
	if (!p || !p->card || !p->step_ns)
		return buf;
	if (p->shares.unknown > VC_TIME_UNKNOWN * p->shares.ns) {
		snprintf(buf, n, "unknown: %.0f %% of it is of kernels that nobody knows, as %.60s",
			 100 * p->shares.unknown / p->shares.ns, p->shares.name);
		return buf;
	}
	at = (size_t)snprintf(buf, n, "about %s a step (%s .. %s), GPU busy %.0f %%",
			      ns_words(p->step_ns, true, step), ns_words(p->step_min_ns, true, low),
			      ns_words(p->step_max_ns, true, high), 100 * p->busy);
	if (p->shares.ideal > 0 && at < n)
		at += (size_t)snprintf(buf + at, n - at, ", %.0f %% of the peak",
				       100 * p->shares.ideal / (double)p->step_ns);
	if (p->shares.unknown > 0.1 * p->shares.ns && at < n)
		snprintf(buf + at, n - at, "; %.0f %% is not known, as %.40s",
			 100 * p->shares.unknown / p->shares.ns, p->shares.name);
	return buf;
}

static void shares_line(struct vc_emit *e, const struct vc_profile *p)
{
	const struct vc_shares *s = &p->shares;
	char line[320];
	size_t n = 0;

	if (!p->card || !(s->ns > 0))
		return;
	for (int k = 0; k < VC_WORK_KINDS && n < sizeof(line); k++)
		if (s->kind[k] >= 0.03 * s->ns)
			n += (size_t)snprintf(line + n, sizeof(line) - n, "%s %.0f %%, ",
					      vc_kernel_work_kind((enum vc_work_kind)k),
					      100 * s->kind[k] / s->ns);
	if (n < sizeof(line))
		n += (size_t)snprintf(line + n, sizeof(line) - n, "MFU %.0f %%",
				      100 * s->ideal / (double)p->step_ns);
	if (s->unknown > 0.02 * s->ns && n < sizeof(line))
		snprintf(line + n, sizeof(line) - n, "; of %.0f %% nothing is known, most is %.60s",
			 100 * s->unknown / s->ns, s->name);
	vc_emit_text(e, NULL, "kernels", line);
}

static void profile_line(struct vc_emit *e, const struct vc_profile *p, double batch)
{
	char step[32], lo[32], hi[32], line[240];
	struct vc_timing t = { .step_ns = p->step_ns, .modelled = p->modelled };
	int n = snprintf(line, sizeof(line), "%s%s (%s .. %s over %zu)",
			 p->modelled ? "about " : "", ns_words(p->step_ns, p->modelled, step),
			 ns_words(p->step_min_ns, p->modelled, lo),
			 ns_words(p->step_max_ns, p->modelled, hi), p->measured);

	if (batch > 0)
		n += snprintf(line + n, sizeof(line) - (size_t)n, ", %s samples/s",
			      rate_words(&t, batch, lo));
	n += snprintf(line + n, sizeof(line) - (size_t)n, ", GPU busy %.1f %%", 100 * p->busy);
	if (p->modelled)
		snprintf(line + n, sizeof(line) - (size_t)n, "; computed %s"
			 "; waiting for data is not seen there", p->card ? FROM_WORK :
			 "by the null GPU " ROUGH);
	else if (p->copies)
		snprintf(line + n, sizeof(line) - (size_t)n, ", waits for data %.1f %%",
			 100 * p->wait);
	vc_emit_text(e, NULL, "step time", line);
}

void vc_time_report_profile(struct vc_emit *e, const struct vc_session *s)
{
	const struct vc_profile *p = vc_time_profile(s);
	bool known = p && p->steps && p->step_ns;
	double batch = 0;

	for (size_t i = 0; i < s->rec->meta->params; i++)
		if (!strcmp(s->rec->meta->param[i].name, "batch") ||
		    !strcmp(s->rec->meta->param[i].name, "batch_size"))
			batch = s->rec->meta->param[i].value;
	vc_emit_object(e, "time", NULL);
	uint_or_null(e, "step_ns", known, known ? p->step_ns : 0);
	uint_or_null(e, "step_min_ns", known, known ? p->step_min_ns : 0);
	uint_or_null(e, "step_max_ns", known, known ? p->step_max_ns : 0);
	real_or_null(e, "steps_per_s", known, known ? 1e9 / (double)p->step_ns : 0);
	real_or_null(e, "samples_per_s", known && batch > 0,
		     known ? batch * 1e9 / (double)p->step_ns : 0);
	real_or_null(e, "gpu_busy", known, known ? p->busy : 0);
	real_or_null(e, "data_wait", known && !p->modelled, known ? p->wait : 0);
	vc_emit_text(e, "data_wait_why", NULL, known && p->modelled ? STANDS : NULL);
	uint_or_null(e, "kernels_per_step", known, known ? p->beats : 0);
	uint_or_null(e, "shortest_kernel_ns", known, known ? (uint64_t)(p->floor_ns + 0.5) : 0);
	uint_or_null(e, "steps", known, known ? p->measured : 0);
	vc_emit_text(e, "source", NULL, known ? p->from : NULL);
	vc_emit_bool(e, "modelled", NULL, known && p->modelled);
	report_shares(e, known ? p : NULL);
	report_kernels(e, known ? p : NULL);
	vc_emit_end(e);
	if (known) {
		profile_line(e, p, batch);
		shares_line(e, p);
	}
}

const char *vc_time_words(const struct vc_result *r, char *buf, size_t n)
{
	const struct vc_timing *t = &r->timing;
	bool rough = is_rough(t);
	char step[32], lo[32], hi[32];
	size_t at = 0;

	*buf = '\0';
	if (!t->step_ns)
		return buf;
	at += (size_t)snprintf(buf, n, "%s%s a step", rough ? "about " : "",
			       ns_words(t->step_ns, rough, step));
	if ((!t->same || t->modelled) && t->low_ns < t->high_ns && at < n)
		at += (size_t)snprintf(buf + at, n - at, " (%s .. %s)",
				       ns_words(t->low_ns, rough, lo),
				       ns_words(t->high_ns, rough, hi));
	if (!t->same && t->recorded_ns && t->recordings == 1 && at < n)
		at += (size_t)snprintf(buf + at, n - at, ", recorded %s (%+.*f %%)",
				       ns_words(t->recorded_ns, rough, lo), rough ? 0 : 1,
				       100 * ((double)t->step_ns / (double)t->recorded_ns - 1));
	if (t->samples > 0 && at < n)
		at += (size_t)snprintf(buf + at, n - at, ", %s samples/s",
				       rate_words(t, t->samples, lo));
	if (at < n)
		at += (size_t)snprintf(buf + at, n - at, ", GPU busy %.0f %%", 100 * t->busy);
	if (!strcmp(bound(t), "host") && at < n)
		at += (size_t)snprintf(buf + at, n - at, ", bound by launches");
	if (!t->modelled && t->wait >= 0.005 && at < n)
		at += (size_t)snprintf(buf + at, n - at, ", waits for data %.1f %%", 100 * t->wait);
	if (t->flushes > 0 && at < n)
		at += (size_t)snprintf(buf + at, n - at,
				       ", empties the cache %.3g times per step", t->flushes);
	if (1 - t->matched >= 0.01 && at < n)
		at += (size_t)snprintf(buf + at, n - at,
				       "; %.0f %% of the kernels' time could not be matched",
				       100 * (1 - t->matched));
	if (t->mfu > 0 && at < n)
		at += (size_t)snprintf(buf + at, n - at, ", %.0f %% of the peak", 100 * t->mfu);
	if (t->unknown > 0.1 && at < n)
		at += (size_t)snprintf(buf + at, n - at, "; %.0f %% is not known, as %.60s",
				       100 * t->unknown, t->kernel ? t->kernel : "some kernels");
	if (t->modelled && at < n)
		snprintf(buf + at, n - at, "; computed %s", t->mfu > 0 ? FROM_WORK :
			 "by the null GPU " ROUGH);
	else if (t->roofline && at < n)
		snprintf(buf + at, n - at,
			 "; scaled from another card by bandwidth and FLOP/s: rough");
	return buf;
}

static double rate(const struct vc_result *r)
{
	const struct vc_timing *t = &r->timing;

	return t->step_ns && t->samples > 0 ? t->samples / (double)t->step_ns : 0;
}

/* The largest value below half as much again, so that the comparison says something: 16 for 24. */
static const struct vc_result *smaller(const struct vc_result *r, size_t n, size_t best)
{
	const struct vc_result *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (r[i].info.value < r[best].info.value && rate(&r[i]) > 0 &&
		    (!found || fabs(r[i].info.value - r[best].info.value * 2 / 3) <
		     fabs(found->info.value - r[best].info.value * 2 / 3)))
			found = &r[i];
	return found;
}

const char *vc_time_compare(const struct vc_result *r, size_t n, size_t best, char *buf, size_t len)
{
	const struct vc_result *less = best < n ? smaller(r, n, best) : NULL, *flush = NULL;
	size_t at = 0;

	*buf = '\0';
	if (best >= n)
		return buf;
	if (less && rate(&r[best]) > 0)
		at = (size_t)snprintf(buf, len, "%s %g gives %.2fx the samples/s of %g",
				      r[best].info.vary ? r[best].info.vary : "it",
				      r[best].info.value, rate(&r[best]) / rate(less),
				      less->info.value);
	for (size_t i = 0; i < n; i++)
		if (r[i].timing.flushes > 0 && vc_result_replayed(&r[i]) != VC_OOM &&
		    (!flush || r[i].info.value < flush->info.value))
			flush = &r[i];
	if (flush && flush != &r[best] && at < len)
		snprintf(buf + at, len - at, "%s%g would flush the cache %.3g times per step",
			 at ? "; " : "", flush->info.value, flush->timing.flushes);
	return buf;
}
