/* SPDX-License-Identifier: Apache-2.0 */
/* torch_names.c - see torch_names.h */
#include "common/torch_names.h"

#include "common/site.h"

enum match { FILE_IS, FILE_HAS, FILE_ENDS, FUNCTION_IS, FUNCTION_HAS, EITHER_IS, EITHER_HAS };

static const struct { uint32_t role; enum match match; const char *text;
} rows[] = {
#define VC_TORCH_NAME(role, match, text, source) { VC_NAME_##role, match, text },
#include "common/torch_names.def"
#undef VC_TORCH_NAME
};

enum { ROWS = sizeof(rows) / sizeof(*rows), PART = 8 };

/* The roles alone, none behind the last: most questions are about one, and skip whole parts. */
static const uint32_t role_of[(ROWS + PART - 1) / PART * PART] = {
#define VC_TORCH_NAME(role, match, text, source) VC_NAME_##role,
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
	const char *slash;

	switch (match) {
	case FILE_IS:
		slash = strrchr(file, '/');
		return !strcmp(slash ? slash + 1 : file, text);
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

	for (size_t i = 0; i < ROWS; i += PART) {
		uint32_t any = 0;

		for (size_t k = 0; k < PART; k++)
			any |= role_of[i + k];
		if (!(any & asked & ~found))
			continue;
		for (size_t k = i; k < i + PART && k < ROWS; k++)
			if (role_of[k] & asked & ~found &&
			    matches(rows[k].match, rows[k].text, file, function))
				found |= rows[k].role;
	}
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
