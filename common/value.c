/* SPDX-License-Identifier: Apache-2.0 */
/* value.c - see value.h */
#include "common/value.h"

/* What is deeper was refused by the reader (512 levels). */
static struct vc_value *read(struct vc_json *j, int token, const char *key, struct vc_error *err)
{
	bool plain = token == VC_J_TEXT || token == VC_J_NUMBER;
	size_t n = key ? strlen(key) + 1 : 0, len = plain ? j->len : 0;
	struct vc_value *v = token < 0 ? NULL : calloc(1, sizeof(*v) + n + len + 1), **end;
	int t = VC_J_OBJECT_END;

	if (!v) {
		if (token >= 0)
			vc_nomem(err, "a JSON document");
		return NULL;
	}
	v->kind = token;
	v->key = key ? memcpy(v + 1, key, n) : NULL;
	v->text = (char *)(v + 1) + n;
	if (plain)
		memcpy(v->text, j->text, len);
	v->real = token == VC_J_NUMBER ? j->real : 0;
	v->is_integer = token == VC_J_NUMBER && j->is_integer;
	v->integer = v->is_integer ? j->integer : 0;
	end = &v->first;
	while ((token == VC_J_OBJECT || token == VC_J_ARRAY) && (t = vc_json_next(j, err)) > 0 &&
	       t != VC_J_OBJECT_END && t != VC_J_ARRAY_END) {
		char *name = t == VC_J_KEY ? strdup(j->text) : NULL;

		if (t == VC_J_KEY)
			t = name ? vc_json_next(j, err) : vc_nomem(err, "a JSON document");
		*end = read(j, t, name, err);
		free(name);
		if (!*end) {
			t = -1;
			break;
		}
		end = &(*end)->next;
	}
	if (t > 0)
		return v;
	vc_value_free(v);
	return NULL;
}

struct vc_value *vc_value_read(struct vc_input *in, struct vc_error *err)
{
	struct vc_value *v = NULL;
	struct vc_json j;

	if (vc_json_open(&j, in, err) < 0)
		return NULL;
	v = read(&j, vc_json_next(&j, err), NULL, err);
	if (v && vc_json_next(&j, err) < 0) { /* something follows */
		vc_value_free(v);
		v = NULL;
	}
	vc_json_close(&j);
	return v;
}

struct vc_value *vc_value_load(const char *path, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);
	struct vc_value *v = in ? vc_value_read(in, err) : NULL;

	vc_input_close(in);
	return v;
}

struct vc_value *vc_value_parse(const char *text, size_t n, struct vc_error *err)
{
	struct vc_input *in = vc_input_memory(text, n, err);
	struct vc_value *v = in ? vc_value_read(in, err) : NULL;

	vc_input_close(in);
	return v;
}

void vc_value_free(struct vc_value *v)
{
	while (v) {
		struct vc_value *next = v->next;

		vc_value_free(v->first);
		free(v);
		v = next;
	}
}

const struct vc_value *vc_value_get(const struct vc_value *v, const char *key)
{
	for (v = v && v->kind == VC_J_OBJECT ? v->first : NULL; v; v = v->next)
		if (!strcmp(v->key, key))
			return v;
	return NULL;
}

bool vc_value_count(const struct vc_value *v, uint64_t *to)
{
	if (!v || !v->is_integer || v->integer < 0)
		return false;
	*to = (uint64_t)v->integer;
	return true;
}

const char *vc_value_text(const struct vc_value *v, const char *key)
{
	const struct vc_value *m = vc_value_get(v, key);

	return m && m->kind == VC_J_TEXT ? m->text : NULL;
}
