/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_tools.c - see mcp_tools.h.
 *
 * A tool is a command of ours, which mcp_jobs.c runs in a process of its own. */
#include "commands/mcp_tools.h"

#include "common/json.h"
#include "common/vec.h"

enum how { OPERAND, SEVERAL, INPUT, PROGRAM }; /* a word; words; standard input; words behind -- */
struct operand { const char *name, *help; enum how how; };

struct tool {
	const char *name, *about;
	const char *options; /* of the command, those that make sense here */
	struct operand operands[2];
	bool writes;         /* runs a program of the user's, which may do anything */
};

#define TRACE "a recording (.vct), a PyTorch memory snapshot (.pickle) or a profiler trace"
static const struct tool tools[] = {
	{ "sim", "Does a recorded training run fit into a GPU's memory, with anything changed? "
		 "Says the verdict, the peak, who holds the memory and what would help. Several "
		 "recordings at different values (a.vct@batch=8) and 'set' extrapolate.",
	  "gpu capacity set transform conf torch model used context assume device fail-above "
	  "no-advice json", { { "path", TRACE, SEVERAL } }, false },
	{ "fit", "The largest batch size (or other recorded parameter) that fits a card, from two "
		 "or more recordings made at different values, as in a.vct@batch=8.",
	  "find gpu capacity set transform conf torch target multiple json",
	  { { "path", TRACE ", with @name=value behind it", SEVERAL } }, false },
	{ "explain", "What a CUDA out-of-memory message means, and what to try. No recording.",
	  "json", { { "text", "the message, or a whole log with it", INPUT } }, false },
	{ "diff", "What changed between two recordings: peaks, first difference, lines of code.",
	  "fail-above sites json", { { "a", TRACE, OPERAND }, { "b", TRACE, OPERAND } }, false },
	{ "dryrun", "Runs a PyTorch training script on a GPU that is not there, and says whether "
		    "it fits. The script really runs, without computing; it needs a CUDA build of "
		    "PyTorch.",
	  "gpu capacity ranks world steps output param no-record",
	  { { "command", "the program and its arguments", PROGRAM } }, true },
};
enum { TOOLS = sizeof(tools) / sizeof(*tools) };

/* ---- messages ---- */

static int keep(struct vc_mcp_message *m, const char *path, const struct vc_json *j, int token,
		struct vc_error *err)
{
	bool plain = token == VC_J_TEXT || token == VC_J_NUMBER;

	VC_HAVE(vc_vec_room(m->at, m->cap, m->n + 1), "a message", err);
	m->at[m->n] = (struct vc_mcp_value){ strdup(path), strdup(plain ? j->text : ""), token };
	m->n++;
	VC_HAVE(m->at[m->n - 1].path && m->at[m->n - 1].text, "a message", err);
	return VC_OK;
}

/* The value that begins with `token`, and all within it. Arguments are two levels deep; what is
 * deeper than the path has room for is gone past. */
static int walk(struct vc_mcp_message *m, struct vc_json *j, int token, const char *path,
		struct vc_error *err)
{
	char below[256];

	VC_TRY(keep(m, path, j, token, err));
	if (token != VC_J_OBJECT && token != VC_J_ARRAY)
		return VC_OK;
	if (strlen(path) > sizeof(below) - 100)
		return vc_json_skip(j, token, err);
	for (unsigned i = 0;; i++) {
		int t = vc_json_next(j, err);
		if (t < 0 || t == VC_J_OBJECT_END || t == VC_J_ARRAY_END)
			return t < 0 ? t : VC_OK;
		if (token == VC_J_ARRAY)
			snprintf(below, sizeof(below), "%s[%u]", path, i);
		else
			snprintf(below, sizeof(below), "%s%s%.64s", path, *path ? "." : "",
				 j->text);
		if (token == VC_J_OBJECT)
			t = vc_json_next(j, err);
		VC_TRY(t);
		VC_TRY(walk(m, j, t, below, err));
	}
}

int vc_mcp_read(struct vc_mcp_message *m, const char *line, size_t n, struct vc_error *err)
{
	struct vc_input *in = vc_input_memory(line, n, err);
	struct vc_json j;
	int r = in ? vc_json_open(&j, in, err) : err->status;

	*m = (struct vc_mcp_message){ 0 };
	if (r == VC_OK) {
		r = vc_json_next(&j, err);
		if (r == VC_J_END)
			r = vc_fail(err, VC_EFORMAT, "an empty message");
		if (r > 0)
			r = walk(m, &j, r, "", err);
		if (r == VC_OK && vc_json_next(&j, err) != VC_J_END)
			r = vc_fail(err, VC_EFORMAT, "more than one message in a line");
		vc_json_close(&j);
	}
	vc_input_close(in);
	return r;
}

void vc_mcp_fini(struct vc_mcp_message *m)
{
	for (size_t i = 0; i < m->n; i++)
		VC_FREE(m->at[i].path, m->at[i].text);
	free(m->at);
	*m = (struct vc_mcp_message){ 0 };
}

const struct vc_mcp_value *vc_mcp_find(const struct vc_mcp_message *m, const char *path)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->at[i].path, path))
			return &m->at[i];
	return NULL;
}

/* ---- what a tool takes ---- */

static bool is_offered(const struct tool *t, const char *option)
{
	size_t n = strlen(option);

	for (const char *p = t->options; (p = strstr(p, option)); p += n)
		if ((p == t->options || p[-1] == ' ') && (!p[n] || p[n] == ' '))
			return true;
	return false;
}

/* The option of the tool's command, or NULL. */
static const struct vc_option *option_of(const struct tool *t, const struct vc_console *con,
					 const char *name)
{
	const struct vc_command *c = vc_command_find(con, t->name);

	if (!is_offered(t, name))
		return NULL;
	for (size_t k = 0; c->options[k]; k++)
		for (const struct vc_option *o = c->options[k]; o->name; o++)
			if (!strcmp(o->name, name))
				return o;
	return NULL;
}

static void property(struct vc_output *out, bool first, const char *name, const char *type,
		     const char *help)
{
	vc_output_printf(out, "%s\"%s\":{%s,\"description\":", first ? "" : ",", name, type);
	vc_json_quote(out, help, strlen(help));
	vc_output_text(out, "}");
}

#define WORDS "\"type\":\"array\",\"items\":{\"type\":\"string\"}"

static void option_property(struct vc_output *out, const struct vc_option *o, bool first)
{
	static const char *const types[] = {
		[VC_O_FLAG] = "\"type\":\"boolean\"", [VC_O_NOT] = "\"type\":\"boolean\"",
		[VC_O_TEXT] = "\"type\":\"string\"", [VC_O_FILE] = "\"type\":\"string\"",
		[VC_O_FILES] = WORDS, [VC_O_SIZE] = "\"type\":\"string\"",
		[VC_O_UINT] = "\"type\":\"integer\",\"minimum\":0",
		[VC_O_JOBS] = "\"type\":\"integer\",\"minimum\":0",
		[VC_O_REAL] = "\"type\":\"number\"",
		[VC_O_LIST] = WORDS };
	char help[512];

	snprintf(help, sizeof(help), "%s%s%s", o->arg ? o->arg : "", o->arg ? ": " : "", o->help);
	property(out, first, o->name, types[o->type], help);
}

static void input_schema(struct vc_output *out, const struct tool *t, const struct vc_console *con)
{
	const struct vc_command *c = vc_command_find(con, t->name);

	vc_output_text(out, "{\"type\":\"object\",\"properties\":{");
	for (int i = 0; i < 2 && t->operands[i].name; i++) {
		const struct operand *p = &t->operands[i];
		bool words = p->how == SEVERAL || p->how == PROGRAM;
		property(out, !i, p->name,
			 words ? WORDS ",\"minItems\":1" : "\"type\":\"string\"", p->help);
	}
	for (size_t k = 0; c->options[k]; k++)
		for (const struct vc_option *o = c->options[k]; o->name; o++)
			if (is_offered(t, o->name))
				option_property(out, o, false);
	property(out, false, VC_MCP_TIMEOUT, "\"type\":\"number\",\"exclusiveMinimum\":0",
		 "seconds after which the call is ended [600]");
	vc_output_text(out, "},\"required\":[");
	for (int i = 0; i < 2 && t->operands[i].name; i++)
		vc_output_printf(out, "%s\"%s\"", i ? "," : "", t->operands[i].name);
	vc_output_text(out, "],\"additionalProperties\":false}");
}

void vc_mcp_tools(struct vc_output *out, const struct vc_console *con)
{
	vc_output_text(out, "[");
	for (size_t i = 0; i < TOOLS; i++) {
		vc_output_printf(out, "%s{\"name\":\"%s\",\"description\":", i ? "," : "",
				 tools[i].name);
		vc_json_quote(out, tools[i].about, strlen(tools[i].about));
		vc_output_text(out, ",\"inputSchema\":");
		input_schema(out, &tools[i], con);
		vc_output_printf(out, ",\"annotations\":{\"readOnlyHint\":%s,"
				 "\"openWorldHint\":%s}}",
				 tools[i].writes ? "false" : "true",
				 tools[i].writes ? "true" : "false");
	}
	vc_output_text(out, "]");
}

/* ---- from arguments to a command line ---- */

#define ARGUMENTS "params.arguments"

struct line { char **at; size_t n, cap; const char *input; };

/* "--gpu=" and "t4" make a word; so a value that begins with a dash is no option. */
static int word(struct line *l, const char *front, const char *name, const char *text,
		struct vc_error *err)
{
	size_t n = strlen(front) + strlen(name) + strlen(text) + 2;
	char *made = malloc(n);

	if (!made || !vc_vec_room(l->at, l->cap, l->n + 2)) {
		free(made);
		return vc_nomem(err, "a command line");
	}
	snprintf(made, n, "%s%s%s%s", front, name, *name && *text ? "=" : "", text);
	l->at[l->n++] = made;
	l->at[l->n] = NULL;
	return VC_OK;
}

static bool is_list(const struct vc_option *o)
{
	return o->type == VC_O_LIST || o->type == VC_O_FILES;
}

static bool is_plain(const struct vc_mcp_value *v)
{
	return v->token == VC_J_TEXT || v->token == VC_J_NUMBER;
}

/* The value itself, or each element of an array, behind the option of that name ("": none). */
static int words(struct line *l, const struct vc_mcp_message *m, const struct vc_mcp_value *v,
		 const char *option, struct vc_error *err)
{
	const char *front = *option ? "--" : "";
	size_t n = strlen(v->path);

	if (v->token != VC_J_ARRAY)
		return word(l, front, option, v->text, err);
	for (size_t i = 0; i < m->n; i++) {
		const struct vc_mcp_value *e = &m->at[i];
		if (strncmp(e->path, v->path, n) || e->path[n] != '[')
			continue;
		if (!is_plain(e))
			return vc_fail(err, VC_EUSAGE, "%s wants a text", e->path);
		VC_TRY(word(l, front, option, e->text, err));
	}
	return VC_OK;
}

static int option_words(struct line *l, const struct vc_mcp_message *m,
			const struct vc_mcp_value *v, const struct vc_option *o,
			struct vc_error *err)
{
	const char *wants = "a text";

	if (o->type == VC_O_FLAG || o->type == VC_O_NOT) {
		if (v->token == VC_J_TRUE)
			return word(l, "--", o->name, "", err);
		if (v->token == VC_J_FALSE)
			return VC_OK;
		wants = "true or false";
	} else if (is_plain(v) || (is_list(o) && v->token == VC_J_ARRAY)) {
		return words(l, m, v, o->name, err);
	} else if (is_list(o)) {
		wants = "a list of texts";
	}
	return vc_fail(err, VC_EUSAGE, "the argument '%s' wants %s", o->name, wants);
}

static const struct operand *operand_of(const struct tool *t, const char *name)
{
	for (int i = 0; i < 2 && t->operands[i].name; i++)
		if (!strcmp(t->operands[i].name, name))
			return &t->operands[i];
	return NULL;
}

/* The options first: they are the members of "arguments" that are no operands. */
static int all_options(struct line *l, const struct vc_mcp_message *m, const struct tool *t,
		       const struct vc_console *con, struct vc_error *err)
{
	size_t n = strlen(ARGUMENTS ".");

	for (size_t i = 0; i < m->n; i++) {
		const char *name = m->at[i].path + n;
		const struct vc_option *o;
		if (strncmp(m->at[i].path, ARGUMENTS ".", n) || strpbrk(name, ".[") ||
		    operand_of(t, name) || !strcmp(name, VC_MCP_TIMEOUT))
			continue;
		o = option_of(t, con, name);
		if (!o)
			return vc_fail(err, VC_EUSAGE, "the tool %s has no argument '%s'", t->name,
				       name);
		VC_TRY(option_words(l, m, &m->at[i], o, err));
	}
	return VC_OK;
}

/* A text that is a command line becomes the words that a shell would make of it. */
static int split(struct line *l, const char *text, struct vc_error *err)
{
	char *made = malloc(strlen(text) + 1);
	const char *p = text;
	int r = made ? VC_OK : vc_nomem(err, "a command line");

	for (p += strspn(p, " \t\n"); r == VC_OK && *p; p += strspn(p, " \t\n")) {
		size_t n = 0;
		char quote = 0;

		for (; *p && (quote || !strchr(" \t\n", *p)); p++) {
			if (quote ? *p == quote : *p == '\'' || *p == '"')
				quote = quote ? 0 : *p;
			else if (*p == '\\' && quote != '\'' && p[1])
				made[n++] = *++p;
			else
				made[n++] = *p;
		}
		made[n] = '\0';
		r = quote ? vc_fail(err, VC_EUSAGE, "the argument 'command' ends within quotes") :
			    word(l, "", "", made, err);
	}
	free(made);
	return r;
}

static int all_operands(struct line *l, const struct vc_mcp_message *m, const struct tool *t,
			struct vc_error *err)
{
	char path[64];

	VC_TRY(word(l, "--", "", "", err));
	for (int i = 0; i < 2 && t->operands[i].name; i++) {
		const struct operand *p = &t->operands[i];
		const struct vc_mcp_value *v;
		bool list = p->how == SEVERAL || p->how == PROGRAM;

		snprintf(path, sizeof(path), ARGUMENTS ".%s", p->name);
		v = vc_mcp_find(m, path);
		if (!v || (v->token != VC_J_TEXT && !(list && v->token == VC_J_ARRAY)))
			return vc_fail(err, VC_EUSAGE, "the argument '%s' is missing, or is no %s",
				       p->name, list ? "list of texts" : "text");
		if (p->how == INPUT)
			l->input = v->text;
		else if (p->how == PROGRAM && v->token == VC_J_TEXT)
			VC_TRY(split(l, v->text, err));
		else
			VC_TRY(words(l, m, v, "", err));
	}
	return VC_OK;
}

/* ---- the call ---- */

/* Seconds that a call may take: its argument, else ten minutes. */
static int read_timeout(const struct vc_mcp_message *m, struct vc_mcp_call *c, struct vc_error *err)
{
	const struct vc_mcp_value *v = vc_mcp_find(m, ARGUMENTS "." VC_MCP_TIMEOUT);
	char *end = NULL;

	c->seconds = 600;
	if (!v)
		return VC_OK;
	c->seconds = v->token == VC_J_NUMBER ? strtod(v->text, &end) : 0;
	if (!(c->seconds > 0 && c->seconds <= 86400))
		return vc_fail(err, VC_EUSAGE, "the argument '" VC_MCP_TIMEOUT "' wants seconds, "
			       "up to a day");
	return VC_OK;
}

int vc_mcp_call_read(struct vc_mcp_call *c, const struct vc_mcp_message *m,
		     const struct vc_console *con, struct vc_error *err)
{
	const struct vc_mcp_value *name = vc_mcp_find(m, "params.name"),
				  *json = vc_mcp_find(m, ARGUMENTS ".json");
	const struct tool *t = tools;
	struct line l = { 0 };
	int r;

	*c = (struct vc_mcp_call){ 0 };
	while (t < tools + TOOLS && !(name && !strcmp(t->name, name->text)))
		t++;
	if (t == tools + TOOLS)
		return vc_fail(err, VC_EUSAGE, "there is no tool '%s'", name ? name->text : "");
	r = read_timeout(m, c, err);
	r = r < 0 ? r : word(&l, "vramcast", "", "", err);
	r = r < 0 ? r : word(&l, t->name, "", "", err);
	/* of a program its narration is its answer, and a report says whether there was a run */
	r = r < 0 ? r : t->writes ? word(&l, "--", "report", VC_MCP_REPORT, err) :
				    word(&l, "-q", "", "", err);
	r = r < 0 ? r : all_options(&l, m, t, con, err);
	r = r < 0 ? r : all_operands(&l, m, t, err);
	c->input = r == VC_OK && l.input ? strdup(l.input) : NULL;
	if (r == VC_OK && l.input && !c->input)
		r = vc_nomem(err, "a call");
	c->name = t->name;
	c->runs_program = t->writes;
	c->json = json && json->token == VC_J_TRUE;
	c->at = l.at;
	c->n = l.n;
	return r;
}

void vc_mcp_call_fini(struct vc_mcp_call *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->at[i]);
	VC_FREE(c->at, c->input);
	*c = (struct vc_mcp_call){ 0 };
}
