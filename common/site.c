/* SPDX-License-Identifier: Apache-2.0 */
/* site.c - see site.h */
#include "common/site.h"

#include <stdatomic.h>

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

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && !strcmp(text + n - m, end);
}

/* Native frames, the interpreter's and the framework's own: not where a person would look first. */
/* Inside a package a path is the same everywhere and says whose code it is; of other files the last
 * part is enough. */
const char *vc_site_public(const char *path)
{
	static const char *const package[] = { "site-packages", "dist-packages", "lib/python" };

	for (size_t i = 0; i < sizeof(package) / sizeof(*package); i++) {
		const char *at = strstr(path, package[i]);

		if (at)
			return at;
	}
	return base_name(path);
}

uint32_t vc_site_asking(const struct vc_meta *m, uint32_t site)
{
	static const char *const own[] = { "torch::unwind::", "torch::CapturedTraceback::",
					   "gather_with_cpp" };
	uint32_t at = site, known = site;

	/* a few frames deep at most; above them the allocator follows */
	for (int depth = 0; depth < 8 && at && m && at < m->frames; depth++) {
		const struct vc_frame *f = &m->frame[at];
		const char *function = vc_label_text(m, f->function);
		bool mine = false;

		for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
			mine |= strstr(function, own[i]) != NULL;
		at = f->parent < at ? f->parent : 0;
		if (mine)
			known = at;
	}
	return known ? known : site;
}

static bool is_framework(const struct vc_meta *m, uint32_t site)
{
	static const char *const inside[] = {
		"/torch/",       "\\torch\\",   "site-packages",
		"dist-packages", "/lib/python", "\\lib\\",
		"<frozen",       "??",          "vramcast_null_" /* of a dry run */ };
	const char *file = vc_label_text(m, m->frame[site].file);

	if (!ends_with(file, ".py") && *file != '<')
		return true;
	for (size_t i = 0; i < sizeof(inside) / sizeof(*inside); i++)
		if (strstr(file, inside[i]))
			return true;
	return false;
}

/* "BmmBackward0" of "torch::autograd::generated::BmmBackward0::apply(...)"; NULL: not such a
 * frame. */
static const char *autograd_node(const char *function, size_t *n)
{
	const char *end = strstr(function, "::apply("), *start;

	if (!end || !strstr(function, "autograd"))
		return NULL;
	for (start = end; start > function && start[-1] != ':' && start[-1] != ' '; start--)
		;
	*n = (size_t)(end - start);
	return start;
}

static uint32_t find_shown(const struct vc_meta *m, uint32_t site)
{
	uint32_t node = 0, python = 0, steps = 0;
	size_t n;

	for (uint32_t at = site; at && at < m->frames && steps < 1000;
	     at = m->frame[at].parent, steps++) {
		if (!is_framework(m, at))
			return at;
		if (!node && autograd_node(vc_label_text(m, m->frame[at].function), &n))
			node = at;
		if (!python && ends_with(vc_label_text(m, m->frame[at].file), ".py"))
			python = at;
	}
	return node ? node : python ? python : site;
}

uint32_t vc_site_shown(const struct vc_meta *m, uint32_t site)
{
	_Atomic uint32_t *kept = vc_meta_site(m, site);
	uint32_t shown = kept ? atomic_load_explicit(kept, memory_order_relaxed) : 0;

	if (shown)
		return shown;
	shown = find_shown(m, site);
	if (kept)
		atomic_store_explicit(kept, shown, memory_order_relaxed);
	return shown;
}

void vc_site_text(const struct vc_meta *m, uint32_t site, char *buf, size_t cap)
{
	size_t n;

	*buf = '\0';
	if (!m || !site || site >= m->frames)
		return;
	const struct vc_frame *f = &m->frame[vc_site_shown(m, site)];
	const char *function = vc_label_text(m, f->function), *node = autograd_node(function, &n);
	if (node)
		snprintf(buf, cap, "%.*s", (int)n, node);
	else if (f->line)
		snprintf(buf, cap, "%s:%u %s", base_name(vc_label_text(m, f->file)), f->line,
			 function);
	else
		snprintf(buf, cap, "%s", function);
}
