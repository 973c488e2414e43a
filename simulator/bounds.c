/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - see bounds.h */
#include "simulator/bounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 512 };

/* Does -x TEXT leave something open? */
static bool is_open(const char *text)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	char name[64];

	if (n >= sizeof(name) || (colon && strstr(colon, "bound=")))
		return false;
	memcpy(name, text, n);
	name[n] = '\0';
	const struct vc_source_type *t = vc_transform_by_name(name);
	for (const struct vc_param *p = t ? t->params : NULL; p && p->name; p++)
		if (!strcmp(p->name, "bound"))
			return true;
	return false;
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
		if (snprintf(text[i], TEXT, "%s%sbound=%s", now, strchr(now, ':') ? "," : ":", bound) >= TEXT)
			rc = vc_fail(err, VC_EUSAGE, "-x %.40s...: longer than %d characters", now, TEXT - 16);
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
	int r;

	for (size_t i = 0; i < s->opt->transform.n; i++)
		open |= is_open(s->opt->transform.at[i]);
	if (!open)
		return VC_OK;
	if (!out->has_interval)
		out->low = out->high = out->stats.peak_reserved;
	r = widen(s, p, "low", out, err);
	if (r == VC_OK)
		r = widen(s, p, "high", out, err);
	out->has_interval = out->has_interval || out->low != out->high;
	return r;
}
