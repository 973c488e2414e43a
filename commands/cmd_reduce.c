/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_reduce.c - vramcast reduce: the lines of many sweeps, as one would have written them. */

#include "common/io.h"
#include "common/opt.h"
#include "common/vec.h"

struct config {
	const char *output;
	uint64_t runs; /* VC_NOT_GIVEN: not told */
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option options[] = {
	{ 0, "runs", VC_O_UINT, AT(runs), "N",
	  "fail unless all N runs of the sweep are there, each once", NULL },
	{ 'o', "output", VC_O_FILE, AT(output), "FILE", "lines of JSON into FILE", "-" },
	VC_OPTION_END
};

struct line { const char *at; uint32_t len, file; uint64_t id; bool gone; };

struct reduce {
	const struct config *cfg;
	char **name, **text; /* of the files */
	struct line *line;
	size_t n, cap, torn, twice;
};

/* ---- reading ---- */

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
static int read_lines(struct reduce *r, size_t file, struct vc_error *err)
{
	struct vc_input *in = vc_input_open(r->name[file], err);
	const char *at = in ? r->text[file] = vc_input_all(in, NULL, err) : NULL, *end;

	vc_input_close(in);
	if (!at)
		return (int)err->status;
	for (size_t number = 1; (end = strchr(at, '\n')); at = end + 1)
		VC_TRY(add_line(r, file, at, (size_t)(end - at), number++, err));
	r->torn += *at != '\0';
	return VC_OK;
}

/* ---- once each ---- */

VC_COMPARE(by_id, struct line, VC_THEN(VC_ORDER(x->id, y->id), VC_ORDER(x->file, y->file)))

static void close_gaps(struct reduce *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n; i++)
		if (!r->line[i].gone)
			r->line[kept++] = r->line[i];
	r->n = kept;
}

static int once_each(struct reduce *r, struct vc_error *err)
{
	if (r->n)
		vc_sort(r->line, r->n, sizeof(*r->line), by_id);
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
	struct reduce r = { .cfg = config, .name = argv,
			    .text = calloc(argc + 1, sizeof(*r.text)) };
	int rc = argc ? VC_OK : vc_fail(&con->err, VC_EUSAGE, "which files? those that 'vramcast "
					"sweep -o' wrote, or - for standard input");

	if (rc == VC_OK && !r.text)
		rc = vc_nomem(&con->err, "the files");
	for (size_t i = 0; rc == VC_OK && i < argc; i++)
		rc = read_lines(&r, i, &con->err);
	size_t read = r.n;
	if (rc == VC_OK)
		rc = once_each(&r, &con->err);
	if (rc == VC_OK)
		rc = all_there(&r, &con->err);
	if (rc == VC_OK)
		rc = write_lines(&r, &con->err);
	if (rc == VC_OK && !con->quiet)
		fprintf(stderr, "vramcast reduce: %zu lines of %zu file%s, %zu there twice, "
			"%zu cut off; %zu kept\n", read, argc, argc == 1 ? "" : "s", r.twice,
			r.torn, r.n);
	for (size_t i = 0; r.text && i < argc; i++)
		free(r.text[i]);
	VC_FREE(r.text, r.line);
	return rc;
}

const struct vc_command vc_command_reduce = {
	.name = "reduce", .operands = "FILE...",
	.summary = "the results of many sweeps as one: merged, without doubles",
	.details =
		"FILES are what parts of a sweep wrote ('sweep --shard I/N -o FILE'), in any order "
		"and number; - is\nstandard input. The result is what one sweep would have "
		"written, byte for byte. A line that is\nthere twice counts once; the last line "
		"of a file that was cut off is dropped, and counted.\n\n"
		"  vramcast reduce part-*.jsonl -o all.jsonl",
	.options = VC_OPTIONS(options), .config_size = sizeof(struct config), .run = reduce_run,
};
