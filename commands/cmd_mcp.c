/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_mcp.c - vramcast mcp: the questions as tools of an assistant. The server travels inside the
 * program (python/mcp_server.py); it is told the options of the commands that are its tools. */
#include <errno.h>
#include <unistd.h>

#include "commands/mcp_text.h"
#include "common/emit.h"
#include "common/opt.h"

static const char *const tools[] = { "sim", "fit", "explain", "diff", "dryrun" };

static const char *kind_of(enum vc_option_type type)
{
	switch (type) {
	case VC_O_FLAG: case VC_O_NOT: return "flag";
	case VC_O_UINT: case VC_O_JOBS: return "uint";
	case VC_O_LIST: case VC_O_FILES: return "list";
	case VC_O_REAL: case VC_O_COUNT: return "real";
	default: return "text";
	}
}

static void emit_options(struct vc_emit *e, const struct vc_command *c)
{
	vc_emit_array(e, c->name, NULL);
	for (size_t k = 0; c->options[k]; k++)
		for (const struct vc_option *o = c->options[k]; o->name; o++) {
			if (!o->help || o->type == VC_O_AS)
				continue;
			vc_emit_object(e, NULL, NULL);
			vc_emit_text(e, "name", NULL, o->name);
			vc_emit_text(e, "kind", NULL, kind_of(o->type));
			vc_emit_text(e, "arg", NULL, o->arg);
			vc_emit_text(e, "help", NULL, o->help);
			vc_emit_end(e);
		}
	vc_emit_end(e);
}

/* As JSON, on the heap. */
static char *all_options(const struct vc_console *con, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_file(NULL, VC_EMIT_JSONL, err);

	if (!e)
		return NULL;
	vc_emit_object(e, NULL, NULL);
	for (size_t i = 0; i < sizeof(tools) / sizeof(*tools); i++)
		emit_options(e, vc_command_find(con, tools[i]));
	vc_emit_end(e);
	return vc_emit_take(e, NULL, err);
}

static int mcp_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	char program[4096] = "", *options;
	char *line[] = { "python3", "-c", (char *)(uintptr_t)vc_mcp_text, program, VC_VERSION,
			 NULL, NULL };

	if (argc)
		return vc_fail(&con->err, VC_EUSAGE, "mcp takes nothing ('%s'): an assistant "
			       "starts it and writes to its standard input", argv[0]);
	line[5] = options = all_options(con, &con->err);
	if (!options || readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return vc_fail(&con->err, VC_EIO, "cannot find the program: %s", strerror(errno));
	execvp(*line, line);
	free(options);
	return vc_fail(&con->err, VC_ENOSUP, "mcp needs python3: %s", strerror(errno));
}

const struct vc_command vc_command_mcp = {
	.name = "mcp", .operands = "",
	.summary = "sim, fit, explain, diff and dryrun as tools of an assistant",
	.details = "Speaks the Model Context Protocol over standard input and output (JSON-RPC, "
		   "one message a line).\nAn assistant is told to start 'vramcast mcp'; its "
		   "answers are short, and 'json' asks for the whole document.",
	.run = mcp_run,
};
