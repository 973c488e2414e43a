/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - see bounds.h */
#include "simulator/session/bounds.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/warm_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512 };

/* What -x TEXT says of itself; a text that is wrong says nothing: the run complains. */
static bool read_use(const char *text, struct vc_transform_use *u)
{
	struct vc_error ignored = { 0 };

	return vc_transform_parse(u, text, &ignored) == VC_OK;
}

/* Does it leave something open that a run with other bounds shows? */
static bool has_bounds(const struct vc_transform_use *u)
{
	return vc_param_find(u->type->params, "bound") != NULL;
}

static bool is_open(const char *text)
{
	struct vc_transform_use u;

	return read_use(text, &u) && has_bounds(&u) && !vc_transform_given(&u, "bound");
}

enum openness { CLOSED, MARGIN, BOUND_CHOSEN, UNKNOWN };

static enum openness openness_of(const struct vc_run_options *o)
{
	enum openness most = CLOSED;

	for (size_t i = 0; i < o->transform.n; i++) {
		struct vc_transform_use u;
		const struct vc_margin *m;
		enum openness now;

		if (!read_use(o->transform.at[i], &u))
			continue;
		m = vc_transform_margin(&u);
		now = !m ? UNKNOWN :
		      vc_transform_given(&u, "bound") ? BOUND_CHOSEN :
		      has_bounds(&u) || m->down > 0 || m->up > 0 ? MARGIN : CLOSED;
		most = now > most ? now : most;
	}
	return most;
}

bool vc_bounds_wanted(const struct vc_run_options *o)
{
	return openness_of(o) == MARGIN;
}

const char *vc_bounds_level(const struct vc_run_options *o)
{
	static const char *const level[] = { [CLOSED] = "exact", [MARGIN] = "bounds",
					    [BOUND_CHOSEN] = "bounds", [UNKNOWN] = "unknown" };

	return level[openness_of(o)];
}

/* To whole pages of the allocator, so that the ends are values that could be. */
static uint64_t times(uint64_t bytes, double factor, bool up)
{
	const uint64_t grain = UINT64_C(2) << 20;
	double x = (double)bytes * factor / (double)grain;
	uint64_t n = (uint64_t)x;

	return (n + (up && (double)n < x)) * grain;
}

static void add_margins(const struct vc_session *s, struct vc_result *out)
{
	double down = 1, up = 1;

	/* The run that leads to a recording from its middle is rebuilt
	 * (simulator/rewrite/warm_start.h). */
	if (s->device && s->device->has_start && s->device->start_reserved > VC_THAW_LITTLE) {
		down = 1 - 4.0 / 100;
		up = 1 + 7.0 / 100;
	}
	for (size_t i = 0; i < s->opt->transform.n; i++) {
		struct vc_transform_use u;
		const struct vc_margin *m =
			read_use(s->opt->transform.at[i], &u) ? vc_transform_margin(&u) : NULL;
		bool blind = m && m->blind > 0 && s->meta->frames <= 1;

		down *= m ? 1 - (blind ? m->blind : m->down) / 100 : 1;
		up *= m ? 1 + m->up / 100 : 1;
	}
	out->low = down < 1 ? times(out->low, down, false) : out->low;
	out->high = up > 1 ? times(out->high, up, true) : out->high;
}

static int widen(const struct vc_session *s, const struct vc_plan *p, const char *bound,
		 struct vc_result *out, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	size_t n = s->opt->transform.n;
	char (*text)[TEXT] = calloc(n, sizeof(*text));
	const char **at = calloc(n, sizeof(*at));
	struct vc_run_options o = *s->opt;
	struct vc_session t = *s;
	struct vc_result r = { 0 };
	int rc = text && at ? VC_OK : vc_nomem(err, "what the transforms leave open");

	for (size_t i = 0; rc == VC_OK && i < n; i++) {
		const char *now = s->opt->transform.at[i];

		at[i] = now;
		if (!is_open(now))
			continue;
		at[i] = text[i];
		if (snprintf(text[i], TEXT, "%s%sbound=%s", now, strchr(now, ':') ? "," : ":",
			     bound) >= TEXT)
			rc = vc_fail(err, VC_EUSAGE, "-x %.40s...: longer than %d characters",
				     now, TEXT - 16);
	}
	o.transform = (struct vc_list){ at, n };
	t.opt = &o;
	if (rc == VC_OK)
		rc = vc_session_run(&t, p, nobody, &r, err);
	if (rc == VC_OK) {
		uint64_t low = r.has_interval ? r.low : r.stats.peak_reserved;
		uint64_t high = r.has_interval ? r.high : r.stats.peak_reserved;
		out->low = low < out->low ? low : out->low;
		out->high = high > out->high ? high : out->high;
		vc_result_fini(&r);
	}
	free(text);
	free(at);
	return rc;
}

int vc_bounds_interval(const struct vc_session *s, const struct vc_plan *p, struct vc_result *out,
		       struct vc_error *err)
{
	bool open = false;
	int r = VC_OK;

	if (!vc_bounds_wanted(s->opt))
		return VC_OK;
	for (size_t i = 0; i < s->opt->transform.n; i++)
		open |= is_open(s->opt->transform.at[i]);
	if (!out->has_interval)
		out->low = out->high = out->stats.peak_reserved;
	if (open)
		r = widen(s, p, "low", out, err);
	if (r == VC_OK && open)
		r = widen(s, p, "high", out, err);
	add_margins(s, out);
	out->has_interval = out->has_interval || out->low != out->high;
	return r;
}
