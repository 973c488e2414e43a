/* SPDX-License-Identifier: Apache-2.0 */
/* open.c - which decoder reads a file, and the parameters behind its name. */
#include <unistd.h>

#include "common/io.h"
#include "common/param.h"
#include "simulator/replay/source.h"

#define PROBE_MAX 65536 /* as far as any decoder looks to recognise a file */

static int not_mine(struct vc_input *in, const uint8_t *head, size_t n, struct vc_error *err)
{
	static const char lfs[] = "version https://git-lfs";
	char known[256] = "";
	size_t used = 0;

	if (n >= sizeof(lfs) - 1 && !memcmp(head, lfs, sizeof(lfs) - 1))
		return vc_fail(err, VC_EFORMAT, "%s is a Git LFS pointer, not the file itself; "
			       "fetch it with git lfs pull", vc_input_name(in));
	for (size_t i = 0; vc_sources[i]; i++) {
		size_t len = strlen(vc_sources[i]->name);

		if (used + len + 3 > sizeof(known))
			break;
		memcpy(known + used, ", ", 2);
		memcpy(known + used + 2, vc_sources[i]->name, len + 1);
		used += len + 2;
	}
	return vc_fail(err, VC_EFORMAT, "%s is not a trace that vramcast can read (known: %s)",
		       vc_input_name(in), used ? known + 2 : "none");
}

static const struct vc_source_type *recognise(struct vc_input *in, struct vc_error *err)
{
	const struct vc_source_type *best = NULL;
	const uint8_t *head;
	int most = 0, bits;
	size_t n;

	head = vc_input_peek(in, 64, &n, err);
	if (!head)
		return NULL;
	if (!n) {
		vc_fail(err, VC_EFORMAT, "%s is %s", vc_input_name(in), vc_input_truncated(in) ?
			"cut off before the first byte of data" : "empty");
		return NULL;
	}
	for (size_t i = 0; vc_sources[i]; i++) {
		bits = vc_sources[i]->probe ? vc_sources[i]->probe(in) : 0;
		if (bits > most) {
			most = bits;
			best = vc_sources[i];
		}
	}
	if (!best) { /* damage near the beginning may be why nobody knew it */
		head = vc_input_peek(in, PROBE_MAX, &n, err);
		if (head)
			not_mine(in, head, n, err);
	}
	return best;
}

struct vc_source *vc_source_input(struct vc_input *in, struct vc_error *err)
{
	const struct vc_source_type *type = recognise(in, err);
	struct vc_source *s = type ? vc_source_new(type, err) : NULL;

	if (!s) {
		vc_input_close(in);
		return NULL;
	}
	s->input = in;
	s->reads = vc_source_open;
	s->meta = vc_meta_new(err);
	if (s->meta) {
		vc_meta_set(&s->meta->path, vc_input_name(in));
		vc_meta_set(&s->meta->source, type->name);
		if ((!type->params || !vc_params_parse(type->params, s->config, NULL, err)) &&
		    (!type->open || !type->open(s, err)))
			return s;
	}
	vc_source_free(s);
	return NULL;
}

static struct vc_source *open_input(const char *path, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);
	struct vc_source *s = in ? vc_source_input(in, err) : NULL;

	if (s)
		vc_meta_set(&s->meta->path, path);
	return s;
}

/* The '@' of "FILE@batch=8,seq=512", or NULL when the text after it is not of that form. */
static char *params_of(char *path)
{
	char *at = strrchr(path, '@'), *p, *value;
	double x;

	if (!at || at == path)
		return NULL;
	for (p = at + 1; ; p = value + strcspn(value, ",") + 1) {
		size_t name = strspn(
			p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.");
		char text[64];
		size_t len;

		if (!name || p[name] != '=')
			return NULL;
		value = p + name + 1;
		len = strcspn(value, ",");
		if (!len || len >= sizeof(text))
			return NULL;
		memcpy(text, value, len);
		text[len] = '\0';
		if (vc_parse_real(text, &x, NULL))
			return NULL;
		if (!value[len])
			return at;
	}
}

/* What the recording says of itself holds: a trace with another value would be another one. */
static int set_params(struct vc_meta *m, char *text, struct vc_error *err)
{
	while (text) {
		char *comma = strchr(text, ','), *equals = strchr(text, '=');
		double x = 0;

		if (comma)
			*comma = '\0';
		*equals = '\0';
		if (vc_parse_amount(equals + 1, &x, err) < 0)
			return vc_wrap(err, "@%s=%s", text, equals + 1);
		for (size_t i = 0; i < m->params; i++)
			if (!strcmp(m->param[i].name, text) && m->param[i].value != x)
				return vc_fail(err, VC_EUSAGE, "%s says itself that it was "
					       "recorded with %s=%g, not %g: leave @%s away",
					       m->path ? m->path : "the recording", text,
					       m->param[i].value, x, text);
		vc_meta_param(m, text, x);
		text = comma ? comma + 1 : NULL;
	}
	return VC_OK;
}

struct vc_source *vc_source_open(const char *path, struct vc_error *err)
{
	char *copy = strdup(path), *at;
	struct vc_source *s;

	if (!copy) {
		vc_nomem(err, "a source");
		return NULL;
	}
	at = access(path, F_OK) ? params_of(copy) : NULL;
	if (at)
		*at = '\0';
	s = open_input(copy, err);
	if (s && at && set_params(s->meta, at + 1, err) < 0) {
		vc_source_free(s);
		s = NULL;
	}
	free(copy);
	return s;
}
