/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - what is plugged into the simulator's sockets, made from the .def tables. No header
 * includes those, so that a new row rebuilds this file alone. */

#include "simulator/replay/model.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/transform.h"

#define VC_MODEL(id) extern const struct vc_model_type vc_model_##id;
#include "simulator/models/models.def"
#undef VC_MODEL
#define VC_MODEL(id) &vc_model_##id,
const struct vc_model_type *const vc_models[] = {
#include "simulator/models/models.def"
	NULL
};
#undef VC_MODEL

#define VC_SOURCE(id) extern const struct vc_source_type vc_source_##id;
#include "simulator/sources/sources.def"
#undef VC_SOURCE
#define VC_SOURCE(id) &vc_source_##id,
const struct vc_source_type *const vc_sources[] = {
#include "simulator/sources/sources.def"
	NULL
};
#undef VC_SOURCE

#define VC_TRANSFORM(id) extern const struct vc_source_type vc_transform_##id;
#include "simulator/transforms/transforms.def"
#undef VC_TRANSFORM
#define VC_TRANSFORM(id) &vc_transform_##id,
const struct vc_source_type *const vc_transforms[] = {
#include "simulator/transforms/transforms.def"
	NULL
};
#undef VC_TRANSFORM

#define VC_OBSERVER(id) extern const struct vc_observer_type vc_observer_##id;
#include "simulator/observers/observers.def"
#undef VC_OBSERVER
#define VC_OBSERVER(id) &vc_observer_##id,
const struct vc_observer_type *const vc_observers[] = {
#include "simulator/observers/observers.def"
	NULL
};
#undef VC_OBSERVER

const struct vc_model_type *vc_model_by_name(const char *name)
{
	for (size_t i = 0; vc_models[i]; i++)
		if (!strcmp(vc_models[i]->name, name))
			return vc_models[i];
	return NULL;
}

const struct vc_observer_type *vc_observer_by_name(const char *name)
{
	for (size_t i = 0; vc_observers[i]; i++)
		if (!strcmp(vc_observers[i]->name, name))
			return vc_observers[i];
	return NULL;
}

const struct vc_source_type *vc_transform_by_name(const char *name)
{
	for (size_t i = 0; vc_transforms[i]; i++)
		if (!strcmp(vc_transforms[i]->name, name))
			return vc_transforms[i];
	return NULL;
}

/* Whose parameter has this choice: "bf16" is precision:to=bf16. */
static bool find_choice(const char *word, char *buf, size_t n)
{
	size_t len = strlen(word);

	for (size_t i = 0; vc_transforms[i]; i++)
		for (const struct vc_param *p = vc_transforms[i]->params; p && p->name; p++)
			for (const char *c = p->choices; c && *c; c += *c == ',') {
				size_t k = strcspn(c, ",");

				if (len && k == len && !strncmp(c, word, k)) {
					snprintf(buf, n, "%s:%s=%s", vc_transforms[i]->name,
						 p->name, word);
					return true;
				}
				c += k;
			}
	return false;
}

const struct vc_source_type *vc_transform_find(const char *name, struct vc_error *err)
{
	const struct vc_source_type *t = vc_transform_by_name(name);
	const char *names[64], *near;
	char choice[160];
	size_t n = 0;

	if (t)
		return t;
	for (; n < 64 && vc_transforms[n]; n++)
		names[n] = vc_transforms[n]->name;
	if (strchr(name, ',')) {
		vc_fail(err, VC_EUSAGE, "'%s': one transform for each -x, as in -x %.*s -x %s",
			name, (int)strcspn(name, ","), name, strchr(name, ',') + 1);
		return NULL;
	}
	near = find_choice(name, choice, sizeof(choice)) ? choice : vc_nearest(name, names, n);
	vc_fail(err, VC_EUSAGE, near ? "no transform is called '%s' (did you mean %s?)" :
		"no transform is called '%s' ('vramcast list transforms')", name, near);
	return NULL;
}

int vc_transform_parse(struct vc_transform_use *u, const char *text, struct vc_error *err)
{
	size_t n = strcspn(text, ":");
	const struct vc_source_type *type;
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)n, text);
	type = vc_transform_find(name, err);
	return !type ? VC_EUSAGE : vc_transform_set(u, type, text[n] ? text + n + 1 : NULL, err);
}
