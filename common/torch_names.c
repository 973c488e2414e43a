/* SPDX-License-Identifier: Apache-2.0 */
/* torch_names.c - see torch_names.h */
#include "common/torch_names.h"

#include <stdbool.h>
#include <string.h>

#include "common/site.h"

enum match { FILE_IS, FILE_HAS, FILE_ENDS, FUNCTION_IS, FUNCTION_HAS, EITHER_IS, EITHER_HAS };

static const struct { uint32_t role; enum match match; const char *text;
} rows[] = {
#define VC_TORCH_NAME(role, match, text, source) { VC_NAME_##role, match, text },
#include "common/torch_names.def"
#undef VC_TORCH_NAME
};

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

static bool matches(enum match match, const char *text, const char *file, const char *function)
{
	const char *slash = strrchr(file, '/');

	switch (match) {
	case FILE_IS: return !strcmp(slash ? slash + 1 : file, text);
	case FILE_HAS: return strstr(file, text);
	case FILE_ENDS: return ends_with(file, text);
	case FUNCTION_IS: return !strcmp(function, text);
	case FUNCTION_HAS: return strstr(function, text);
	case EITHER_IS: return !strcmp(file, text) || !strcmp(function, text);
	case EITHER_HAS: return strstr(file, text) || strstr(function, text);
	}
	return false;
}

uint32_t vc_torch_roles(const char *file, const char *function, uint32_t asked)
{
	uint32_t found = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].role & asked & ~found &&
		    matches(rows[i].match, rows[i].text, file, function))
			found |= rows[i].role;
	return found;
}

uint32_t vc_frame_roles(const struct vc_meta *m, uint32_t frame, uint32_t asked)
{
	if (!m || !frame || frame >= m->frames)
		return 0;
	return vc_torch_roles(vc_label_text(m, m->frame[frame].file),
			      vc_label_text(m, m->frame[frame].function), asked);
}

uint32_t vc_frame_caller(const struct vc_meta *m, uint32_t site)
{
	if (!m || site >= m->frames)
		return 0;
	while (site && vc_frame_roles(m, site, VC_NAME_DRY_RUN))
		site = m->frame[site].parent < site ? m->frame[site].parent : 0;
	return site;
}
