/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - the table of sinks. */
#include "visualize/sink.h"

#define VC_SINK(id) extern const struct vc_sink_type vc_sink_##id;
#include "visualize/sinks/sinks.def"
#undef VC_SINK
const struct vc_sink_type *const vc_sinks[] = {
#define VC_SINK(id) &vc_sink_##id,
#include "visualize/sinks/sinks.def"
#undef VC_SINK
	NULL
};

/* Pictures from before, and those that say it better. */
static const struct { const char *old, *now; } retired[] = {
	{ "owners", "flame" }, { "blocks", "segments" }, { "steps", "timeline" } };

const char *vc_sink_instead(const char *name)
{
	for (size_t i = 0; i < sizeof(retired) / sizeof(*retired); i++)
		if (!strcmp(retired[i].old, name))
			return retired[i].now;
	return NULL;
}

const struct vc_sink_type *vc_sink_by_name(const char *name)
{
	name = vc_sink_instead(name) ? vc_sink_instead(name) : name;
	for (size_t i = 0; vc_sinks[i]; i++)
		if (!strcmp(vc_sinks[i]->name, name))
			return vc_sinks[i];
	return NULL;
}

const struct vc_sink_type *vc_sink_by_extension(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

	for (size_t i = 0; dot && vc_sinks[i]; i++)
		if (!strcmp(vc_sinks[i]->extension, dot + 1))
			return vc_sinks[i];
	return NULL;
}
