/* SPDX-License-Identifier: Apache-2.0 */
/* vramcast.c - front door: global options, the command table, exit codes. */
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include "commands/ask_cudnn.h"
#include "commands/ask_program.h"
#include "commands/choose.h"
#include "commands/commands.h"
#include "commands/estimate_cards.h"
#include "commands/keep_open.h"
#include "commands/stop.h"
#include "common/opt.h"
#include "common/utf8.h"
#include "common/vec.h"

#define VC_GROUP(title)
#define VC_COMMAND(id) &vc_command_##id,
static const struct vc_command *const commands[] = {
#include "commands/commands.def"
	NULL
};
#undef VC_COMMAND
#undef VC_GROUP

static const char intro[] =
	"vramcast records what a training run does to GPU memory, replays the recording with\n"
	"anything changed, says whether it fits, and draws it.\n\n"
	"usage: vramcast COMMAND [OPTION]... [ARGUMENT]...   or   vramcast X [OPTION]...\n";

static void say_command(struct vc_output *out, const struct vc_command *c)
{
	if (!(c->flags & VC_CMD_HIDDEN))
		vc_output_printf(out, "  %-12s %s\n", c->name, c->summary);
}

static void say_commands(struct vc_output *out)
{
	vc_output_text(out, intro);
#define VC_GROUP(title) vc_output_text(out, "\n" title "\n");
#define VC_COMMAND(id) say_command(out, &vc_command_##id);
#include "commands/commands.def"
#undef VC_COMMAND
#undef VC_GROUP
	vc_output_printf(out, "\n%s", vc_choose_rules);
	vc_output_text(out, "\n'vramcast help NAME' explains a command, a source, a transform, a "
		       "model or a sink.\n"
		       "A first try: vramcast sim traces/decomfl.vct -g rtx4090\n");
}

/* Whoever read our output has gone, as `head` does: end without a word, as a program that does not
 * look at its writes would. */
static void end_with_reader(int status)
{
	if (status != VC_EPIPE)
		return;
	signal(SIGPIPE, SIG_DFL);
	raise(SIGPIPE);
}

/* What was written goes out; the exit code. */
static int commit(struct vc_output *out, struct vc_error *err)
{
	if (!out || vc_output_commit(out, err) < 0) {
		end_with_reader(err->status);
		fprintf(stderr, "vramcast: %s\n", err->message);
	}
	vc_output_close(out);
	return err->status ? 1 : 0;
}

static int to_stdout(void (*fn)(struct vc_output *))
{
	struct vc_error err = { 0 };
	struct vc_output *out = vc_output_open("-", &err);

	if (out)
		fn(out);
	return commit(out, &err);
}

static int explain_failure(const struct vc_command *c, const struct vc_console *con, int status)
{
	end_with_reader(status);
	fprintf(stderr, "vramcast %s: %s\n", c->name, con->err.message);
	if (status == VC_ESTOPPED) {
		vc_stop_rest();
		return 128 + vc_stop_asked();
	}
	if (c->flags & VC_CMD_PASSTHROUGH) /* 125: our own failure, as env and timeout do it */
		return status == VC_EUSAGE ? 2 : 125;
	return status == VC_EUSAGE ? 2 : 1;
}

static int help_for(const struct vc_command *c)
{
	struct vc_error err = { 0 };
	struct vc_output *out = vc_output_open("-", &err);

	if (out)
		vc_opt_help(c, out);
	return commit(out, &err);
}

static bool is_json(const struct vc_command *c, const void *cfg)
{
	for (size_t t = 0; c->options && c->options[t]; t++)
		for (const struct vc_option *o = c->options[t]; o->name; o++)
			if (o->type == VC_O_FLAG && !strcmp(o->name, "json"))
				return *((const bool *)cfg + o->offset);
	return false;
}

/* Behind the answer: what was done where nobody named a command, and what to type next. */
static void say_next(const struct vc_command *c, const struct vc_console *con, const char *why)
{
	fflush(stdout);
	if (why && !(c->flags & VC_CMD_PASSTHROUGH))
		fprintf(stderr, "(%s)\n", why);
	if (con->next[0])
		fprintf(stderr, "next: %s\n", con->next);
}

static int run_command(const struct vc_command *c, size_t argc, char **argv, const char *why,
		       struct vc_console *con)
{
	void *cfg = calloc(1, c->config_size ? c->config_size : 1);
	char **script = NULL;
	size_t operands = 0;
	int r;

	if (!cfg)
		return explain_failure(c, con, vc_nomem(&con->err, "options"));
	r = vc_opt_parse(c, cfg, argc, argv, &operands, con);
	if (r == VC_OK) {
		if (VC_PROCESSES) /* a browser has no cuDNN, and one process for all commands */
			vc_ask_cudnn(c->options, cfg);
		else
			vc_keep_open(c->options, cfg);
		vc_ask_program(c->options, cfg, con);
	}
	if (r == VC_OK)
		r = vc_gpu_all(c, cfg, &con->err);
	if (r == VC_OK && why && (c->flags & VC_CMD_PASSTHROUGH) && !con->quiet)
		fprintf(stderr, "vramcast: %s\n", why); /* it may run for long */
	if (r == VC_OK && c->flags & VC_CMD_PASSTHROUGH)
		script = vc_script_line(&operands, argv);
	if (r == VC_OK)
		r = c->run(cfg, operands, script ? script : argv, con);
	else if (r == VC_OPT_HELP)
		r = help_for(c);
	if (r < 0)
		r = explain_failure(c, con, r);
	else if (!con->quiet && !is_json(c, cfg))
		say_next(c, con, why);
	vc_opt_fini(c, cfg);
	VC_FREE(script, cfg);
	return r;
}

/* `vramcast X`: what that is for. */
static int choose(size_t argc, char **argv, const char *gpu, struct vc_console *con)
{
	const char *names[64];
	struct vc_choice choice;
	char why[1200];
	size_t n = 0, used;
	int r;

	for (; n < 64 && commands[n]; n++)
		names[n] = commands[n]->name;
	r = vc_choose(argc, argv, gpu, names, n, &choice, &con->err);
	if (r < 0) {
		fprintf(stderr, "vramcast: %s\n", con->err.message);
		vc_choice_fini(&choice);
		return r == VC_EUSAGE ? 2 : 1;
	}
	used = (size_t)snprintf(why, sizeof(why), "%s: vramcast", choice.why);
	for (size_t i = 0; i < choice.n && used + 300 < sizeof(why); i++) {
		why[used++] = ' ';
		used += strlen(vc_opt_word(choice.word[i], why + used, 290));
	}
	r = run_command(vc_command_find(con, choice.word[0]), choice.n - 1, choice.word + 1,
			vc_utf8_plain(why), con);
	vc_choice_fini(&choice);
	return r;
}

/* Replays ask for the same large arrays again and again: given back to the system each time, a
 * quarter of the time of advice went into page faults. */
static void keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 256 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

/* no-color.org: the variable counts where it is not empty. */
static bool takes_color(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(1) && !(no && *no) && !(term && !strcmp(term, "dumb"));
}

int main(int argc, char **argv)
{
	struct vc_console con = { .color = takes_color(), .commands = commands };
	const struct vc_command *c;
	const char *gpu = NULL; /* of what names no command */
	int at = 1, words;

	keep_memory();
	signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error with a sentence, not a death, */
	signal(SIGXFSZ, SIG_IGN); /* and so is a limit on the size of files */
	for (; at < argc && argv[at][0] == '-' && argv[at][1] && strcmp(argv[at], "--"); at++) {
		if (!strcmp(argv[at], "--version"))
			return puts("vramcast " VC_VERSION) < 0;
		if (!strcmp(argv[at], "--help") || !strcmp(argv[at], "-h"))
			return to_stdout(say_commands);
		if (!strcmp(argv[at], "-q") || !strcmp(argv[at], "--quiet"))
			con.quiet = true;
		else if (!strcmp(argv[at], "-v") || !strcmp(argv[at], "--verbose"))
			con.verbose = true;
		else if ((!strcmp(argv[at], "-g") || !strcmp(argv[at], "--gpu")) && at + 2 < argc)
			gpu = argv[++at];
		else if ((words = vc_opt_color(argv[at], argv[at + 1], &con.color)) > 0)
			at += words - 1;
		else
			break;
	}
	if (at < argc && argv[at][0] == '-' && argv[at][1] && strcmp(argv[at], "--")) {
		fprintf(stderr, "vramcast: no option %s before a command: only -g, -q, -v and "
			"--color stand there, the others behind it ('vramcast help')\n", argv[at]);
		return 2;
	}
	if (at >= argc || (!strcmp(argv[at], "help") && at + 1 >= argc))
		return to_stdout(say_commands);
	c = gpu ? NULL : vc_command_find(&con, argv[at]);
	if (!c)
		return choose((size_t)(argc - at), argv + at, gpu, &con);
	return run_command(c, (size_t)(argc - at - 1), argv + at + 1, NULL, &con);
}
