/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_probe.c - vramcast probe: what kernels take on a card, measured, as a table for --speed, or
 * what it answers to the questions of a dry run, for --card.
 *
 * A recording of the card says how long kernels took, a dry run of the same program what they
 * compute and move. On a machine with a card both are made of python/probe.py. */
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/mcp_text.h"
#include "commands/trial.h"
#include "common/opt.h"
#include "simulator/time/time.h"
#include "simulator/time/time_speeds.h"

struct config { const char *output, *python, *questions; };

#define AT(f) offsetof(struct config, f)
static const struct vc_option options[] = {
	{ 'o', "output", VC_O_FILE, AT(output), "FILE",
	  "where the table goes [card.speed; with --questions card.vcc]", NULL },
	{ 0, "questions", VC_O_TEXT, AT(questions), "FILE",
	  "ask this card instead for what dryrun --questions wrote, for dryrun --card", NULL },
	{ 0, "python", VC_O_TEXT, AT(python), "PYTHON", "with the PyTorch that measures",
	  "python3" },
	VC_OPTION_END
};

/* ---- from recordings ---- */

struct pair { struct vc_session s[2]; const struct vc_profile *p[2]; };

static int open_pair(struct pair *q, const struct vc_run_options *o, char **path,
		     struct vc_error *err)
{
	for (int i = 0; i < 2; i++) {
		VC_TRY(vc_session_open(&q->s[i], o, 1, &path[i], VC_SESSION_NO_REQUESTS_OK, err));
		VC_TRY(vc_time_open(&q->s[i], err));
		q->p[i] = vc_time_profile(&q->s[i]);
		if (!q->p[i] || !q->p[i]->beats)
			return vc_fail(err, VC_EUSAGE, "%s shows no steps of kernels: record at "
				       "least three steps, with kernels", path[i]);
		if (q->p[i]->modelled == i)
			continue;
		return vc_fail(err, VC_EUSAGE, i ? "%s is a recording of a card; behind it stands "
			       "the dry run of the same program ('vramcast dryrun -g')" :
			       "%s is a dry run; a recording of a card stands before it, as "
			       "'vramcast record' makes them", path[i]);
	}
	return q->p[1]->card ? VC_OK : vc_fail(err, VC_EUSAGE, "%s does not say what its kernels "
					       "compute: make the dry run again with this version",
					       path[1]);
}

/* The card of a recording, as its device is called. */
static const struct vc_card *card_of(const struct vc_session *s)
{
	const struct vc_device_info *d = vc_meta_device_known(s->rec->meta, s->rec->device->device);

	return d && d->name ? vc_card_by_name(d->name) : NULL;
}

static int learn(struct vc_speeds *table, char **path, struct vc_error *err)
{
	struct vc_run_options o = vc_run_options_none();
	struct pair q = { 0 };
	double matched = 0;
	int r = open_pair(&q, &o, path, err);

	if (r == VC_OK && (card_of(&q.s[0]) != q.p[1]->card ||
			   (table->card && table->card != q.p[1]->card)))
		r = vc_fail(err, VC_EUSAGE, "%s was recorded on another card than %s was made for; "
			    "a table is of one card", path[0], path[1]);
	if (r == VC_OK)
		r = vc_speeds_learn(table, q.p[0], q.p[1], &matched, err);
	if (r == VC_OK)
		printf("%s: %.0f %% of its kernels' time is of kernels that the dry run has, too\n",
		       path[0], 100 * matched);
	vc_session_close(&q.s[0]);
	vc_session_close(&q.s[1]);
	return r;
}

/* ---- on a card ---- */

/* program: NULL: this one. what: for the sentence. */
static int start(const char *program, char *const *argv, const char *what, struct vc_error *err)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		if (program)
			execvp(program, argv);
		else
			execv("/proc/self/exe", argv);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return vc_fail(err, VC_EIO, "cannot start %s: %s", what, strerror(errno));
	return !status ? VC_OK : vc_fail(err, VC_EIO, "%s failed; 'vramcast doctor' says what is "
					 "missing", what);
}

static int write_program(const char *path, const char *text, struct vc_error *err)
{
	struct vc_output *out = vc_output_open(path, err);
	int r;

	if (!out)
		return (int)err->status;
	vc_output_text(out, text);
	r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}

/* The name of the card by which `dryrun -g` knows it. */
static int name_card(char *path, char *name, size_t n, struct vc_error *err)
{
	struct vc_run_options o = vc_run_options_none();
	struct vc_session s;
	int r = vc_session_open(&s, &o, 1, &path, VC_SESSION_NO_REQUESTS_OK, err);
	const struct vc_card *c = r == VC_OK ? card_of(&s) : NULL;

	if (c)
		snprintf(name, n, "%s", c->name);
	else if (r == VC_OK)
		r = vc_fail(err, VC_ENOSUP, "this card is not among those that vramcast knows "
			    "('vramcast gpus')");
	vc_session_close(&s);
	return r;
}

static int measure(const struct config *c, const char *dir, struct vc_speeds *table,
		   struct vc_error *err)
{
	char program[300], real[300], dry[300], card[64] = "";
	char *record[] = { "vramcast", "record", "-q", "--stacks", "off", "-o", real, "--",
			   (char *)(uintptr_t)c->python, program, NULL };
	char *again[] = { "vramcast", "dryrun", "-q", "--stacks", "off", "-g", card,
			  "-o", dry, "--", (char *)(uintptr_t)c->python, program, NULL };
	char *both[] = { real, dry };

	snprintf(program, sizeof(program), "%s/probe.py", dir);
	snprintf(real, sizeof(real), "%s/card.vct", dir);
	snprintf(dry, sizeof(dry), "%s/dry.vct", dir);
	VC_TRY(write_program(program, vc_probe_text, err));
	VC_TRY(start(NULL, record, "recording the measuring program", err));
	VC_TRY(name_card(real, card, sizeof(card), err));
	VC_TRY(start(NULL, again, "the dry run of the measuring program", err));
	return learn(table, both, err);
}

static int copy_file(const char *from, const char *to, struct vc_error *err)
{
	struct vc_output *out = vc_output_open(to, err);
	char part[4096];
	FILE *f = out ? fopen(from, "r") : NULL;
	int r = !out ? (int)err->status :
		!f ? vc_fail(err, VC_EIO, "cannot open %s: %s", from, strerror(errno)) : VC_OK;

	for (size_t n; f && (n = fread(part, 1, sizeof(part), f)) > 0;)
		vc_output_write(out, part, n);
	if (f)
		fclose(f);
	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}

/* --questions: PyTorch on this card runs each convolution; what it asks for beside the result is
 * the workspace. */
static int ask_card(const struct config *c, const char *dir, struct vc_error *err)
{
	const char *output = c->output ? c->output : "card.vcc";
	char program[300], answers[300];
	char *line[] = { (char *)(uintptr_t)c->python, program, answers,
			 (char *)(uintptr_t)c->questions, NULL };

	snprintf(program, sizeof(program), "%s/probe_workspaces.py", dir);
	snprintf(answers, sizeof(answers), "%s/card.vcc", dir);
	VC_TRY(write_program(program, vc_probe_workspaces_text, err));
	VC_TRY(start(c->python, line, "asking the card", err));
	VC_TRY(copy_file(answers, output, err));
	printf("%s: what this card answered; 'vramcast dryrun --card %s' uses it\n", output,
	       output);
	return VC_OK;
}

/* table: of what kernels take; NULL: the card is asked. */
static int in_folder(const struct config *c, struct vc_speeds *table, struct vc_error *err)
{
	char dir[200] = "";
	int r = vc_trial_folder(dir, err);

	if (r == VC_OK)
		r = table ? measure(c, dir, table, err) : ask_card(c, dir, err);
	if (dir[0])
		vc_trial_remove(dir);
	return r;
}

static int questions(const struct config *c, size_t argc, struct vc_error *err)
{
	if (argc)
		return vc_fail(err, VC_EUSAGE, "--questions asks the card of this machine, and "
			       "recordings are of another question: leave one out");
	if (access(c->questions, R_OK) != 0)
		return vc_fail(err, VC_EIO, "cannot open %s: %s; 'vramcast dryrun --questions %s' "
			       "writes it", c->questions, strerror(errno), c->questions);
	VC_TRY(vc_output_possible(c->output ? c->output : "card.vcc", err));
	return in_folder(c, NULL, err);
}

static int on_card(const struct config *c, struct vc_speeds *table, struct vc_error *err)
{
	if (access("/proc/driver/nvidia/version", R_OK) != 0)
		return vc_fail(err, VC_ENOSUP, "this machine has no NVIDIA card to measure: run it "
			       "on one, or name recordings of a card, each followed by a dry run "
			       "of the same program");
	return in_folder(c, table, err);
}

static int probe_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	const char *output = c->output ? c->output : "card.speed";
	struct vc_speeds table = { 0 };
	int r;

	if (c->questions)
		return questions(c, argc, &con->err);
	r = vc_output_possible(output, &con->err);
	if (r == VC_OK && argc % 2)
		r = vc_fail(&con->err, VC_EUSAGE, "%s has no partner: behind each recording of a "
			    "card stands the dry run of the same program", argv[argc - 1]);
	if (r == VC_OK && !argc)
		r = on_card(c, &table, &con->err);
	for (size_t i = 0; r == VC_OK && i < argc; i += 2)
		r = learn(&table, &argv[i], &con->err);
	if (r == VC_OK && !table.n)
		r = vc_fail(&con->err, VC_ENOSUP, "no kernel of %s is one of %s: are they of one "
			    "program?", argv[0], argv[1]);
	if (r == VC_OK)
		r = vc_speeds_write(&table, output, &con->err);
	if (r == VC_OK)
		printf("%s: %zu rows of the %s; 'vramcast sim TRACE --speed %s' uses them\n",
		       output, table.n, table.card->title, output);
	vc_speeds_fini(&table);
	return r < 0 ? r : 0;
}

const struct vc_command vc_command_probe = {
	.name = "probe", .operands = "[RECORDING DRYRUN]...",
	.summary = "measure what kernels take on a card, for --speed; its answers, for --card",
	.details =
		"On a machine with a card a minute of products, attention and copies is "
		"recorded and dry-run.\nWith --questions it runs the convolutions of a dry run, "
		"100 seconds at most, and notes\nworkspaces, memory, the context and where fresh "
		"segments lie.",
	.options = VC_OPTIONS(options), .config_size = sizeof(struct config), .run = probe_run,
};
