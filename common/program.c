/* SPDX-License-Identifier: Apache-2.0 */
/* program.c - see program.h */
#include "common/program.h"

#include "common/vec.h"

enum { LARGEST = 64 << 20 }; /* of a file that is hashed: what somebody wrote, no data */

static const struct { const char *key; size_t at; bool run; } texts[] = {
	{ "folder", offsetof(struct vc_program, folder), true },
	{ "interpreter", offsetof(struct vc_program, interpreter), true },
	{ "revision", offsetof(struct vc_program, revision), false },
};
static const struct { const char *key; size_t at; bool run, named; } lists[] = {
	{ "arguments", offsetof(struct vc_program, argument), true, false },
	{ "options", offsetof(struct vc_program, option), true, false },
	{ "environment", offsetof(struct vc_program, environment), true, true },
	{ "files", offsetof(struct vc_program, file), false, true },
	{ "packages", offsetof(struct vc_program, package), false, true },
};
enum { TEXTS = sizeof(texts) / sizeof(*texts), LISTS = sizeof(lists) / sizeof(*lists) };

static char **text_of(const struct vc_program *p, size_t i)
{
	return (char **)((char *)(uintptr_t)p + texts[i].at);
}

static struct vc_texts *list_of(const struct vc_program *p, size_t i)
{
	return (struct vc_texts *)((char *)(uintptr_t)p + lists[i].at);
}

static void set(char **field, const char *text)
{
	char *copy = text ? strdup(text) : NULL;

	free(*field);
	*field = copy;
}

struct vc_program *vc_program_new(struct vc_error *err)
{
	struct vc_program *p = calloc(1, sizeof(*p));

	if (!p)
		vc_nomem(err, "a program");
	return p;
}

void vc_program_free(struct vc_program *p)
{
	for (size_t i = 0; p && i < LISTS; i++) {
		struct vc_texts *t = list_of(p, i);

		for (size_t k = 0; k < t->n; k++)
			VC_FREE(t->at[k].name, t->at[k].text);
		free(t->at);
	}
	for (size_t i = 0; p && i < TEXTS; i++)
		free(*text_of(p, i));
	free(p);
}

const char *vc_texts_find(const struct vc_texts *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->at[i].name && !strcmp(t->at[i].name, name))
			return t->at[i].text;
	return NULL;
}

int vc_texts_add(struct vc_texts *t, const char *name, const char *text, struct vc_error *err)
{
	struct vc_named_text new = { name ? strdup(name) : NULL, strdup(text) };

	for (size_t i = 0; name && new.name && new.text && i < t->n; i++)
		if (!strcmp(t->at[i].name, name)) {
			VC_FREE(new.name, t->at[i].text);
			t->at[i].text = new.text;
			return VC_OK;
		}
	if ((name && !new.name) || !new.text || !vc_vec_one(t->at, t->n)) {
		VC_FREE(new.name, new.text);
		return vc_nomem(err, "a program");
	}
	t->at[t->n++] = new;
	return VC_OK;
}

struct vc_program *vc_program_copy(const struct vc_program *p, struct vc_error *err)
{
	struct vc_program *to = vc_program_new(err);
	int r = to ? VC_OK : VC_ENOMEM;

	for (size_t i = 0; r == VC_OK && i < TEXTS; i++)
		set(text_of(to, i), *text_of(p, i));
	for (size_t i = 0; i < LISTS; i++) {
		const struct vc_texts *t = list_of(p, i);

		for (size_t k = 0; r == VC_OK && k < t->n; k++)
			r = vc_texts_add(list_of(to, i), t->at[k].name, t->at[k].text, err);
	}
	if (r == VC_OK)
		return to;
	vc_program_free(to);
	return NULL;
}

/* ---- writing ---- */

static void quote(struct vc_output *o, const char *text)
{
	vc_json_quote(o, text, strlen(text));
}

void vc_program_write(struct vc_output *o, const struct vc_program *p, bool run)
{
	const char *comma = "";

	vc_output_text(o, "{");
	for (size_t i = 0; i < TEXTS; i++) {
		if (!*text_of(p, i) || (run && !texts[i].run))
			continue;
		vc_output_printf(o, "%s\"%s\": ", comma, texts[i].key);
		quote(o, *text_of(p, i));
		comma = ", ";
	}
	for (size_t i = 0; i < LISTS; i++) {
		const struct vc_texts *t = list_of(p, i);

		if (!t->n || (run && !lists[i].run))
			continue;
		vc_output_printf(o, "%s\"%s\": %s", comma, lists[i].key,
				 lists[i].named ? "{" : "[");
		for (size_t k = 0; k < t->n; k++) {
			vc_output_text(o, k ? ", " : "");
			if (lists[i].named) {
				quote(o, t->at[k].name);
				vc_output_text(o, ": ");
			}
			quote(o, t->at[k].text);
		}
		vc_output_text(o, lists[i].named ? "}" : "]");
		comma = ", ";
	}
	vc_output_text(o, "}");
}

/* ---- reading ---- */

static int read_texts(struct vc_texts *t, struct vc_json *j, bool named, struct vc_error *err)
{
	int token, r = VC_OK, end = named ? VC_J_OBJECT_END : VC_J_ARRAY_END;
	char *name = NULL;

	while (r == VC_OK && (token = vc_json_next(j, err)) > 0 && token != end) {
		if (token == VC_J_KEY)
			set(&name, j->text);
		else if (token == VC_J_TEXT && (!named || name))
			r = vc_texts_add(t, named ? name : NULL, j->text, err);
		else
			r = vc_json_skip(j, token, err);
	}
	free(name);
	return r ? r : token < 0 ? token : VC_OK;
}

static int read_field(struct vc_program *p, struct vc_json *j, struct vc_error *err)
{
	size_t text = 0, list = 0;
	int token;

	while (text < TEXTS && strcmp(texts[text].key, j->text))
		text++;
	while (list < LISTS && strcmp(lists[list].key, j->text))
		list++;
	token = vc_json_next(j, err);
	if (token < 0)
		return token;
	if (text < TEXTS && token == VC_J_TEXT)
		set(text_of(p, text), j->text);
	else if (list < LISTS && token == (lists[list].named ? VC_J_OBJECT : VC_J_ARRAY))
		return read_texts(list_of(p, list), j, lists[list].named, err);
	else
		return vc_json_skip(j, token, err);
	return VC_OK;
}

int vc_program_read(struct vc_program *p, struct vc_json *j, struct vc_error *err)
{
	int token;

	while ((token = vc_json_next(j, err)) == VC_J_KEY)
		VC_TRY(read_field(p, j, err));
	return token < 0 ? token : VC_OK;
}

int vc_program_load(struct vc_program *p, const char *path, struct vc_error *err)
{
	struct vc_input *in = vc_input_raw(path, err);
	struct vc_json j;
	int r;

	if (!in)
		return VC_EIO;
	r = vc_json_open(&j, in, err);
	if (r == VC_OK) {
		int token = vc_json_next(&j, err);

		r = token == VC_J_OBJECT ? vc_program_read(p, &j, err) :
		    token < 0		 ? token :
			    vc_fail(err, VC_EFORMAT, "%s describes no program", path);
		vc_json_close(&j);
	}
	vc_input_close(in);
	return r;
}

int vc_program_told(struct vc_program *p, const char *path, struct vc_error *err)
{
	FILE *f = fopen(path, "r");
	char line[4400], hash[17], *text;
	int r = VC_OK;

	while (f && r == VC_OK && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		text = strchr(line, ' ');
		if (text && !strncmp(line, "file ", 5) && vc_program_hash(text + 1, hash)) {
			r = vc_texts_add(&p->file, text + 1, hash, err);
		} else if (text && !strncmp(line, "package ", 8) && strchr(text + 1, ' ')) {
			char *version = strchr(text + 1, ' ');

			*version++ = '\0';
			r = vc_texts_add(&p->package, text + 1, version, err);
		}
	}
	if (f)
		fclose(f);
	return r;
}

/* ---- files ---- */

/* FNV-1a, because it is one that a file may hold: it tells an edited file from the one that ran,
 * and guards against nothing else. */
uint64_t vc_program_hash_bytes(const void *bytes, size_t n, uint64_t h)
{
	const unsigned char *p = bytes;

	h = h ? h : UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	return h;
}

bool vc_program_hash(const char *path, char out[17])
{
	FILE *f = fopen(path, "rb");
	unsigned char part[16384];
	uint64_t h = 0, all = 0;
	size_t n;
	bool good;

	if (!f)
		return false;
	while ((n = fread(part, 1, sizeof(part), f)) > 0 && (all += n) <= LARGEST)
		h = vc_program_hash_bytes(part, n, h);
	good = !ferror(f) && all <= LARGEST;
	fclose(f);
	snprintf(out, 17, "%016" PRIx64, vc_program_hash_bytes("", 0, h));
	return good;
}

/* ---- values ---- */

char *vc_program_put(const char *text, const char *name, const char *value)
{
	char mark[80];
	size_t m = (size_t)snprintf(mark, sizeof(mark), "{%.60s}", name), n = 0, marks = 1;
	size_t each = strlen(value);

	for (const char *c = text; (c = strchr(c, '{')); c++)
		marks++;
	char *out = malloc(strlen(text) + marks * each + 1);
	while (out && *text) {
		if (!strncmp(text, mark, m)) {
			memcpy(out + n, value, each);
			n += each;
			text += m;
		} else {
			out[n++] = *text++;
		}
	}
	if (out)
		out[n] = '\0';
	return out;
}

char *vc_program_fill(const char *text, const char *name, double value)
{
	char number[32];

	snprintf(number, sizeof(number),
		 fabs(value) < 1e15 && value == floor(value) ? "%.0f" : "%.17g", value);
	return vc_program_put(text, name, number);
}

bool vc_program_takes(const struct vc_program *p, const char *name)
{
	char mark[80];

	snprintf(mark, sizeof(mark), "{%.60s}", name);
	for (size_t i = 0; i < p->argument.n; i++)
		if (strstr(p->argument.at[i].text, mark))
			return true;
	return false;
}
