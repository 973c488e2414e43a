/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - see bounds.h */
#include "simulator/session/bounds.h"
#include "simulator/rewrite/warm_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512 };

/* How far the interval of a transform reaches beyond its own bounds, percent of its ends: what it
 * was found to be off by where the change was really made (docs/measurements/transforms.md),
 * and a little more. blind: down, for recordings without call sites, whose layers are guessed and
 * too large. Those that are not here are exact on the recording, or their parameters are the
 * question. */
static const struct margin { const char *name; double down, up, blind;
} margins[] = {
	{ "accumulate", 1, 3, 0 }, { "tail_batch", 1, 3, 0 }, { "mixture", 5, 5, 0 },
	{ "optimizer", 3, 4, 0 },  { "checkpoint", 8, 8, 0 }, { "ddp", 0.5, 0.5, 0 },
	{ "fsdp", 5, 4, 25 },      { "zero", 6, 12, 0 },      { "offload", 17, 13, 0 },
	{ "precision", 10, 8, 0 }, { "lora", 20, 12, 0 },     { "qlora", 30, 20, 0 },
	{ "tp", 30, 30, 0 },       { "pp", 12, 22, 0 },
};

static const struct vc_source_type *transform_of(const char *text, bool *bound)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	char name[64];

	*bound = colon && strstr(colon, "bound=");
	if (n >= sizeof(name))
		return NULL;
	memcpy(name, text, n);
	name[n] = '\0';
	return vc_transform_by_name(name);
}

/* Does -x TEXT leave something open that a run with other bounds shows? */
static bool is_open(const char *text)
{
	bool bound;
	const struct vc_source_type *t = transform_of(text, &bound);

	for (const struct vc_param *p = t && !bound ? t->params : NULL; p && p->name; p++)
		if (!strcmp(p->name, "bound"))
			return true;
	return false;
}

static const struct margin *margin_of(const char *text)
{
	/* Its gathers on streams of their own break the cache up more than is predicted. */
	static const struct margin stage3 = { "zero", 6, 18, 0 };
	bool bound;
	const struct vc_source_type *t = transform_of(text, &bound);

	if (t && !bound && !strcmp(t->name, "zero") && strstr(text, "stage=3"))
		return &stage3;
	for (size_t i = 0; t && !bound && i < sizeof(margins) / sizeof(*margins); i++)
		if (!strcmp(margins[i].name, t->name))
			return &margins[i];
	return NULL;
}

bool vc_bounds_wanted(const struct vc_run_options *o)
{
	bool any = false, bound = false;

	for (size_t i = 0; i < o->transform.n && !bound; i++) {
		transform_of(o->transform.at[i], &bound);
		any |= is_open(o->transform.at[i]) || margin_of(o->transform.at[i]);
	}
	return any && !bound;
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
		const struct margin *m = margin_of(s->opt->transform.at[i]);
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
