/* SPDX-License-Identifier: Apache-2.0 */
/* opt.c - see opt.h */
#include "common/opt.h"

#include "common/param.h"
#include "common/utf8.h"
#include "common/vec.h"

#include <assert.h>

#define MAX_NAMES 128

/* Where parsing stands; bundled so that helpers stay short. */
struct parse {
	const struct vc_command *cmd;
	char *cfg;
	char **argv;
	size_t argc, at, operands;
	struct vc_console *con;
	struct vc_error *err;
	const struct vc_option *flag[MAX_NAMES]; /* switches given so far */
	size_t flags;
};

/* Options of every command; they fill the console instead of the command's config. */
static const struct vc_option console_options[] = {
	{ 'q', "quiet", VC_O_FLAG, offsetof(struct vc_console, quiet), NULL,
	  "no narration on standard error", NULL },
	{ 'v', "verbose", VC_O_FLAG, offsetof(struct vc_console, verbose), NULL, "say more", NULL },
	{ 0, "color", VC_O_FLAG, offsetof(struct vc_console, color), NULL,
	  "colours of sim and plot even when not on a terminal; --color never: none", NULL },
	VC_OPTION_END
};

const struct vc_command *vc_command_find(const struct vc_console *con, const char *name)
{
	for (size_t i = 0; con->commands[i]; i++)
		if (!strcmp(con->commands[i]->name, name))
			return con->commands[i];
	return NULL;
}

static const struct vc_option *console_option(const char *name, size_t n, char letter)
{
	for (const struct vc_option *o = console_options; o->name; o++)
		if (name ? strlen(o->name) == n && !strncmp(o->name, name, n)
			 : letter && o->letter == letter)
			return o;
	return NULL;
}

static const struct vc_option *next_option(const struct vc_command *c, size_t *table, size_t *row)
{
	while (c->options && c->options[*table]) {
		const struct vc_option *o = &c->options[*table][*row];

		if (o->name) {
			(*row)++;
			return o;
		}
		(*table)++;
		*row = 0;
	}
	return NULL;
}

static const struct vc_option *by_name(const struct vc_command *c, const char *name, size_t n)
{
	size_t t = 0, r = 0;

	for (const struct vc_option *o; (o = next_option(c, &t, &r));)
		if (strlen(o->name) == n && !strncmp(o->name, name, n))
			return o;
	return NULL;
}

static const struct vc_option *by_letter(const struct vc_command *c, char letter)
{
	size_t t = 0, r = 0;

	for (const struct vc_option *o; (o = next_option(c, &t, &r));)
		if (o->letter == letter)
			return o;
	return NULL;
}

static int add_to_list(struct vc_list *l, const char *value, struct vc_error *err)
{
	VC_HAVE(vc_vec_one(l->at, l->n), "options", err);
	l->at[l->n++] = value;
	return VC_OK;
}

/* "warm|cold" lists all words that the option takes; "py:N|off" and "FILE" do not. */
static int check_word(const struct vc_option *o, const char *value, struct vc_error *err)
{
	const char *at = o->arg;
	size_t n = strlen(value), part;

	if (!at || !strchr(at, '|') || at[strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789|")])
		return VC_OK;
	for (; *at; at += part + (at[part] == '|')) {
		part = strcspn(at, "|");
		if (part == n && !strncmp(at, value, n))
			return VC_OK;
	}
	return vc_fail(err, VC_EUSAGE, "--%s %s: must be one of %s", o->name, value, o->arg);
}

static int set_value(const struct vc_option *o, char *cfg, const char *value, struct vc_error *err)
{
	void *field = cfg + o->offset;
	int r = VC_OK;

	switch (o->type) {
	case VC_O_FLAG: *(bool *)field = true; break;
	case VC_O_NOT:  *(bool *)field = false; break;
	case VC_O_TEXT: VC_TRY(check_word(o, value, err)); /* fall through */
	case VC_O_FILE: *(const char **)field = value; break;
	case VC_O_SIZE: r = vc_parse_size(value, field, err); break;
	case VC_O_UINT: r = vc_parse_uint(value, field, err); break;
	case VC_O_JOBS:
		r = vc_parse_uint(value, field, err);
		if (r == VC_OK && *(uint64_t *)field > VC_JOBS_MOST)
			r = vc_fail(err, VC_EUSAGE, "at most %d threads", VC_JOBS_MOST);
		break;
	case VC_O_REAL: r = vc_parse_real(value, field, err); break;
	case VC_O_COUNT: r = vc_parse_count(value, field, err); break;
	case VC_O_FILES:
	case VC_O_LIST: r = add_to_list(field, value, err); break;
	case VC_O_AS: break; /* set_as() */
	}
	return r < 0 ? vc_wrap(err, "--%s", o->name) : VC_OK;
}

static int set_defaults(const struct vc_command *c, char *cfg, struct vc_error *err)
{
	size_t t = 0, r = 0;

	for (const struct vc_option *o; (o = next_option(c, &t, &r));) {
		void *field = cfg + o->offset;

		if (o->type == VC_O_NOT)
			*(bool *)field = true;
		else if ((o->type == VC_O_SIZE || o->type == VC_O_UINT) && !o->fallback)
			*(uint64_t *)field = VC_NOT_GIVEN;
		else if ((o->type == VC_O_REAL || o->type == VC_O_COUNT) && !o->fallback)
			*(double *)field = NAN;
		else if (o->fallback && set_value(o, cfg, o->fallback, err) < 0)
			return VC_EINTERNAL;
	}
	return VC_OK;
}

static int unknown_option(struct parse *p, const char *name, size_t n)
{
	const char *names[MAX_NAMES], *near;
	char word[64];
	size_t k = 0, t = 0, r = 0;

	for (const struct vc_option *o; k < MAX_NAMES && (o = next_option(p->cmd, &t, &r));)
		if (o->help)
			names[k++] = o->name;
	snprintf(word, sizeof(word), "%.*s", (int)n, name);
	near = vc_nearest(word, names, k);
	if (near)
		return vc_fail(p->err, VC_EUSAGE, "no option --%s (did you mean --%s?)", word,
			       near);
	return vc_fail(p->err, VC_EUSAGE, "no option --%s (see 'vramcast help %s')", word,
		       p->cmd->name);
}

static bool takes_value(const struct vc_option *o)
{
	return o->type != VC_O_FLAG && o->type != VC_O_NOT;
}

static int need_value(struct parse *p, const struct vc_option *o, const char **value)
{
	if (p->at + 1 >= p->argc)
		return vc_fail(p->err, VC_EUSAGE, "--%s wants a value (%s)", o->name, o->arg);
	*value = p->argv[++p->at];
	return VC_OK;
}

int vc_opt_color(const char *arg, const char *next, bool *color)
{
	static const char *const words[] = { "never", "always", "auto" };
	size_t n = strlen("--color");
	const char *word = arg[n] == '=' ? arg + n + 1 : next;

	if (strncmp(arg, "--color", n) != 0 || (arg[n] && arg[n] != '='))
		return 0;
	for (size_t i = 0; word && i < 3; i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		*color = i < 2 ? i == 1 : *color;
		return arg[n] ? 1 : 2;
	}
	*color = true;
	return arg[n] ? 0 : 1;
}

/* --as csv is --csv, whichever of the two is shown. */
static int set_as(struct parse *p, const struct vc_option *as, const char *value)
{
	const struct vc_option *o = by_name(p->cmd, value, strlen(value));

	VC_TRY(check_word(as, value, p->err));
	return o ? set_value(o, p->cfg, NULL, p->err) : VC_OK;
}

/* A switch and its opposite in one line: one of them is a slip. */
static int check_opposite(struct parse *p, const struct vc_option *o)
{
	for (size_t i = 0; i < p->flags; i++)
		if (p->flag[i]->offset == o->offset && p->flag[i]->type != o->type)
			return vc_fail(p->err, VC_EUSAGE, "--%s and --%s exclude each other",
				       p->flag[i]->name, o->name);
	if (!takes_value(o) && p->flags < MAX_NAMES)
		p->flag[p->flags++] = o;
	return VC_OK;
}

static int parse_long(struct parse *p, const char *arg)
{
	const char *eq = strchr(arg, '='), *value = eq ? eq + 1 : NULL;
	size_t n = eq ? (size_t)(eq - arg) : strlen(arg);
	const struct vc_option *o = by_name(p->cmd, arg, n);

	if (n == 4 && !strncmp(arg, "help", 4))
		return VC_OPT_HELP;
	if (!o && n == 5 && !strncmp(arg, "color", n)) {
		int words = vc_opt_color(arg - 2, p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL,
					 &p->con->color);

		p->at += words == 2;
		return words ? VC_OK : vc_fail(p->err, VC_EUSAGE, "--color is always, never or "
					       "auto, not '%s'", value);
	}
	if (!o && console_option(arg, n, 0) && eq)
		return vc_fail(p->err, VC_EUSAGE, "--%.*s takes no value", (int)n, arg);
	if (!o && console_option(arg, n, 0))
		return set_value(console_option(arg, n, 0), (char *)p->con, NULL, p->err);
	if (!o)
		return unknown_option(p, arg, n);
	if (!takes_value(o) && eq)
		return vc_fail(p->err, VC_EUSAGE, "--%s takes no value", o->name);
	if (takes_value(o) && !eq && need_value(p, o, &value) < 0)
		return VC_EUSAGE;
	VC_TRY(check_opposite(p, o));
	return o->type == VC_O_AS ? set_as(p, o, value) : set_value(o, p->cfg, value, p->err);
}

/* -jN, -j N, -qv */
static int parse_short(struct parse *p, const char *arg)
{
	for (; *arg; arg++) {
		const struct vc_option *o = by_letter(p->cmd, *arg);
		const char *value = arg + 1;
		char *cfg = p->cfg;

		if (!o && console_option(NULL, 0, *arg)) {
			o = console_option(NULL, 0, *arg);
			cfg = (char *)p->con;
		}
		if (!o && *arg == 'h')
			return VC_OPT_HELP;
		if (!o)
			return vc_fail(p->err, VC_EUSAGE,
				       "no option -%c (see 'vramcast help %s')", *arg,
				       p->cmd->name);
		if (takes_value(o)) {
			if (!*value && need_value(p, o, &value) < 0)
				return VC_EUSAGE;
			return set_value(o, cfg, value, p->err);
		}
		VC_TRY(set_value(o, cfg, NULL, p->err));
	}
	return VC_OK;
}

/* What cannot be written is said before the work, not behind it. */
static int check_files(const struct vc_command *c, char *cfg, struct vc_error *err)
{
	size_t t = 0, r = 0;

	for (const struct vc_option *o; (o = next_option(c, &t, &r));) {
		const struct vc_list *files = (const void *)(cfg + o->offset);
		const char *file = o->type == VC_O_FILE ? *(const char **)(void *)(cfg + o->offset)
							: NULL;

		int possible = file ? vc_output_possible(file, err) : VC_OK;

		for (size_t i = 0; o->type == VC_O_FILES && possible == VC_OK && i < files->n; i++)
			possible = vc_output_possible(files->at[i], err);
		if (possible < 0)
			return possible == VC_EUSAGE ? vc_wrap(err, "--%s", o->name) : possible;
	}
	return VC_OK;
}

int vc_opt_parse(const struct vc_command *c, void *cfg, size_t argc, char **argv, size_t *operands,
		 struct vc_console *con)
{
	struct parse p = { .cmd = c, .cfg = cfg, .argv = argv, .argc = argc, .con = con,
			   .err = &con->err };
	bool only_operands = false;
	int r = set_defaults(c, cfg, &con->err);

	for (; r == VC_OK && p.at < argc; p.at++) {
		char *arg = argv[p.at];

		if (only_operands || arg[0] != '-' || !arg[1]) {
			argv[p.operands++] = arg;
			only_operands |= (c->flags & VC_CMD_PASSTHROUGH) != 0;
		} else if (!strcmp(arg, "--")) {
			only_operands = true;
		} else {
			r = arg[1] == '-' ? parse_long(&p, arg + 2) : parse_short(&p, arg + 1);
		}
	}
	*operands = p.operands;
	return r == VC_OK ? check_files(c, cfg, &con->err) : r;
}

void vc_opt_fini(const struct vc_command *c, void *cfg)
{
	size_t t = 0, r = 0;

	for (const struct vc_option *o; (o = next_option(c, &t, &r));)
		if (o->type == VC_O_LIST || o->type == VC_O_FILES)
			free(((struct vc_list *)(void *)((char *)cfg + o->offset))->at);
}

enum { HELP_WIDTH = 100, HELP_TEXT = 31 }; /* columns: of a line, and before what an option does */

/* A line that begins in column `at`; where it is too long it goes on, between two words, below
 * column `indent`. */
static void put_wrapped(struct vc_output *out, const char *line, size_t n, size_t at, size_t indent)
{
	while (at + n > HELP_WIDTH) {
		size_t cut = at < HELP_WIDTH ? HELP_WIDTH - at : 0;

		while (cut > 0 && line[cut] != ' ')
			cut--;
		if (cut == 0 && at <= indent) /* a word that is longer than the line */
			break;
		vc_output_printf(out, "%.*s\n%*s", (int)cut, line, (int)indent, "");
		cut += cut > 0;
		line += cut;
		n -= cut;
		at = indent;
	}
	vc_output_printf(out, "%.*s\n", (int)n, line);
}

/* Paragraphs are filled anew; lines that begin with a space (examples to paste) stay as they are.
 */
static void put_text(struct vc_output *out, const char *text)
{
	char filled[2000];
	size_t used = 0;

	for (size_t n; *text; text += n + (text[n] != '\0')) {
		const char *after;

		n = strcspn(text, "\n");
		after = text + n + (text[n] != '\0');
		if (n == 0 || *text == ' ') {
			vc_output_printf(out, "%.*s\n", (int)n, text);
			continue;
		}
		used += (size_t)snprintf(filled + used, sizeof(filled) - used, "%.*s ", (int)n,
					 text);
		assert(used < sizeof(filled));
		if (*after == '\0' || *after == '\n' || *after == ' ') {
			put_wrapped(out, filled, used - 1, 0, 0);
			used = 0;
		}
	}
}

void vc_opt_row(struct vc_output *out, const char *left, size_t column, const char *right)
{
	size_t n = strlen(left);

	vc_output_printf(out, "%-*s ", (int)column - 1, left);
	put_wrapped(out, right, strlen(right), n < column - 1 ? column : n + 1, column);
}

static void help_row(const struct vc_option *o, struct vc_output *out)
{
	char left[100], right[400];

	if (!o->help)
		return;
	snprintf(left, sizeof(left), o->letter ? "  -%c, --%s%s%s" : "  %c   --%s%s%s",
			     o->letter ? o->letter : ' ', o->name, o->arg ? " " : "",
			     o->arg ? o->arg : "");
	snprintf(right, sizeof(right), o->fallback && takes_value(o) ? "%s [%s]" : "%s", o->help,
		 o->fallback);
	vc_opt_row(out, left, HELP_TEXT, right);
}

void vc_opt_help(const struct vc_command *c, struct vc_output *out)
{
	size_t t = 0, r = 0;
	bool any = false;

	vc_output_printf(out, "vramcast %s%s%s%s\n\n%s\n", c->name,
			 c->options ? " [OPTION]..." : "", c->operands && *c->operands ? " " : "",
			 c->operands ? c->operands : "", c->summary);
	if (c->details) {
		vc_output_text(out, "\n");
		put_text(out, c->details);
	}
	for (const struct vc_option *o; (o = next_option(c, &t, &r)); any = true) {
		if (!any)
			vc_output_text(out, "\nOptions:\n");
		help_row(o, out);
	}
	vc_output_text(out, any ? "\n" : "\nOptions:\n");
	for (const struct vc_option *o = console_options; o->name; o++)
		help_row(o, out);
}

char *vc_opt_word(const char *word, char *buf, size_t n)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
	size_t k = 0;

	if (*word && word[strspn(word, plain)] == '\0') {
		snprintf(buf, n, "%s", word);
		return buf;
	}
	if (n < 3)
		return memset(buf, 0, n);
	buf[k++] = '\'';
	for (; *word && k + 6 < n; word++) {
		if (*word == '\'') { /* ends the quotes, a quote by itself, begins them again */
			memcpy(buf + k, "'\\'", 3);
			k += 3;
		}
		buf[k++] = *word;
	}
	buf[k++] = '\'';
	buf[k] = '\0';
	return buf;
}

void vc_next(struct vc_console *con, const char *before, const char *file, const char *after)
{
	char word[400], plain[400];

	snprintf(plain, sizeof(plain), "%s", file);
	if (strcmp(file, "-") != 0 && !strcmp(vc_utf8_plain(plain), file))
		snprintf(con->next, sizeof(con->next), "vramcast %s %s%s", before,
			 vc_opt_word(file, word, sizeof(word)), after);
}
