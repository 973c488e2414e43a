/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - request traces: CSV with a header, or one JSON object per line. */
#include "simulator/serving/requests.h"

#include <ctype.h>
#include <strings.h>

#include "common/param.h"
#include "common/value.h"
#include "common/vec.h"

#define LONGEST_LINE (64u << 20)
#define MOST_TOKENS (1ull << 32)      /* of one request: no model takes more */
#define MOST_SECONDS 1e9              /* between the first and the last: 30 years */

enum { COLUMNS = 64 };

struct reading {
	struct vc_requests *r;
	uint64_t line, hash_block;
	struct vc_serve_request one; /* the request of this line */
	double second;               /* its arrival */
	bool has_prompt, has_output;
	struct vc_text *text;
	size_t texts, text_cap;
	double *seconds;             /* of all requests */
	size_t n, cap;
	struct vc_error *err;
};

int vc_requests_add(struct vc_requests *r, const struct vc_serve_request *what,
		    const struct vc_text *texts, size_t n, struct vc_error *err)
{
	VC_HAVE(vc_vec_room(r->at, r->cap, r->n + 1) &&
		vc_vec_room(r->text, r->text_cap, r->texts + n + 1), "the requests", err);
	r->at[r->n] = *what;
	r->at[r->n].first = r->texts;
	r->at[r->n++].texts = n;
	if (n)
		memcpy(&r->text[r->texts], texts, n * sizeof(*texts));
	r->texts += n;
	return VC_OK;
}

void vc_requests_fini(struct vc_requests *r)
{
	VC_FREE(r->at, r->text);
	*r = (struct vc_requests){ 0 };
}

/* ---- what a line says ---- */
static int bad(struct reading *g, const char *what)
{
	return vc_fail(g->err, VC_EFORMAT, "line %" PRIu64 ": %s", g->line, what);
}

/* FNV-1a: a text is known by its name. */
static uint64_t name_of(const char *text, size_t n, uint64_t kind)
{
	uint64_t h = 14695981039346656037u ^ kind;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)text[i]) * 1099511628211u;
	return h;
}

static int count_of(struct reading *g, double v, uint64_t *out)
{
	if (!(v >= 0) || v > (double)MOST_TOKENS || v != floor(v))
		return bad(g, "a number of tokens is a whole number from 0 to 2^32");
	*out = (uint64_t)v;
	return VC_OK;
}

static int add_text(struct reading *g, uint64_t name, uint64_t tokens)
{
	g->one.prompt += tokens;
	if (g->one.prompt > MOST_TOKENS)
		return bad(g, "a prompt has more than 2^32 tokens");
	VC_HAVE(vc_vec_room(g->text, g->text_cap, g->texts + 1), "a prompt", g->err);
	if (tokens)
		g->text[g->texts++] = (struct vc_text){ name, tokens };
	return VC_OK;
}

static void begin_line(struct reading *g)
{
	g->line++;
	g->one = (struct vc_serve_request){ .line = g->line };
	g->texts = 0;
	g->has_prompt = g->has_output = false;
	g->second = 0;
}

/* `prompt` tokens in all, of which shared texts may be a part; the rest is the request's own. */
static int end_line(struct reading *g, uint64_t prompt)
{
	char own[32];
	int n = snprintf(own, sizeof(own), "%" PRIu64, g->line);

	if (!g->has_prompt || !g->has_output)
		return bad(g, g->has_prompt ? "the number of output tokens is missing" :
					      "the number of prompt tokens is missing");
	if (prompt < g->one.prompt)
		return bad(g, "what the prompt shares is longer than the prompt");
	VC_TRY(add_text(g, name_of(own, (size_t)n, 1), prompt - g->one.prompt));
	if (!g->one.prompt)
		return bad(g, "a prompt without tokens");
	g->one.output += !g->one.output; /* the step that reads the prompt gives one token */
	if (!g->one.answer)
		g->one.answer = name_of(own, (size_t)n, 2);
	if (!(fabs(g->second) < 1e13))
		return bad(g, "that is no time of arrival");
	VC_HAVE(vc_vec_room(g->seconds, g->cap, g->n + 1), "the requests", g->err);
	g->seconds[g->n++] = g->second;
	return vc_requests_add(g->r, &g->one, g->text, g->texts, g->err);
}

/* ---- JSON lines ---- */
/* [["system", 512], ["question 7", 40]] */
static int json_texts(struct reading *g, const struct vc_value *prompt)
{
	for (const struct vc_value *v = prompt->first; v; v = v->next) {
		const struct vc_value *name = v->first, *tokens = name ? name->next : NULL;
		uint64_t n = 0;

		if (v->kind != VC_J_ARRAY)
			return bad(g, "a prompt is a number of tokens or a list of [\"name\", "
				   "tokens]");
		if (!tokens || tokens->next || (name->kind != VC_J_TEXT &&
		    name->kind != VC_J_NUMBER) || tokens->kind != VC_J_NUMBER)
			return bad(g, "a piece of a prompt is [\"name\", tokens]");
		VC_TRY(count_of(g, tokens->real, &n));
		VC_TRY(add_text(g, name_of(name->text, strlen(name->text), 0), n));
	}
	return VC_OK;
}

/* Each entry stands for the next hash_block tokens, and for all before them. */
static int json_hashes(struct reading *g, const struct vc_value *hashes)
{
	for (const struct vc_value *v = hashes->first; v; v = v->next) {
		if (v->kind != VC_J_NUMBER && v->kind != VC_J_TEXT)
			return bad(g, "hash_ids is a list of numbers");
		VC_TRY(add_text(g, name_of(v->text, strlen(v->text), 0), g->hash_block));
	}
	return VC_OK;
}

/* The last entry of hash_ids is cut where the prompt ends. */
static int cut_hashes(struct reading *g, uint64_t prompt)
{
	if (g->one.prompt <= prompt)
		return VC_OK;
	if (!g->texts || g->one.prompt - prompt >= g->text[g->texts - 1].tokens)
		return bad(g, "hash_ids has more entries than input_length has blocks "
			      "(--hash-block says how large one is)");
	g->text[g->texts - 1].tokens -= g->one.prompt - prompt;
	g->one.prompt = prompt;
	return VC_OK;
}

static int json_value(struct reading *g, const struct vc_value *v, uint64_t *prompt, bool *hashed)
{
	const char *key = v->key;
	bool number = v->kind == VC_J_NUMBER;

	if (!strcmp(key, "prompt") && v->kind == VC_J_ARRAY) {
		VC_TRY(json_texts(g, v));
		*prompt = g->one.prompt;
		g->has_prompt = true;
	} else if (!strcmp(key, "hash_ids") && v->kind == VC_J_ARRAY) {
		*hashed = true;
		return json_hashes(g, v);
	} else if (number && (!strcmp(key, "prompt") || !strcmp(key, "input_length"))) {
		g->has_prompt = true;
		return count_of(g, v->real, prompt);
	} else if (number && (!strcmp(key, "output") || !strcmp(key, "output_length"))) {
		g->has_output = true;
		return count_of(g, v->real, &g->one.output);
	} else if (number && (!strcmp(key, "arrival") || !strcmp(key, "timestamp"))) {
		/* published traces (Mooncake) have milliseconds under "timestamp" */
		g->second = *key == 'a' ? v->real : v->real / 1000;
	} else if (!strcmp(key, "answer") && (v->kind == VC_J_TEXT || number)) {
		g->one.answer = name_of(v->text, strlen(v->text), 0);
	}
	return VC_OK;
}

static int json_members(struct reading *g, const struct vc_value *line)
{
	uint64_t prompt = 0;
	bool hashed = false;

	if (line->kind != VC_J_OBJECT)
		return bad(g, "one JSON object per line is expected");
	for (const struct vc_value *v = line->first; v; v = v->next)
		VC_TRY(json_value(g, v, &prompt, &hashed));
	if (hashed)
		VC_TRY(cut_hashes(g, prompt));
	return end_line(g, prompt);
}

static int json_line(struct reading *g, const char *line, size_t n)
{
	struct vc_value *value = vc_value_parse(line, n, g->err);
	int r = value ? json_members(g, value) :
			vc_wrap(g->err, "line %" PRIu64, g->line);

	vc_value_free(value);
	return r;
}

/* ---- CSV ---- */
enum column { NOTHING, ARRIVAL, PROMPT, OUTPUT, SHARED, SHARED_TOKENS };

/* Ours; Azure's traces of 2023 and 2024; BurstGPT's; Mooncake's. */
static const struct { const char *head; enum column is; } heads[] = {
	{ "arrival", ARRIVAL },       { "timestamp", ARRIVAL },
	{ "prompt", PROMPT },         { "ContextTokens", PROMPT },
	{ "Request tokens", PROMPT }, { "input_length", PROMPT },
	{ "output", OUTPUT },         { "GeneratedTokens", OUTPUT },
	{ "Response tokens", OUTPUT },{ "output_length", OUTPUT },
	{ "shared", SHARED },         { "shared_tokens", SHARED_TOKENS },
};

struct table { enum column is[COLUMNS]; size_t n; bool has[SHARED_TOKENS + 1]; };

/* The next field of a line, without blanks around it; false: there is none. */
static bool next_field(char **at, char **field)
{
	char *end;

	if (!*at)
		return false;
	*field = *at;
	end = *at + strcspn(*at, ",");
	*at = *end ? end + 1 : NULL;
	while (isspace((unsigned char)**field) && *field < end)
		(*field)++;
	while (end > *field && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return true;
}

static int csv_head(struct reading *g, struct table *t, char *line)
{
	char *field;

	while (next_field(&line, &field) && t->n < COLUMNS) {
		for (size_t k = 0; k < sizeof(heads) / sizeof(*heads); k++)
			if (!strcasecmp(field, heads[k].head))
				t->is[t->n] = heads[k].is;
		t->has[t->is[t->n++]] = true;
	}
	if (t->has[PROMPT] && t->has[OUTPUT] && t->has[SHARED] == t->has[SHARED_TOKENS])
		return VC_OK;
	return bad(g, "the header must name prompt and output (ContextTokens and GeneratedTokens, "
		      "Request tokens and Response tokens), and shared only with shared_tokens");
}

/* Seconds, or a date and a time of day as in 2023-11-16 18:17:03.9799600. */
static int csv_time(struct reading *g, const char *s)
{
	int year, month, day, hour, minute, used = 0;
	double second;

	if (sscanf(s, "%d-%d-%d%*1[ T]%d:%d:%lf%n", &year, &month, &day, &hour, &minute, &second,
		   &used) == 6 && used && month >= 1 && month <= 12 && year > 1900 && year < 9999) {
		/* days from civil: March is the first month of the year */
		int y = year - (month <= 2), m = (month + 9) % 12;
		double days = 365.0 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day;

		g->second = ((days * 24 + hour) * 60 + minute) * 60 + second;
		return VC_OK;
	}
	return vc_parse_real(s, &g->second, NULL) == VC_OK ? VC_OK :
		bad(g, "an arrival is seconds, or as in 2023-11-16 18:17:03.98");
}

static int csv_count(struct reading *g, const char *field, uint64_t *out)
{
	double v;

	return vc_parse_real(field, &v, NULL) == VC_OK ? count_of(g, v, out) : count_of(g, -1, out);
}

static int csv_line(struct reading *g, const struct table *t, char *line)
{
	uint64_t prompt = 0, shared = 0, name = 0;
	char *field;
	bool named = false;

	for (size_t i = 0; next_field(&line, &field) && i < t->n; i++) {
		switch (t->is[i]) {
		case ARRIVAL: VC_TRY(csv_time(g, field)); break;
		case PROMPT: VC_TRY(csv_count(g, field, &prompt)); g->has_prompt = true; break;
		case OUTPUT:
			VC_TRY(csv_count(g, field, &g->one.output));
			g->has_output = true;
			break;
		case SHARED: name = name_of(field, strlen(field), 0); named = *field; break;
		case SHARED_TOKENS:
			if (*field)
				VC_TRY(csv_count(g, field, &shared));
			break;
		case NOTHING: break;
		}
	}
	if (named)
		VC_TRY(add_text(g, name, shared));
	return end_line(g, prompt);
}

/* ---- the file ---- */
static int read_line(struct reading *g, struct table *t, bool *json, char *line)
{
	const char *text;

	begin_line(g);
	line[strcspn(line, "\r")] = '\0';
	text = line + strspn(line, " \t");
	if (g->line == 1)
		*json = *text == '{';
	return !*text ? VC_OK : *json ? json_line(g, line, strlen(line)) :
	       t->n ? csv_line(g, t, line) : csv_head(g, t, line);
}

static int read_lines(struct reading *g, struct vc_input *in)
{
	struct table t = { .n = 0 };
	size_t cap = 0, n = 0;
	char *line = NULL;
	bool json = false;
	int r;

	while ((r = vc_input_line(in, LONGEST_LINE, &line, &cap, &n, g->err)) > 0 &&
	       !vc_input_truncated(in) && (r = read_line(g, &t, &json, line)) == VC_OK)
		;
	free(line);
	if (vc_input_truncated(in))
		return bad(g, "the compressed file ends too early");
	if (n <= LONGEST_LINE)
		return r;
	begin_line(g);
	return bad(g, "a line of more than 64 MiB: is this a trace of requests?");
}

VC_COMPARE(by_arrival, struct vc_serve_request,
	   VC_THEN(VC_ORDER(x->arrival, y->arrival), VC_ORDER(x->line, y->line)))

static int finish(struct reading *g)
{
	double first = g->n ? g->seconds[0] : 0;

	if (!g->n)
		return vc_fail(g->err, VC_EFORMAT, "no request was found");
	for (size_t i = 1; i < g->n; i++)
		first = g->seconds[i] < first ? g->seconds[i] : first;
	for (size_t i = 0; i < g->n; i++) {
		if (g->seconds[i] - first > MOST_SECONDS)
			return vc_fail(g->err, VC_EFORMAT, "line %" PRIu64 " comes more than 30 "
				       "years after the first request", g->r->at[i].line);
		g->r->at[i].arrival = (uint64_t)((g->seconds[i] - first) * 1e9 + 0.5);
	}
	vc_sort(g->r->at, g->r->n, sizeof(*g->r->at), by_arrival);
	return VC_OK;
}

int vc_requests_read(struct vc_requests *r, const char *path, uint64_t hash_block,
		     struct vc_error *err)
{
	struct reading g = { .r = r, .hash_block = hash_block, .err = err };
	struct vc_input *in = vc_input_open(path, err);
	int result = in ? read_lines(&g, in) : (int)err->status;

	if (result == VC_OK)
		result = finish(&g);
	if (in && result < 0)
		vc_wrap(err, "%s", path);
	VC_FREE(g.text, g.seconds);
	vc_input_close(in);
	return result;
}

uint64_t vc_mix(uint64_t h)
{
	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
	return h ^ (h >> 31);
}

uint64_t vc_requests_hash(const struct vc_requests *r, const struct vc_serve_request *rq,
			  struct vc_place *at, uint64_t tokens, uint64_t before)
{
	uint64_t h = before;

	while (tokens) {
		bool prompt = at->text < rq->texts;
		const struct vc_text *t = &r->text[rq->first + (prompt ? at->text : 0)];
		uint64_t rest = prompt ? t->tokens - at->offset : tokens;
		uint64_t run = rest < tokens ? rest : tokens;

		if (run) {
			h = vc_mix(h + (prompt ? t->name : rq->answer));
			h = vc_mix(h + at->offset * 0x9e3779b97f4a7c15u + run);
		}
		at->offset += run;
		tokens -= run;
		if (prompt && at->offset == t->tokens) {
			at->text++;
			at->offset = 0;
		}
	}
	return h;
}
