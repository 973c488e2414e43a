/* SPDX-License-Identifier: Apache-2.0 */
/* site.c - see site.h */
#include "common/site.h"

#include <stdio.h>
#include <string.h>

const char *vc_label_text(const struct vc_meta *m, uint32_t label)
{
	return m && label && label < m->strings && m->string[label] ? m->string[label] : "";
}

static const char *base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/' || *path == '\\')
			base = path + 1;
	return base;
}

static bool is_framework(const struct vc_meta *m, uint32_t site)
{
	static const char *const inside[] = { "/torch/", "\\torch\\", "site-packages", "dist-packages",
		"/lib/python", "<frozen", "??", ".cpp", ".cc", ".cu", ".so" };
	const char *file = vc_label_text(m, m->frame[site].file);

	for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
		if (strstr(file, inside[i]))
			return true;
	return !*file;
}

static bool is_python(const struct vc_meta *m, uint32_t site)
{
	const char *file = vc_label_text(m, m->frame[site].file);
	size_t n = strlen(file);

	return n > 3 && !strcmp(file + n - 3, ".py");
}

uint32_t vc_site_shown(const struct vc_meta *m, uint32_t site)
{
	uint32_t python = 0, at = site;

	for (; at; at = m->frame[at].parent < at ? m->frame[at].parent : 0) {
		if (!is_framework(m, at))
			return at;
		if (!python && is_python(m, at))
			python = at;
	}
	return python ? python : site;
}

void vc_site_text(const struct vc_meta *m, uint32_t site, char *buf, size_t cap)
{
	const struct vc_frame *f;

	*buf = '\0';
	if (!m || !site || site >= m->frames)
		return;
	f = &m->frame[vc_site_shown(m, site)];
	snprintf(buf, cap, "%s:%u %s", base_name(vc_label_text(m, f->file)), f->line,
		 vc_label_text(m, f->function));
}
