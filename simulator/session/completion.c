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

static bool is_open(const struct vc_recording *rec, const struct vc_plan *p)
{
	return has_policy(p->model) && !strstr(p->params, "completion=") &&
	       rec->device->uses + rec->device->deferred > 0;
}

void vc_completion_default(const struct vc_recording *rec, struct vc_plan *p)
{
	if (is_open(rec, p) && rec->meta->how[VC_CAP_COMPLETION] == VC_HOW_ABSENT)
		add_policy(p, "next");
}

static bool is_as_recorded(const struct vc_job *job, const struct vc_plan *p)
{
	const char *conf = job->rec->meta->conf;

	return !(job->change && *job->change) && !p->transform.n && !p->params[0] && !p->card &&
	       p->fraction < 0 && !p->changed && !strcmp(p->conf, conf ? conf : "");
}

bool vc_completion_is_open(const struct vc_job *job, const struct vc_plan *p)
{
	return is_open(job->rec, p) && !is_as_recorded(job, p);
}

int vc_completion_interval(const struct vc_job *job, const struct vc_plan *p,
			   struct vc_result *out, struct vc_error *err)
{
	static const char *const policy[] = { "next", "forced" };

	if (!vc_completion_is_open(job, p))
		return VC_OK;
	vc_result_open_interval(out);
	for (size_t i = 0; i < 2; i++) {
		struct vc_plan other = vc_plan_unlimited(p);

		add_policy(&other, policy[i]);
		VC_TRY(vc_job_widen(job, &other, out, err));
	}
	return VC_OK;
}
