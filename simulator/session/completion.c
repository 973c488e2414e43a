/* SPDX-License-Identifier: Apache-2.0 */
/* completion.c - see completion.h */
#include "simulator/session/completion.h"

static void add(struct vc_plan *p, const char *name, const char *value)
{
	size_t n = strlen(p->params);

	snprintf(p->params + n, sizeof(p->params) - n, "%s%s=%s", n ? "," : "", name, value);
}

/* Has the model such a parameter, and the user not set it? */
static bool leaves(const struct vc_plan *p, const char *name)
{
	const char *set = strstr(p->params, name);

	return vc_param_find(p->model->params, name) && !(set && set[strlen(name)] == '=');
}

static bool is_open(const struct vc_recording *rec, const struct vc_plan *p)
{
	return leaves(p, "completion") && rec->device->uses + rec->device->deferred > 0;
}

void vc_completion_default(const struct vc_recording *rec, struct vc_plan *p)
{
	if (is_open(rec, p) && rec->meta->how[VC_CAP_COMPLETION] == VC_HOW_ABSENT)
		add(p, "completion", "next");
}

static bool is_as_recorded(const struct vc_job *job, const struct vc_plan *p)
{
	const char *conf = job->rec->meta->conf;

	return !(job->change && *job->change) && !p->transform.n && !p->params[0] && !p->card &&
	       p->fraction < 0 && !p->changed && !strcmp(p->conf, conf ? conf : "");
}

bool vc_completion_is_open(const struct vc_job *job, const struct vc_plan *p)
{
	return leaves(p, "bound") || (is_open(job->rec, p) && !is_as_recorded(job, p));
}

static int run_both(const struct vc_job *job, const struct vc_plan *p, const char *name,
		    const char *const value[2], struct vc_result *out, struct vc_error *err)
{
	vc_result_open_interval(out);
	for (size_t i = 0; i < 2; i++) {
		struct vc_plan other = vc_plan_unlimited(p);

		add(&other, name, value[i]);
		VC_TRY(vc_job_widen(job, &other, out, err));
	}
	return VC_OK;
}

int vc_completion_interval(const struct vc_job *job, const struct vc_plan *p,
			   struct vc_result *out, struct vc_error *err)
{
	static const char *const policy[] = { "next", "forced" };
	static const char *const bound[] = { "low", "high" };

	if (leaves(p, "bound"))
		VC_TRY(run_both(job, p, "bound", bound, out, err));
	if (!is_open(job->rec, p) || is_as_recorded(job, p))
		return VC_OK;
	return run_both(job, p, "completion", policy, out, err);
}
