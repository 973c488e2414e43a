/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - see completion.h */
#include "simulator/session/completion.h"

#include <stdio.h>
#include <string.h>

static bool has_policy(const struct vc_model_type *m)
{
	for (const struct vc_param *p = m->params; p && p->name; p++)
		if (!strcmp(p->name, "completion"))
			return true;
	return false;
}

static void add_policy(struct vc_plan *p, const char *policy)
{
	size_t n = strlen(p->params);

	snprintf(p->params + n, sizeof(p->params) - n, "%scompletion=%s", n ? "," : "", policy);
}

static bool is_open(const struct vc_session *s, const struct vc_plan *p)
{
	return has_policy(p->model) && !strstr(p->params, "completion=") &&
	       s->device->uses + s->device->deferred > 0;
}

void vc_completion_default(const struct vc_session *s, struct vc_plan *p)
{
	if (is_open(s, p) && s->meta->how[VC_CAP_COMPLETION] == VC_HOW_ABSENT)
		add_policy(p, "next");
}

static bool is_as_recorded(const struct vc_session *s, const struct vc_plan *p)
{
	return !s->change[0] && !s->opt->transform.n && !p->params[0] && !p->card &&
	       p->fraction < 0 && s->opt->capacity == VC_NOT_GIVEN &&
	       !strcmp(p->conf, s->meta->conf ? s->meta->conf : "") &&
	       (!s->opt->torch.n || (s->meta->torch && !strcmp(p->torch, s->meta->torch)));
}

static int widen(const struct vc_session *s, const struct vc_plan *p, const char *policy,
		 struct vc_result *out, struct vc_error *err)
{
	static const struct vc_observer_type *const nobody[] = { NULL };
	struct vc_plan other = *p;
	struct vc_result r;
	int rc;

	add_policy(&other, policy);
	rc = vc_session_run(s, &other, nobody, &r, err);
	if (rc < 0)
		return rc;
	if (r.stats.peak_reserved < out->low)
		out->low = r.stats.peak_reserved;
	if (r.stats.peak_reserved > out->high)
		out->high = r.stats.peak_reserved;
	vc_result_fini(&r);
	return VC_OK;
}

int vc_completion_interval(const struct vc_session *s, const struct vc_plan *p,
			   struct vc_result *out, struct vc_error *err)
{
	int r;

	if (!is_open(s, p) || is_as_recorded(s, p))
		return VC_OK;
	if (!out->has_interval)
		out->low = out->high = out->stats.peak_reserved;
	out->has_interval = true;
	r = widen(s, p, "next", out, err);
	return r < 0 ? r : widen(s, p, "forced", out, err);
}
