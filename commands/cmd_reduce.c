/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_reduce.c - vramcast reduce: the lines of many sweeps, as one would have written them. */

#include "common/io.h"
#include "common/json.h"
#include "common/opt.h"
#include "common/vec.h"

enum { GOALS = 4 };

struct config {
	const char *output, *max, *pareto;
	uint64_t runs; /* VC_NOT_GIVEN: not told */
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option options[] = {
	{ 0, "max", VC_O_TEXT, AT(max), "KEY",
	  "of lines that differ in this key of --vary only, keep the one that reserves most",
	  NULL },
	{ 0, "pareto", VC_O_TEXT, AT(pareto), "FIELD,FIELD",
	  "keep what no other line beats in every field; smaller is better, with - in front "
	  "larger: peak_used,-vary.batch", NULL },
	{ 0, "runs", VC_O_UINT, AT(runs), "N",
	  "fail unless all N runs of the sweep are there, each once", NULL },
	{ 'o', "output", VC_O_FILE, AT(output), "FILE", "lines of JSON into FILE", "-" },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { options, NULL };

struct bytes {
	char *at;
	size_t n, cap;
};

struct line {
	const char *at;
	uint32_t len, file;
	uint64_t id;
	double reserved;
	char *group;         /* what is varied beside --max, ours */
	double goal[GOALS];  /* fields of --pareto, less is better; NAN: the line lacks one */
	bool gone;
};

struct reduce {
	const struct config *cfg;
	char **name;
	struct bytes *file;
	size_t files;
	struct line *line;
	size_t n, cap, torn, twice;
	char field[GOALS][64]; /* paths, "vary.batch" */
	bool larger[GOALS];
	size_t goals;
};

/* ---- reading ---- */

static int read_file(struct bytes *b, const char *path, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(path, err);
	const uint8_t *p;
	size_t got = 1;

	if (!in)
		return err->status;
	while (got) {
		p = vc_input_peek(in, 1 << 16, &got, err);
		if (!p || !vc_vec_room(b->at, b->cap, b->n + got + 1)) {
			vc_input_close(in);
			return p ? vc_nomem(err, path) : (int)err->status;
		}
		memcpy(b->at + b->n, p, got);
		b->n += got;
		vc_input_skip(in, got);
	}
	vc_input_close(in);
	return VC_OK;
}

static int add_line(struct reduce *r, size_t file, const char *at, size_t len, size_t number,
		    struct vc_error *err)
{
	static const char begin[] = "{\"id\":";
	struct line l = { .at = at, .len = (uint32_t)len, .file = (uint32_t)file };
	char *end = NULL;

	if (len > sizeof(begin) && !strncmp(at, begin, sizeof(begin) - 1) && at[len - 1] == '}')
		l.id = strtoull(at + sizeof(begin) - 1, &end, 10);
	if (!end || *end != ',' || len > UINT32_MAX)
		return vc_fail(err, VC_EFORMAT, "%s, line %zu: no line of 'vramcast sweep --json', "
			       "which begin with {\"id\":N,", r->name[file], number);
	VC_HAVE(vc_vec_room(r->line, r->cap, r->n + 1), "the lines", err);
	r->line[r->n++] = l;
	return VC_OK;
}

/* What was cut off in the middle of its last line had no time to write it. */
static int split(struct reduce *r, size_t file, struct vc_error *err)
{
	const struct bytes *b = &r->file[file];
	size_t number = 1;

	for (size_t at = 0; at < b->n; number++) {
		const char *end = memchr(b->at + at, '\n', b->n - at);

		if (!end) {
			r->torn++;
			return VC_OK;
		}
		VC_TRY(add_line(r, file, b->at + at, (size_t)(end - b->at) - at, number, err));
		at = (size_t)(end - b->at) + 1;
	}
	return VC_OK;
}

/* ---- once each ---- */

VC_COMPARE(by_id, struct line, VC_THEN(VC_ORDER(x->id, y->id), VC_ORDER(x->file, y->file)))

static void close_gaps(struct reduce *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->line[i].gone)
			free(r->line[i].group);
		else
			r->line[kept++] = r->line[i];
	}
	r->n = kept;
}

static int once_each(struct reduce *r, struct vc_error *err)
{
	if (r->n)
		qsort(r->line, r->n, sizeof(*r->line), by_id);
	for (size_t i = 0, first = 0; i < r->n; i++) {
		const struct line *a = &r->line[first], *b = &r->line[i];

		if (i == first || a->id != b->id) {
			first = i;
			continue;
		}
		if (a->len != b->len || memcmp(a->at, b->at, a->len))
			return vc_fail(err, VC_EFORMAT, "run %" PRIu64 " is in %s and in %s, and "
				       "they do not agree: these are not parts of one sweep", a->id,
				       r->name[a->file], r->name[b->file]);
		r->line[i].gone = true;
		r->twice++;
	}
	close_gaps(r);
	return VC_OK;
}

/* A part that nobody made leaves holes, or an end that comes too early. */
static int all_there(const struct reduce *r, struct vc_error *err)
{
	uint64_t runs = r->cfg->runs;
	size_t i = 0;

	if (runs == VC_NOT_GIVEN)
		return VC_OK;
	while (i < r->n && r->line[i].id == i)
		i++;
	if (i == r->n && i == runs)
		return VC_OK;
	if (r->n && r->line[r->n - 1].id >= runs)
		return vc_fail(err, VC_EFORMAT, "run %" PRIu64 " is there, and --runs %" PRIu64
			       " ends before it", r->line[r->n - 1].id, runs);
	return vc_fail(err, VC_EFORMAT, "%" PRIu64 " of %" PRIu64 " runs are missing, run %zu "
		       "first: make that part again with the same --shard and --resume",
		       runs - r->n, runs, i);
}

/* ---- fields ---- */

/* One walk over the line: numbers at the wanted paths, and the text of "vary" without one key. */
struct walk {
	struct reduce *r;
	struct line *l;
	struct vc_output *group;
	bool member; /* --max names a key of this line */
	size_t left; /* fields not found yet: behind the last the line is not read */
};

static void note(struct walk *w, const char *path, const struct vc_json *j)
{
	for (size_t i = 0; i < w->r->goals; i++)
		if (!strcmp(path, w->r->field[i])) {
			w->l->goal[i] = w->r->larger[i] ? -j->real : j->real;
			w->left--;
		}
	if (w->group && !strcmp(path, "peak_reserved")) {
		w->l->reserved = j->real;
		w->left--;
	}
}

static void vary(struct walk *w, const char *key, const struct vc_json *j)
{
	if (!w->group || strncmp(key, "vary.", 5))
		return;
	if (!strcmp(key + 5, w->r->cfg->max)) {
		w->member = true;
		return;
	}
	vc_output_printf(w->group, "%s=", key + 5);
	vc_output_write(w->group, j->text, j->len);
	vc_output_text(w->group, "\n");
}

/* Objects inside "vary" and other objects one level deep; deeper ones are passed over. */
static int walk_object(struct walk *w, struct vc_json *j, const char *prefix, struct vc_error *err)
{
	char path[160];
	int t = VC_OK;

	while (w->left && (t = vc_json_next(j, err)) == VC_J_KEY) {
		snprintf(path, sizeof(path), "%s%.*s", prefix, (int)(j->len < 80 ? j->len : 80),
			 j->text);
		t = vc_json_next(j, err);
		if (t == VC_J_NUMBER)
			note(w, path, j);
		if (t == VC_J_NUMBER || t == VC_J_TEXT)
			vary(w, path, j);
		if (t == VC_J_OBJECT && !*prefix) {
			snprintf(path + strlen(path), sizeof(path) - strlen(path), ".");
			t = walk_object(w, j, path, err);
		} else if (t == VC_J_OBJECT || t == VC_J_ARRAY) {
			t = vc_json_skip(j, t, err);
		}
		if (t < 0)
			return t;
	}
	return t < 0 ? t : VC_OK;
}

static int look_into(struct reduce *r, struct line *l, struct vc_error *err)
{
	struct walk w = { .r = r, .l = l };
	struct vc_input *in = vc_input_memory(l->at, l->len, err);
	struct vc_json j;
	size_t n;
	int rc = in ? vc_json_open(&j, in, err) : (int)err->status;

	if (rc < 0) {
		vc_input_close(in);
		return rc;
	}
	for (size_t i = 0; i < GOALS; i++)
		l->goal[i] = NAN;
	w.group = r->cfg->max ? vc_output_memory(err) : NULL;
	w.left = r->goals + (r->cfg->max != NULL);
	rc = r->cfg->max && !w.group ? (int)err->status : vc_json_next(&j, err);
	if (rc == VC_J_OBJECT)
		rc = walk_object(&w, &j, "", err);
	if (rc >= 0 && w.group && !w.member)
		rc = vc_fail(err, VC_EUSAGE, "--max %s: run %" PRIu64 " varies no %s", r->cfg->max,
			     l->id, r->cfg->max);
	if (rc >= 0 && w.group && !(l->group = vc_output_take(w.group, &n)))
		rc = vc_nomem(err, "the lines");
	vc_output_close(w.group);
	vc_json_close(&j);
	vc_input_close(in);
	return rc < 0 ? vc_wrap(err, "%s, run %" PRIu64, r->name[l->file], l->id) : VC_OK;
}

static int parse_goals(struct reduce *r, struct vc_error *err)
{
	const char *p = r->cfg->pareto;

	while (p && *p) {
		size_t n = strcspn(p, ",");
		bool larger = *p == '-';

		if (r->goals == GOALS || n - larger == 0 || n - larger >= sizeof(r->field[0]))
			return vc_fail(err, VC_EUSAGE, "--pareto %s: one to %d fields, with commas",
				       r->cfg->pareto, GOALS);
		r->larger[r->goals] = larger;
		snprintf(r->field[r->goals++], sizeof(r->field[0]), "%.*s", (int)(n - larger),
			 p + larger);
		p += n + (p[n] == ',');
	}
	return VC_OK;
}

/* ---- the largest of a group ---- */

static int by_group(const void *first, const void *second)
{
	const struct line *x = first, *y = second;
	int order = strcmp(x->group, y->group);

	return order ? order : VC_THEN(VC_ORDER(y->reserved, x->reserved), VC_ORDER(x->id, y->id));
}

static void keep_largest(struct reduce *r)
{
	if (r->n)
		qsort(r->line, r->n, sizeof(*r->line), by_group);
	for (size_t i = 1; i < r->n; i++)
		r->line[i].gone = !strcmp(r->line[i].group, r->line[i - 1].group);
	close_gaps(r);
	if (r->n)
		qsort(r->line, r->n, sizeof(*r->line), by_id);
}

/* ---- what nothing beats ---- */

static int by_goals(const void *first, const void *second)
{
	const struct line *x = first, *y = second;

	for (size_t i = 0; i < GOALS; i++)
		if (x->goal[i] != y->goal[i] && !isnan(x->goal[i]))
			return VC_ORDER(x->goal[i], y->goal[i]);
	return VC_ORDER(x->id, y->id);
}

static bool beats(const struct line *a, const struct line *b, size_t goals)
{
	bool better = false;

	for (size_t i = 0; i < goals; i++) {
		if (a->goal[i] > b->goal[i])
			return false;
		better |= a->goal[i] < b->goal[i];
	}
	return better;
}

static bool equal(const struct line *a, const struct line *b, size_t goals)
{
	for (size_t i = 0; i < goals; i++)
		if (a->goal[i] != b->goal[i])
			return false;
	return true;
}

/* Lines without one of the fields take no part. Equal ones are neighbours and share a fate, so the
 * front holds one of each. */
static int keep_front(struct reduce *r, struct vc_error *err)
{
	uint32_t *front = NULL;
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < r->goals; k++)
			r->line[i].gone |= isnan(r->line[i].goal[k]);
	close_gaps(r);
	if (r->n)
		qsort(r->line, r->n, sizeof(*r->line), by_goals);
	for (size_t i = 0; i < r->n; i++) {
		struct line *l = &r->line[i];

		if (i && equal(l - 1, l, r->goals)) {
			l->gone = l[-1].gone;
			continue;
		}
		for (size_t k = 0; k < n && !l->gone; k++)
			l->gone = beats(&r->line[front[k]], l, r->goals);
		if (l->gone)
			continue;
		if (!vc_vec_one(front, n)) {
			free(front);
			return vc_nomem(err, "the front");
		}
		front[n++] = (uint32_t)i;
	}
	free(front);
	close_gaps(r);
	if (r->n)
		qsort(r->line, r->n, sizeof(*r->line), by_id);
	return VC_OK;
}

/* ---- all of it ---- */

static int choose(struct reduce *r, struct vc_error *err)
{
	VC_TRY(parse_goals(r, err));
	for (size_t i = 0; i < r->n && (r->cfg->max || r->goals); i++)
		VC_TRY(look_into(r, &r->line[i], err));
	if (r->cfg->max)
		keep_largest(r);
	return r->goals ? keep_front(r, err) : VC_OK;
}

static int write_lines(const struct reduce *r, struct vc_error *err)
{
	struct vc_output *out = vc_output_open(r->cfg->output, err);
	int rc;

	if (!out)
		return err->status;
	for (size_t i = 0; i < r->n; i++) {
		vc_output_write(out, r->line[i].at, r->line[i].len);
		vc_output_text(out, "\n");
	}
	rc = vc_output_commit(out, err);
	vc_output_close(out);
	return rc;
}

static int reduce_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	struct reduce r = { .cfg = config, .name = argv, .files = argc };
	size_t read = 0;
	int rc = argc ? VC_OK : vc_fail(&con->err, VC_EUSAGE, "which files? those that 'vramcast "
					"sweep -o' wrote, or - for standard input");

	if (rc == VC_OK && !(r.file = calloc(argc, sizeof(*r.file))))
		rc = vc_nomem(&con->err, "the files");
	for (size_t i = 0; rc == VC_OK && i < argc; i++) {
		rc = read_file(&r.file[i], argv[i], &con->err);
		if (rc == VC_OK)
			rc = split(&r, i, &con->err);
	}
	read = r.n;
	if (rc == VC_OK)
		rc = once_each(&r, &con->err);
	if (rc == VC_OK)
		rc = all_there(&r, &con->err);
	if (rc == VC_OK)
		rc = choose(&r, &con->err);
	if (rc == VC_OK)
		rc = write_lines(&r, &con->err);
	if (rc == VC_OK && !con->quiet)
		fprintf(stderr, "vramcast reduce: %zu lines of %zu file%s, %zu there twice, "
			"%zu cut off; %zu kept\n", read, argc, argc == 1 ? "" : "s", r.twice,
			r.torn, r.n);
	for (size_t i = 0; i < r.n; i++)
		free(r.line[i].group);
	for (size_t i = 0; r.file && i < argc; i++)
		free(r.file[i].at);
	VC_FREE(r.file, r.line);
	return rc;
}

const struct vc_command vc_command_reduce = {
	.name = "reduce", .operands = "FILE...",
	.summary = "the results of many sweeps as one: merged, without doubles, the best of them",
	.details =
		"FILES are what parts of a sweep wrote ('sweep --shard I/N -o FILE'), in any order "
		"and number; - is\nstandard input. The result is what one sweep would have "
		"written, byte for byte. A line that is\nthere twice counts once; the last line "
		"of a file that was cut off is dropped, and counted.\n\n"
		"  vramcast reduce part-*.jsonl -o all.jsonl\n"
		"  vramcast reduce part-*.jsonl --max rank --pareto peak_used,-vary.batch",
	.options = tables, .config_size = sizeof(struct config), .run = reduce_run,
};
