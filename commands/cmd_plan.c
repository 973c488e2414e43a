/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - vramcast plan: where the blocks of a recording would best lie, and how far from the
 * best PyTorch's own allocator is. */

#include "commands/plan_file.h"
#include "commands/progress.h"
#include "common/emit.h"
#include "simulator/packing/pack_csv.h"
#include "simulator/packing/sequence.h"
#include "simulator/session/session.h"

struct config {
	struct vc_run_options run;
	const char *out;
	uint64_t effort;
	bool json;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option options[] = {
	{ 'o', "output", VC_O_FILE, AT(out), "FILE",
	  "write the placement (.vcp), or the offsets of a problem (.csv)", NULL },
	{ 0, "effort", VC_O_UINT, AT(effort), "N",
	  "how much to try, in units of 100 million steps (about 0.1 s); the same effort gives "
	  "the same placement", "10" },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document (vramcast.plan/1)", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { vc_run_options, options, NULL };

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 1;
}

typedef void say_fn(struct vc_emit *e, const void *what);

static int say(const struct config *c, say_fn *fn, const void *what, struct vc_error *err)
{
	struct vc_output *out = vc_output_open("-", err);
	struct vc_emit *e =
		out ? vc_emit_new(out, c->json ? VC_EMIT_JSON : VC_EMIT_TEXT, err) : NULL;
	int r = e ? VC_OK : (int)err->status;

	if (e) {
		fn(e, what);
		r = vc_emit_finish(e, err);
	}
	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	return r;
}

/* ---- a problem in CSV ---- */

static void say_problem(struct vc_emit *e, const void *what)
{
	const struct vc_packing *p = what;

	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.plan/1");
	vc_emit_uint(e, "blocks", "blocks", p->n);
	vc_emit_uint(e, "bound", "lower bound", p->bound);
	vc_emit_uint(e, "height", "height found", p->height);
	vc_emit_real(e, "ratio", "height / bound", ratio(p->height, p->bound));
	vc_emit_bool(e, "proven", "proven best", p->proven);
	vc_emit_text(e, "how", "found", p->how);
	vc_emit_uint(e, "steps", "steps", p->work);
	vc_emit_end(e);
}

static int write_problem(const struct vc_problem *p, const char *path, struct vc_error *err)
{
	struct vc_output *out = path ? vc_output_open(path, err) : NULL;
	int r = path && !out ? (int)err->status : VC_OK;

	if (out) {
		vc_problem_write(p, out);
		r = vc_output_commit(out, err);
	}
	vc_output_close(out);
	return r;
}

static int plan_problem(const struct config *c, struct vc_input *in, struct vc_progress *line,
			struct vc_error *err)
{
	struct vc_problem p;
	int r = vc_problem_read(&p, in, err);

	vc_progress_say(line, "%zu blocks are packed", r == VC_OK ? p.packing.n : 0);
	if (r == VC_OK)
		r = vc_pack(&p.packing, c->effort, err);
	vc_progress_hush(line);
	if (r < 0)
		vc_wrap(err, "%s", vc_input_name(in));
	if (r == VC_OK)
		r = write_problem(&p, c->out, err);
	if (r == VC_OK)
		r = say(c, say_problem, &p.packing, err);
	vc_problem_fini(&p);
	return r;
}

/* ---- a recording ---- */

struct answer { const struct vc_session *s; const struct vc_planned *p; struct vc_stats native; };

static void say_parts(struct vc_emit *e, const struct vc_planned *p)
{
	vc_emit_array(e, "areas", p->plan.areas > 1 ? "Each stream has an area of its own:" : NULL);
	for (size_t i = 0; i < p->plan.areas; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_uint(e, "stream", "stream", i);
		vc_emit_bytes(e, "bytes", "bytes", p->plan.area[i].size);
		vc_emit_bytes(e, "bound", "lower bound", p->plan.area[i].bound);
		vc_emit_end(e);
	}
	vc_emit_end(e);
}

static void say_remarks(struct vc_emit *e, const struct vc_planned *p)
{
	char t[32];

	if (p->plan.last)
		vc_emit_line(e, "The last %zu placed requests repeat.",
			     p->plan.last - p->plan.first);
	if (p->elsewhere)
		vc_emit_line(e, "%" PRIu64 " requests of private pools (at most %s at once) are "
			     "left to PyTorch's allocator.", p->elsewhere,
			     vc_bytes_text(p->elsewhere_peak, t));
	if (p->growing)
		vc_emit_line(e, "%" PRIu64 " repeated requests (%s) outlive the repetition and "
			     "are left to PyTorch's allocator.", p->growing,
			     vc_bytes_text(p->growing_bytes, t));
	if (p->at_start)
		vc_emit_line(e, "%" PRIu64 " blocks lived before the recording began: this shows "
			     "what is possible, and cannot be run.", p->at_start);
}

static void say_plan(struct vc_emit *e, const void *what)
{
	const struct answer *a = what;
	const struct vc_planned *p = a->p;

	vc_emit_object(e, NULL, "");
	vc_emit_text(e, "schema", NULL, "vramcast.plan/1");
	vc_emit_text(e, "trace", "trace", a->s->rec->path);
	vc_emit_uint(e, "device", "device", a->s->rec->device->device);
	vc_emit_uint(e, "requests", "requests", p->requests);
	vc_emit_uint(e, "planned", "planned", p->plan.n);
	vc_emit_uint(e, "repeat_first", NULL, p->plan.first);
	vc_emit_uint(e, "repeat_last", NULL, p->plan.last);
	vc_emit_bytes(e, "bound", "lower bound, all streams", p->bound);
	vc_emit_bytes(e, "bound_streams", "lower bound, stream by stream", p->bounds);
	vc_emit_bytes(e, "arena", "arena of the placement", p->plan.arena);
	vc_emit_real(e, "ratio", "arena / bound", ratio(p->plan.arena, p->bounds));
	vc_emit_bool(e, "proven", "proven best", p->proven);
	vc_emit_text(e, "how", "found", p->how);
	vc_emit_bytes(e, "native_reserved", "PyTorch's allocator reserves",
		      a->native.peak_reserved);
	vc_emit_real(e, "native_ratio", "that / arena", ratio(a->native.peak_reserved,
							      p->plan.arena));
	vc_emit_uint(e, "elsewhere", NULL, p->elsewhere);
	vc_emit_uint(e, "elsewhere_peak", NULL, p->elsewhere_peak);
	vc_emit_uint(e, "growing", NULL, p->growing);
	vc_emit_uint(e, "growing_bytes", NULL, p->growing_bytes);
	vc_emit_uint(e, "at_start", NULL, p->at_start);
	say_parts(e, p);
	vc_emit_end(e);
	say_remarks(e, p);
}

static int compare_native(struct vc_session *s, struct vc_stats *out, struct vc_error *err)
{
	struct vc_plan *plan = NULL;
	struct vc_result r;
	size_t n = 0;
	int rc = vc_session_plans(s, &plan, &n, err);

	if (rc == VC_OK)
		rc = vc_session_replay(s, plan, NULL, &r, err);
	if (rc == VC_OK) {
		*out = r.stats;
		vc_result_fini(&r);
	}
	free(plan);
	return rc;
}

static int write_plan(const struct vc_planned *p, const struct config *c, struct vc_error *err)
{
	if (!c->out)
		return VC_OK;
	if (p->at_start)
		return vc_fail(err, VC_EUSAGE, "-o %s: %" PRIu64 " blocks lived before the "
			       "recording began, so where they lie cannot be chosen; record the "
			       "program from its start ('vramcast record')", c->out, p->at_start);
	return vc_plan_file_write(&p->plan, c->out, err);
}

static int plan_trace(const struct config *c, char *path, struct vc_progress *line,
		      struct vc_error *err)
{
	struct vc_session s;
	struct vc_planned p = { 0 };
	struct answer a = { .s = &s, .p = &p };
	int r = vc_session_open(&s, &c->run, 1, &path, VC_SESSION_IN_MEMORY, err);

	vc_progress_say(line, "the blocks of the recording are packed");
	if (r == VC_OK)
		r = vc_sequence_plan(&s.rec->trace, s.rec->device->device, c->effort, &p, err);
	if (r == VC_OK)
		r = compare_native(&s, &a.native, err);
	if (r == VC_OK)
		r = write_plan(&p, c, err);
	vc_progress_hush(line);
	if (r == VC_OK)
		r = say(c, say_plan, &a, err);
	vc_planned_fini(&p);
	vc_session_close(&s);
	return r;
}

static int plan_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_progress *line;
	struct vc_input *in;
	bool problem;
	int r;

	if (argc != 1)
		return vc_fail(&con->err, VC_EUSAGE, "plan wants one trace or one problem (.csv), "
			       "not %zu", argc);
	in = vc_input_is_stream(argv[0]) ? NULL : vc_input_open(argv[0], &con->err);
	if (!in && !vc_input_is_stream(argv[0]) && !strchr(argv[0], '@'))
		return con->err.status;
	problem = in && vc_problem_probe(in);
	line = vc_progress_open(con);
	r = problem ? plan_problem(c, in, line, &con->err) : VC_OK;
	vc_input_close(in);
	r = problem ? r : plan_trace(c, argv[0], line, &con->err);
	vc_progress_close(line);
	return r;
}

const struct vc_command vc_command_plan = {
	.name = "plan", .operands = "TRACE|PROBLEM.csv",
	.summary = "where the blocks would best lie, and how little memory would do",
	.details =
		"Places the blocks of a recording, whose lives are known, so that they take as "
		"little memory as\npossible, stream by stream. Says the lower bound, and whether "
		"the placement is proven to be the best.\n'vramcast run --plan' runs the program with "
		"it. A CSV file with the columns id, lower, upper and size\nis a problem of "
		"packing; -o writes it with a column offset.\n\n"
		"  vramcast plan train.vct -o train.vcp\n"
		"  vramcast plan problem.csv -o placed.csv",
	.options = tables, .config_size = sizeof(struct config), .run = plan_run,
};
