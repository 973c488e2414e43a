/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_man.c - vramcast manpage: the manual pages, printed from the same tables as the help. */

#include "common/opt.h"

/* roff: a leading dot or quote and every backslash and dash would mean something else. */
static void roff(struct vc_output *out, const char *text)
{
	if (*text == '.' || *text == '\'')
		vc_output_text(out, "\\&");
	for (; *text; text++) {
		if (*text == '-' || *text == '\\')
			vc_output_text(out, "\\");
		vc_output_write(out, text, 1);
		if (*text == '\n' && (text[1] == '.' || text[1] == '\''))
			vc_output_text(out, "\\&");
	}
}

static void option_row(struct vc_output *out, const struct vc_option *o)
{
	vc_output_text(out, ".TP\n.B ");
	if (o->letter)
		vc_output_printf(out, "\\-%c\\fR, \\fB", o->letter);
	vc_output_text(out, "\\-\\-");
	roff(out, o->name);
	if (o->arg)
		vc_output_printf(out, "\\fR \\fI%s", o->arg);
	vc_output_text(out, "\\fR\n");
	roff(out, o->help);
	if (o->fallback && o->type != VC_O_FLAG && o->type != VC_O_NOT)
		vc_output_printf(out, " (default %s)", o->fallback);
	vc_output_text(out, ".\n");
}

static void page(struct vc_output *out, const struct vc_command *c)
{
	vc_output_printf(out,
			 ".TH VRAMCAST\\-%s 1 \"\" \"vramcast %s\"\n.SH NAME\nvramcast\\-%s \\- ",
			 c->name, VC_VERSION, c->name);
	roff(out, c->summary);
	vc_output_printf(out, "\n.SH SYNOPSIS\n.B vramcast %s\n[\\fIOPTION\\fR]... ", c->name);
	roff(out, c->operands ? c->operands : "");
	if (c->details) {
		vc_output_text(out, "\n.SH DESCRIPTION\n.nf\n");
		roff(out, c->details);
		vc_output_text(out, "\n.fi");
	}
	vc_output_text(out, "\n.SH OPTIONS\n");
	for (size_t t = 0; c->options && c->options[t]; t++)
		for (const struct vc_option *o = c->options[t]; o->name; o++)
			if (o->help)
				option_row(out, o);
	vc_output_text(out, ".SH SEE ALSO\nvramcast(1)\n");
}

static void overview(const struct vc_command *const *commands, struct vc_output *out)
{
	vc_output_printf(out, ".TH VRAMCAST 1 \"\" \"vramcast %s\"\n.SH NAME\nvramcast \\- record, "
			 "replay and draw the GPU memory of training runs\n.SH SYNOPSIS\n.B "
			 "vramcast\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... "
			 "[\\fIARGUMENT\\fR]...\n.SH COMMANDS\n",
			 VC_VERSION);
	for (size_t i = 0; commands[i]; i++) {
		if (commands[i]->flags & VC_CMD_HIDDEN)
			continue;
		vc_output_printf(out, ".TP\n.B vramcast %s\n", commands[i]->name);
		roff(out, commands[i]->summary);
		vc_output_text(out, ".\n");
	}
	vc_output_text(out, ".SH EXIT STATUS\n0 fits, 1 failed, 2 wrong usage, 3 predicted out of "
		       "memory, 4 over the budget asked for, 5 not trustworthy, 6 undecided: one "
		       "end of the interval of the answer fits, the other does not.\n");
}

static int man_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct vc_command *c = argc ? vc_command_find(con, argv[0]) : NULL;
	struct vc_output *out = vc_output_open("-", &con->err);
	int r;

	if (!out)
		return con->err.status;
	if (!argc)
		overview(con->commands, out);
	else if (c)
		page(out, c);
	r = c || !argc ? vc_output_commit(out, &con->err)
			: vc_fail(&con->err, VC_EUSAGE, "there is no command '%s'", argv[0]);
	vc_output_close(out);
	return r;
}

const struct vc_command vc_command_man = {
	.name = "manpage", .operands = "[COMMAND]",
	.summary = "a manual page in roff, made from the option tables",
	.flags = VC_CMD_HIDDEN, .run = man_run,
};
