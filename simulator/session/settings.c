/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h */
#include "simulator/session/settings.h"

#include <ctype.h>

/* One "name:value" or "name:[...,...]": up to the comma that no bracket holds. */
static size_t option_length(const char *text)
{
	bool in_list = false;
	size_t n = 0;

	for (; text[n] && (in_list || text[n] != ','); n++)
		in_list = text[n] == '[' || (in_list && text[n] != ']');
	return n;
}

/* Blanks are no part of a name. */
static void option_name(const char *option, size_t n, char *name, size_t cap)
{
	size_t used = 0;

	for (size_t i = 0; i < n && option[i] != ':' && used + 1 < cap; i++)
		if (!isspace((unsigned char)option[i]))
			name[used++] = option[i];
	name[used] = '\0';
}

void vc_settings_known(struct vc_meta *meta, const struct vc_model_type *m, const char *version)
{
	size_t used = 0, cap = meta->conf ? strlen(meta->conf) + 1 : 0;
	char *kept = m && m->knows_option && cap ? calloc(1, cap) : NULL;
	char name[64];

	if (!kept)
		return;
	for (const char *at = meta->conf; *at;) {
		size_t n = option_length(at);

		option_name(at, n, name, sizeof(name));
		if (!name[0] || m->knows_option(name, version))
			used += (size_t)snprintf(kept + used, cap - used, "%s%.*s",
						 used ? "," : "", (int)n, at);
		else
			vc_meta_note(meta, "recorded with the setting \"%.*s\", which %s%s%s is "
				     "not known to have: it is ignored", (int)n, at,
				     m->owner ? m->owner : m->name, version ? " " : "",
				     version ? version : "");
		at += n + (at[n] == ',');
	}
	if (used + 1 < cap)
		vc_meta_set(&meta->conf, kept);
	free(kept);
}
