/* SPDX-License-Identifier: Apache-2.0 */
/* transform.c - see transform.h */
#include "simulator/replay/transform.h"

#include <stdio.h>
#include <string.h>

const struct vc_source_type *vc_transform_by_name(const char *name)
{
	for (size_t i = 0; vc_transforms[i]; i++)
		if (!strcmp(vc_transforms[i]->name, name))
			return vc_transforms[i];
	return NULL;
}

void vc_step_unchanged(const void *config, struct vc_step_change *c)
{
	(void)config;
	(void)c;
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

int vc_transform_parse(struct vc_transform_use *u, const char *text, struct vc_error *err)
{
	size_t n = strcspn(text, ":");
	const struct vc_source_type *type;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)n, text);
	type = vc_transform_by_name(name);
	if (!type)
		return vc_fail(err, VC_EUSAGE,
			       "no transform is called '%s' ('vramcast list transforms')", name);
	return vc_transform_set(u, type, text[n] ? text + n + 1 : NULL, err);
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
