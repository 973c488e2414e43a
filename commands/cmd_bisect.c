/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_bisect.c - vramcast bisect: which release of a package, or which commit, made a program need
 * more. Every try is a kept dry run. */
#define _GNU_SOURCE /* asprintf */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/environments.h"
#include "commands/grid.h"
#include "commands/own_program.h"
#include "commands/tried.h"
#include "common/param.h"

enum { MOST = 512, PARENTS = 16, FOUND = 4 };
enum { GOOD = 0, BAD = 1, SKIP = 125 }; /* as git bisect run has it */

struct config {
	struct vc_list gpu;
	const char *package, *good, *bad, *grew, *output;
	uint64_t budget;
	bool step, json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option bisect_options[] = {
	{ 'g', "gpu", VC_O_LIST, AT(gpu), "NAME", "the card to play", NULL },
	{ 0, "package", VC_O_TEXT, AT(package), "NAME",
	  "among its releases; without it among commits", NULL },
	{ 0, "good", VC_O_TEXT, AT(good), "VERSION|COMMIT", "one that needs little", NULL },
	{ 0, "bad", VC_O_TEXT, AT(bad), "VERSION|COMMIT", "one that needs too much", NULL },
	{ 0, "budget", VC_O_SIZE, AT(budget), "SIZE", "bad reserves more than that", NULL },
	{ 0, "grew", VC_O_TEXT, AT(grew), "P%|SIZE", "bad reserves so much more than good", "5%" },
	{ 'o', "output", VC_O_FILE, AT(output), "FILE", "picture of the difference", NULL },
	{ 0, "step", VC_O_FLAG, AT(step), NULL,
	  "is this tree good (0), bad (1) or neither (125)?",
	  NULL },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one document (vramcast.bisect/1)", NULL },
	VC_OPTION_END
};

struct try_out {
	char name[VC_ENV_PATH]; /* release, or commit */
	struct vc_kept kept;
	char why[600];          /* did not run; "": it did */
	bool done;
};

struct bisect {
	const struct config *cfg;
	struct vc_console *con;
	struct vc_program *program;
	uint64_t limit;         /* bad reserves more */
	struct try_out *at;     /* from good to bad */
	size_t n;
	bool skipped;           /* what lies between the last good and the first bad did not run */
	char end[2][64];        /* commits: what the user's names stand for */
	struct vc_advised tries;  /* against what the first bad one needs more */
};

static bool is_bad(const struct bisect *b, const struct try_out *t)
{
	return t->kept.reserved > b->limit;
}

/* ---- one try ---- */

/* A grid of that one alone. Closed by vc_grid_fini() whatever happened. */
static int open_one(struct vc_grid *g, const struct bisect *b, const struct try_out *t,
		    struct vc_error *err)
{
	const char *value = t->name, *package = b->cfg->package;
	const struct vc_list one = { &value, 1 };

	*g = (struct vc_grid){ .program = b->program, .card = b->cfg->gpu.at[0], .jobs = 1,
			       .con = b->con };
	VC_TRY(vc_grid_add_words(g, !package ? VC_GRID_ENV :
				 strcmp(package, "torch") ? VC_GRID_PACKAGE : VC_GRID_TORCH,
				 package ? package : "VRAMCAST_COMMIT", &one, err));
	return vc_grid_prepare(g, b->program->interpreter, err);
}

static int try_one(struct bisect *b, struct try_out *t, struct vc_error *err)
{
	const char *name = b->cfg->package ? b->cfg->package : "VRAMCAST_COMMIT";
	struct vc_grid_point point = { .done = false };
	struct vc_grid g;
	char peak[32];
	int r;

	if (t->done)
		return VC_OK;
	r = open_one(&g, b, t, err);
	if (r == VC_OK)
		r = vc_grid_run_one(&g, 0, &point, err);
	t->kept = point.kept;
	t->done = true;
	snprintf(t->why, sizeof(t->why), "%s", point.why);
	if (r == VC_OK && !b->con->quiet)
		fprintf(stderr, "vramcast: %s %.20s: %s%s\n", name, t->name,
			t->why[0] ? t->why : vc_bytes_text(t->kept.reserved, peak),
			t->why[0] ? "" : " reserved");
	vc_grid_fini(&g);
	return r;
}

/* While the program is as the bad one has it. */
static int try_advice(struct bisect *b, const struct try_out *good, const struct try_out *bad,
		      struct vc_error *err)
{
	struct vc_grid g;
	struct vc_two two;
	int r = vc_two_open(&two, good->kept.path, bad->kept.path, err);

	if (r == VC_OK) {
		r = open_one(&g, b, bad, err);
		if (r == VC_OK)
			r = vc_advised_try(&b->tries, &g, 0, good->kept.reserved, &bad->kept, &two,
					  err);
		vc_grid_fini(&g);
	}
	vc_two_close(&two);
	return r;
}

/* ---- the limit ---- */

static int set_limit(struct bisect *b, const struct try_out *good, struct vc_error *err)
{
	double share;
	uint64_t bytes;

	if (good->why[0])
		return vc_fail(err, VC_EUSAGE, "%s is no good one: %s", b->cfg->good, good->why);
	if (b->cfg->budget == VC_NOT_GIVEN) {
		if (vc_parse_share(b->cfg->grew, &share, &bytes, err) < 0)
			return vc_wrap(err, "--grew");
		b->limit = good->kept.reserved + bytes +
			   (uint64_t)((double)good->kept.reserved * share / 100);
	}
	return is_bad(b, good) ? vc_fail(err, VC_EUSAGE, "%s needs more than the budget, too: name "
					 "a good one that does not", b->cfg->good) : VC_OK;
}

/* ---- releases ---- */

/* The first that is bad, between good and bad ends; those that do not run are stepped over. */
static int search(struct bisect *b, size_t *good, size_t *bad, struct vc_error *err)
{
	*good = 0;
	*bad = b->n - 1;
	while (*bad - *good > 1) {
		size_t middle = *good + (*bad - *good) / 2, at = middle;

		do {
			VC_TRY(try_one(b, &b->at[at], err));
			if (!b->at[at].why[0])
				break;
			at = at + 1 < *bad ? at + 1 : *good + 1;
		} while (at != middle && (at > middle || b->at[at].why[0] || !b->at[at].done));
		if (b->at[at].why[0])
			return VC_OK; /* nobody in between runs */
		if (is_bad(b, &b->at[at]))
			*bad = at;
		else
			*good = at;
	}
	return VC_OK;
}

static int among_releases(struct bisect *b, size_t *good, size_t *bad, struct vc_error *err)
{
	char (*version)[VC_ENV_PATH] = calloc(MOST, sizeof(*version));
	int r = version ? vc_env_releases(b->cfg->package, b->cfg->good, b->cfg->bad, version, MOST,
					  &b->n, err) : vc_nomem(err, "the releases");

	b->at = r == VC_OK ? calloc(b->n + 1, sizeof(*b->at)) : NULL;
	for (size_t i = 0; b->at && i < b->n; i++)
		snprintf(b->at[i].name, sizeof(b->at[i].name), "%s", version[i]);
	free(version);
	VC_TRY(r);
	VC_HAVE(b->at, "the releases", err);
	if (b->n < 2)
		return vc_fail(err, VC_EUSAGE, "--good and --bad are the same release");
	VC_TRY(try_one(b, &b->at[0], err));
	VC_TRY(set_limit(b, &b->at[0], err));
	VC_TRY(try_one(b, &b->at[b->n - 1], err));
	*good = 0;
	*bad = b->n - 1;
	if (b->at[b->n - 1].why[0])
		return vc_fail(err, VC_EIO, "%s", b->at[b->n - 1].why);
	if (!is_bad(b, &b->at[b->n - 1]))
		return VC_OK;
	VC_TRY(search(b, good, bad, err));
	return try_advice(b, &b->at[*good], &b->at[*bad], err);
}

/* ---- commits: git's own bisect, in a tree beside the user's ---- */

/* git -C FOLDER WORD...; what it prints, its first line, into out (or NULL). */
static int git(const char *folder, char *out, size_t n, struct vc_error *err, ...)
{
	const char *line[24] = { "git", "-C", folder };
	int ends[2], status = 0;
	size_t words = 3;
	va_list args;

	va_start(args, err);
	while (words < 23 && (line[words] = va_arg(args, const char *)))
		words++;
	va_end(args);
	if (pipe(ends) < 0)
		return vc_fail(err, VC_EIO, "cannot start git: %s", strerror(errno));
	pid_t child = fork();
	if (child == 0) {
		dup2(out ? ends[1] : STDERR_FILENO, STDOUT_FILENO);
		if (out) /* it is asked whether there is such a thing: we say what follows */
			dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
		close(ends[0]);
		execvp("git", (char *const *)(uintptr_t)line);
		_exit(127);
	}
	close(ends[1]);
	FILE *f = fdopen(ends[0], "r");
	if (out && (!f || !fgets(out, (int)n, f)))
		out[0] = '\0';
	if (out)
		out[strcspn(out, "\n")] = '\0';
	if (f)
		fclose(f);
	if (child < 0 || waitpid(child, &status, 0) < 0 || status)
		return vc_fail(err, VC_EIO, "git %s failed", line[3]);
	return VC_OK;
}

/* The program as that commit has it, in the folder that stands for the user's. */
static int try_commit(struct bisect *b, struct try_out *t, const char *tree, const char *commit,
		      struct vc_error *err)
{
	VC_TRY(git(tree, t->name, sizeof(t->name), err, "rev-parse", "--verify", "--short=12",
		   commit, NULL));
	VC_TRY(git(tree, NULL, 0, err, "checkout", "--quiet", "--detach", t->name, NULL));
	return try_one(b, t, err);
}

static int run_bisect(struct bisect *b, const char *tree, size_t argc, char **argv,
		      struct vc_error *err)
{
	char **line = calloc(argc + 20, sizeof(*line)), limit[24], self[600];
	const char *begin[] = { "git", "-C", tree, "bisect", "run", "sh", "-c",
				"cd \"$1\" && shift && exec \"$@\"", "sh", b->program->folder, self,
				"bisect", "--step", "-q", "-g", b->cfg->gpu.at[0], "--budget",
				limit, "--" };
	enum { BEGIN = sizeof(begin) / sizeof(*begin) };
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int status = 0;

	VC_HAVE(line, "a command line", err);
	self[n > 0 ? n : 0] = '\0';
	snprintf(limit, sizeof(limit), "%" PRIu64, b->limit);
	for (size_t i = 0; i < BEGIN; i++)
		line[i] = (char *)(uintptr_t)begin[i];
	for (size_t i = 0; i < argc; i++)
		line[BEGIN + i] = argv[i];
	pid_t child = fork();
	if (child == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp("git", line);
		_exit(127);
	}
	free(line);
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return vc_fail(err, VC_EIO, "cannot start git: %s", strerror(errno));
	b->skipped = status != 0; /* "only skipped commits left": its bad one is the first known */
	return VC_OK;
}

/* The nearest before the first bad one that runs, and that one. */
static int take_ends(struct bisect *b, const char *tree, struct vc_error *err)
{
	char before[40];

	for (int i = 1; i <= PARENTS; i++) {
		b->at[0].done = false;
		snprintf(before, sizeof(before), "refs/bisect/bad~%d", i);
		VC_TRY(try_commit(b, &b->at[0], tree, before, err));
		if (!b->at[0].why[0])
			break;
	}
	b->at[1].done = false;
	VC_TRY(try_commit(b, &b->at[1], tree, "refs/bisect/bad", err));
	if (b->at[0].why[0] || is_bad(b, &b->at[0]) || !is_bad(b, &b->at[1]))
		return vc_fail(err, VC_EIO,
			       "git bisect came to no end; what it said stands above");
	return try_advice(b, &b->at[0], &b->at[1], err);
}

/* Good and bad first, then git looks between them. */
static int look_between(struct bisect *b, const char *tree, size_t argc, char **argv, size_t *good,
			size_t *bad, struct vc_error *err)
{
	*good = 0;
	*bad = 1;
	b->n = 2;
	VC_TRY(try_commit(b, &b->at[0], tree, b->end[0], err));
	VC_TRY(set_limit(b, &b->at[0], err));
	VC_TRY(try_commit(b, &b->at[1], tree, b->end[1], err));
	if (b->at[1].why[0])
		return vc_fail(err, VC_EIO, "%s", b->at[1].why);
	if (!is_bad(b, &b->at[1]))
		return VC_OK;
	VC_TRY(git(tree, NULL, 0, err, "bisect", "start", b->at[1].name, b->at[0].name, NULL));
	VC_TRY(run_bisect(b, tree, argc, argv, err));
	return take_ends(b, tree, err);
}

static int among_commits(struct bisect *b, size_t argc, char **argv, size_t *good, size_t *bad,
			 struct vc_error *err)
{
	char top[2048], prefix[1024], tree[600], here[3072], folder[400];
	int r;

	b->at = calloc(2, sizeof(*b->at));
	VC_HAVE(b->at, "the commits", err);
	if (git(".", top, sizeof(top), err, "rev-parse", "--show-toplevel", NULL) < 0)
		return vc_fail(err, VC_EUSAGE, "this is no repository of git, and --package names "
			       "none of its releases");
	for (int k = 0; k < 2; k++)
		VC_TRY(git(".", b->end[k], sizeof(b->end[k]), err, "rev-parse", "--verify",
			   k ? b->cfg->bad : b->cfg->good, NULL));
	VC_TRY(git(".", prefix, sizeof(prefix), err, "rev-parse", "--show-prefix", NULL));
	VC_TRY(vc_own_folder("bisect", folder, sizeof(folder), err));
	snprintf(tree, sizeof(tree), "%s/%016" PRIx64, folder,
		 vc_program_hash_bytes(top, strlen(top), 0));
	git(top, NULL, 0, &(struct vc_error){ 0 }, "worktree", "prune", NULL);
	if (access(tree, F_OK))
		VC_TRY(git(top, NULL, 0, err, "worktree", "add", "--quiet", "--detach", "--force",
			   tree, b->end[1], NULL));
	snprintf(here, sizeof(here), "%s/%s", tree, prefix);
	for (size_t i = 1; i < argc; i++)
		if (!strncmp(argv[i], top, strlen(top)) && argv[i][strlen(top)] == '/')
			return vc_fail(err, VC_EUSAGE, "%s: name files of the repository from the "
				       "folder in which you are", argv[i]);
	if (chdir(here) < 0 || !getcwd(here, sizeof(here)))
		return vc_fail(err, VC_EIO, "cannot go to %s: %s", here, strerror(errno));
	free(b->program->folder);
	b->program->folder = strdup(here);
	r = b->program->folder ? look_between(b, tree, argc, argv, good, bad, err) :
				 vc_nomem(err, "the commits");
	git(tree, NULL, 0, &(struct vc_error){ 0 }, "bisect", "reset", NULL);
	if (chdir(top) == 0)
		git(top, NULL, 0, &(struct vc_error){ 0 }, "worktree", "remove", "--force", tree,
		    NULL);
	return r;
}

/* ---- saying it ---- */

static const char *subject_of(const struct bisect *b, const struct try_out *t, char *buf, size_t n)
{
	buf[0] = '\0';
	if (!b->cfg->package)
		git(".", buf, n, &(struct vc_error){ 0 }, "log", "-1", "--format=%s", t->name,
		    NULL);
	return buf;
}

static int emit_difference(struct vc_emit *e, const struct bisect *b, const struct try_out *g,
			   const struct try_out *t, struct vc_error *err)
{
	const char *const name[2] = { g->name, t->name };
	char words[VC_SIDES_WORDS] = "", subject[200], from[32], to[32];
	struct vc_two two;
	int r = vc_two_open(&two, g->kept.path, t->kept.path, err);

	if (r == VC_OK) {
		vc_sides_words(two.x, &two.d, &two.grew, name, words, sizeof(words));
		subject_of(b, t, subject, sizeof(subject));
		vc_emit_text(e, "words", NULL, words);
		vc_emit_line(e, "%s%s%.20s is the first that needs more: %s -> %s reserved%s%s",
			     b->cfg->package ? b->cfg->package : "commit", " ", t->name,
			     vc_bytes_text(g->kept.reserved, from),
			     vc_bytes_text(t->kept.reserved, to), subject[0] ? "; " : "", subject);
		if (words[0])
			vc_emit_line(e, "  %s", words);
		vc_advised_emit(e, &b->tries);
		vc_sides_say_first(e, two.x, &two.d);
		vc_sides_emit_first(e, two.x, &two.d);
		vc_grew_emit(e, &two.grew);
		vc_emit_line(e, "\nall of it: vramcast diff %.8s %.8s", g->kept.id, t->kept.id);
	}
	vc_two_close(&two);
	return r;
}

static int say(const struct bisect *b, size_t good, size_t bad, struct vc_error *err)
{
	const struct try_out *g = &b->at[good], *t = &b->at[bad];
	struct vc_emit *e = vc_emit_stdout(b->cfg->json, err);
	bool found = is_bad(b, t);
	char from[32], to[32];
	int r = VC_OK;

	if (!e)
		return (int)err->status;
	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "schema", NULL, "vramcast.bisect/1");
	vc_emit_text(e, "first_bad", NULL, found ? t->name : NULL);
	vc_emit_text(e, "last_good", NULL, found ? g->name : NULL);
	vc_emit_bytes(e, "good_reserved", NULL, g->kept.reserved);
	vc_emit_bytes(e, "bad_reserved", NULL, t->kept.reserved);
	vc_emit_text(e, "a", NULL, g->kept.id);
	vc_emit_text(e, "b", NULL, t->kept.id);
	vc_emit_bool(e, "skipped", NULL, found && (b->skipped || bad - good > 1));
	if (!found)
		vc_emit_line(e, "no regression: %s reserves %s, %s reserves %s", b->cfg->good,
			     vc_bytes_text(g->kept.reserved, from), b->cfg->bad,
			     vc_bytes_text(t->kept.reserved, to));
	if (found && (b->skipped || bad - good > 1))
		vc_emit_line(e, "what lies between %s and %s does not run", g->name, t->name);
	if (found)
		r = emit_difference(e, b, g, t, err);
	vc_emit_end(e);
	if (r < 0) {
		vc_emit_drop(e);
		return r;
	}
	VC_TRY(vc_emit_done(e, err));
	return found ? FOUND : 0;
}

/* The diff of both, drawn; what it says of them was said. */
static int draw(const struct bisect *b, size_t good, size_t bad)
{
	const struct vc_command *diff = vc_command_find(b->con, "diff");
	char *line[] = { (char *)(uintptr_t)b->at[good].kept.path,
			 (char *)(uintptr_t)b->at[bad].kept.path, (char *)(uintptr_t)"-o",
			 (char *)(uintptr_t)b->cfg->output, (char *)(uintptr_t)"--no-verify" };
	void *cfg = calloc(1, diff->config_size);
	size_t operands = 0;
	int r;

	VC_HAVE(cfg, "a picture", &b->con->err);
	fflush(stdout);
	int own = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (own >= 0 && nowhere >= 0)
		dup2(nowhere, STDOUT_FILENO);
	r = vc_opt_parse(diff, cfg, 5, line, &operands, b->con);
	if (r == VC_OK)
		r = diff->run(cfg, operands, line, b->con);
	if (own >= 0 && nowhere >= 0)
		dup2(own, STDOUT_FILENO);
	close(own);
	close(nowhere);
	vc_opt_fini(diff, cfg);
	free(cfg);
	return r;
}

/* ---- the command ---- */

static int step(struct bisect *b)
{
	struct try_out t = { .done = false };
	struct vc_error *err = &b->con->err;

	b->limit = b->cfg->budget;
	if (git(".", t.name, sizeof(t.name), err, "rev-parse", "--short=12", "HEAD", NULL) < 0)
		return SKIP;
	if (try_one(b, &t, err) < 0 || t.why[0])
		return SKIP;
	return is_bad(b, &t) ? BAD : GOOD;
}

static int check(const struct config *c, size_t argc, struct vc_error *err)
{
	const struct vc_card *card;

	if (c->gpu.n != 1)
		return vc_fail(err, VC_EUSAGE, "which card? one, as in -g rtx4090");
	VC_TRY(vc_card_find(c->gpu.at[0], &card, err));
	if (!argc)
		return vc_fail(err, VC_EUSAGE, "which program? try -- python train.py");
	if (c->step && c->budget == VC_NOT_GIVEN)
		return vc_fail(err, VC_EUSAGE, "--step needs --budget");
	if (!c->step && (!c->good || !c->bad))
		return vc_fail(err, VC_EUSAGE, "--good and --bad name two ends");
	return VC_OK;
}

static int bisect(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	const struct vc_list none = { .n = 0 };
	struct bisect b = { .cfg = c, .con = con, .limit = c->budget };
	size_t good = 0, bad = 0;
	int r = check(c, argc, &con->err);

	if (r == VC_OK)
		r = vc_own_describe(argc, argv, &none, &b.program, &con->err);
	if (r == VC_OK && c->step) {
		r = step(&b);
	} else if (r == VC_OK) {
		r = c->package ? among_releases(&b, &good, &bad, &con->err) :
				 among_commits(&b, argc, argv, &good, &bad, &con->err);
		if (r == VC_OK)
			r = say(&b, good, bad, &con->err);
		if (r == FOUND && c->output)
			r = draw(&b, good, bad) < 0 ? (int)con->err.status : FOUND;
	}
	vc_program_free(b.program);
	free(b.at);
	return r;
}

const struct vc_command vc_command_bisect = {
	.name = "bisect", .operands = "[--] PROGRAM [ARG]...",
	.summary = "which release or commit made a program need more memory",
	.details =
		"Exit codes: 4, and 0 where there is no regression. By hand:\n\n"
		"  git bisect run vramcast bisect --step --budget 12GiB -g t4 -- python t.py",
	.options = VC_OPTIONS(bisect_options), .config_size = sizeof(struct config),
	.flags = VC_CMD_PASSTHROUGH, .run = bisect,
};
