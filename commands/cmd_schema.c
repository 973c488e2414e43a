/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_schema.c - vramcast schema: what --json of a command holds, as a JSON schema. The table is
 * schemas.def. */

#include "common/io.h"
#include "common/opt.h"
#include "common/param.h"

#define DIALECT "https://json-schema.org/draft/2020-12/schema"

struct shape { const char *name, *fields; };

#define VC_DOCUMENT(name, fields) { name, fields },
#define VC_OBJECT(name, fields)
static const struct shape documents[] = {
#include "commands/schemas.def"
};
#undef VC_DOCUMENT
#undef VC_OBJECT
#define VC_DOCUMENT(name, fields)
#define VC_OBJECT(name, fields) { name, fields },
static const struct shape objects[] = {
#include "commands/schemas.def"
};
enum { DOCUMENTS = sizeof(documents) / sizeof(*documents),
       OBJECTS = sizeof(objects) / sizeof(*objects) };

/* Types that are no objects. */
static const struct { const char *name, *schema; } plain[] = {
	{ "text", "\"type\": \"string\"" }, { "int", "\"type\": \"integer\"" },
	{ "real", "\"type\": \"number\"" }, { "bool", "\"type\": \"boolean\"" },
	{ "scalar", "\"type\": [\"string\", \"number\"]" },
};

/* The schema of a type, without braces around it. */
static void put_type(struct vc_output *out, const char *type, size_t n)
{
	if (type[n - 1] == '?') {
		vc_output_text(out, "\"anyOf\": [{");
		put_type(out, type, n - 1);
		vc_output_text(out, "}, {\"type\": \"null\"}]");
	} else if (*type == '[' || *type == '{') {
		vc_output_text(out, *type == '[' ? "\"type\": \"array\", \"items\": {" :
			       "\"type\": \"object\", \"additionalProperties\": {");
		put_type(out, type + 1, n - 2);
		vc_output_text(out, "}");
	} else {
		for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
			if (strlen(plain[i].name) == n && !strncmp(plain[i].name, type, n)) {
				vc_output_text(out, plain[i].schema);
				return;
			}
		vc_output_printf(out, "\"$ref\": \"#/$defs/%.*s\"", (int)n, type);
	}
}

/* One field of a row: "-name:type". A walk through a row goes through the rows that it takes over
 * ("+name") as well. */
struct field { const char *name, *type; size_t name_len, type_len; bool optional; };
struct walk { const char *at[4]; size_t depth; };

static const struct shape *object_of(const char *name, size_t n)
{
	for (size_t i = 0; i < OBJECTS; i++)
		if (strlen(objects[i].name) == n && !strncmp(objects[i].name, name, n))
			return &objects[i];
	return NULL;
}

static bool next_field(struct walk *w, struct field *f)
{
	const char *p = w->at[w->depth] + strspn(w->at[w->depth], " ");
	const struct shape *more;

	if (*p == '+' && w->depth < 3) {
		size_t n = strcspn(p + 1, " ");
		w->at[w->depth] = p + 1 + n;
		more = object_of(p + 1, n);
		if (more)
			w->at[++w->depth] = more->fields;
		return next_field(w, f);
	}
	if (*p == '|')
		return false; /* another document */
	if (!*p && w->depth) {
		w->depth--;
		return next_field(w, f);
	}
	f->optional = *p == '-';
	f->name = p + f->optional;
	f->name_len = strcspn(f->name, ":");
	if (!f->name[f->name_len])
		return false;
	f->type = f->name + f->name_len + 1;
	f->type_len = strcspn(f->type, " ");
	w->at[w->depth] = f->type + f->type_len;
	return true;
}

/* The members of a schema of an object; `in` is the white space in front of each. */
static void put_fields(struct vc_output *out, const char *fields, const char *in)
{
	struct field f, others = { 0 };
	struct walk w = { { fields }, 0 };
	const char *comma = "";

	vc_output_printf(out, "\"type\": \"object\",\n%s\"properties\": {", in);
	while (next_field(&w, &f)) {
		if (*f.name == '*') {
			others = f;
			continue;
		}
		vc_output_printf(out, "%s\n%s  \"%.*s\": {", comma, in, (int)f.name_len, f.name);
		put_type(out, f.type, f.type_len);
		vc_output_text(out, "}");
		comma = ",";
	}
	vc_output_printf(out, "\n%s},\n%s\"required\": [", in, in);
	w = (struct walk){ { fields }, 0 };
	for (comma = ""; next_field(&w, &f);) {
		if (f.optional || *f.name == '*')
			continue;
		vc_output_printf(out, "%s\"%.*s\"", comma, (int)f.name_len, f.name);
		comma = ", ";
	}
	vc_output_text(out, "]");
	if (others.name) {
		vc_output_printf(out, ",\n%s\"additionalProperties\": {", in);
		put_type(out, others.type, others.type_len);
		vc_output_text(out, "}");
	}
}

/* The document that a row names behind "|", after `last` of them; NULL: no more. */
static const struct shape *other_document(const char *fields, const struct shape *last)
{
	const char *p = strchr(fields, '|');
	bool found = !last;

	for (; p; p = strchr(p + 1, '|')) {
		size_t n = strcspn(p + 1, " ");
		const struct shape *d = documents;

		while (d < documents + DOCUMENTS &&
		       (strlen(d->name) != n || strncmp(d->name, p + 1, n) != 0))
			d++;
		if (found)
			return d;
		found = d == last;
	}
	return NULL;
}

/* Marks the objects that a row names, and those that they name. */
static void mark(const char *fields, bool wanted[OBJECTS])
{
	struct walk w = { { fields }, 0 };
	struct field f;

	for (const struct shape *d = NULL; (d = other_document(fields, d));)
		mark(d->fields, wanted);
	while (next_field(&w, &f)) {
		const char *type = f.type + strspn(f.type, "[{");
		const struct shape *o = object_of(type, strcspn(type, "]}? "));
		if (o && !wanted[o - objects]) {
			wanted[o - objects] = true;
			mark(o->fields, wanted);
		}
	}
}

static void put_document(struct vc_output *out, const struct shape *d)
{
	bool wanted[OBJECTS] = { false };
	const char *comma = "";

	mark(d->fields, wanted);
	vc_output_printf(out, "{\n  \"$schema\": \"%s\",\n  \"title\": \"vramcast.%s/1\",\n  ",
			 DIALECT, d->name);
	const struct shape *other = other_document(d->fields, NULL);
	if (other)
		vc_output_text(out, "\"anyOf\": [{\n  ");
	put_fields(out, d->fields, "  ");
	for (; other; other = other_document(d->fields, other)) {
		vc_output_text(out, "\n  }, {\n  ");
		put_fields(out, other->fields, "  ");
	}
	vc_output_printf(out, "%s,\n  \"$defs\": {",
			 strchr(d->fields, '|') ? "\n  }]" : "");
	for (size_t i = 0; i < OBJECTS; i++) {
		if (!wanted[i])
			continue;
		vc_output_printf(out, "%s\n    \"%s\": {\n      ", comma, objects[i].name);
		put_fields(out, objects[i].fields, "      ");
		vc_output_text(out, "\n    }");
		comma = ",";
	}
	vc_output_text(out, "\n  }\n}\n");
}

static int refuse(const char *name, struct vc_error *err)
{
	const char *names[DOCUMENTS], *near;
	char list[256] = "";
	size_t n = 0;

	for (size_t i = 0; i < DOCUMENTS; i++) {
		names[i] = documents[i].name;
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i ? ", " : "", names[i]);
	}
	near = name ? vc_nearest(name, names, DOCUMENTS) : NULL;
	if (near && !strcmp(near, name))
		return vc_fail(err, VC_EUSAGE, "one document at a time: 'vramcast schema %s' and "
			       "nothing behind it", name);
	if (near)
		return vc_fail(err, VC_EUSAGE, "'%s' writes no JSON document (did you mean %s?)",
			       name, near);
	return vc_fail(err, VC_EUSAGE, "which document? One of %s", list);
}

static int schema_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct shape *d = documents;
	struct vc_output *out;
	int r;

	while (d < documents + DOCUMENTS && !(argc == 1 && !strcmp(d->name, argv[0])))
		d++;
	if (d == documents + DOCUMENTS)
		return refuse(argc ? argv[0] : NULL, &con->err);
	out = vc_output_open("-", &con->err);
	if (!out)
		return con->err.status;
	put_document(out, d);
	r = vc_output_commit(out, &con->err);
	vc_output_close(out);
	return r;
}

const struct vc_command vc_command_schema = {
	.name = "schema", .operands = "COMMAND",
	.summary = "what --json of a command holds, as a JSON schema",
	.details = "Names and types of all fields (JSON Schema, draft 2020-12). What they mean is\n"
		   "in the documentation. Fields are only ever added: skip what you do not know.\n"
		   "Of sweep each line is a document; of dryrun it is the report.",
	.run = schema_run,
};
