/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - what is plugged into the simulator's sockets, made from the .def tables. No header
 * includes those, so that a new row rebuilds this file alone. */
#include <stdio.h>
#include <string.h>

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
