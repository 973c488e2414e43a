/* SPDX-License-Identifier: Apache-2.0 */
/* transform.c - see transform.h */
#include "simulator/replay/transform.h"

void vc_step_unchanged(const void *config, struct vc_step_change *c)
{
}

int vc_transform_set(struct vc_transform_use *u, const struct vc_source_type *type,
		     const char *params, struct vc_error *err)
{
	*u = (struct vc_transform_use){ .type = type };
	if (type->config_size > sizeof(u->config))
		return vc_fail(err, VC_EINTERNAL, "the parameters of %s take more than %zu bytes",
			       type->name, sizeof(u->config));
	if (!type->params && params && *params)
		return vc_fail(err, VC_EUSAGE, "transform %s takes no parameters", type->name);
	return vc_params_read(type->params, u->config, params, &u->given, err);
}

bool vc_transform_given(const struct vc_transform_use *u, const char *param)
{
	const struct vc_param *p = vc_param_find(u->type->params, param);

	return p && u->given >> (p - u->type->params) & 1;
}

const struct vc_margin *vc_transform_margin(const struct vc_transform_use *u)
{
	const struct vc_source_type *t = u->type;
	const struct vc_margin *m = t->margin_with ? t->margin_with(u->config) : NULL;

	return m ? m : t->margin;
}

const char *vc_transform_unmade(const struct vc_transform_use *u)
{
	if (u->type->unmade)
		return u->type->unmade(u->config);
	return "a program cannot be changed to it from outside";
}
