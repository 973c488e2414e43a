/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_plan.c - vramcast plan: where the blocks of a recording would best lie, and how far from the
 * best PyTorch's own allocator is. */

#include "commands/plan_file.h"
#include "commands/progress.h"
#include "common/emit.h"
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
	  "write the placement (.vcp)", NULL },
	{ 0, "effort", VC_O_UINT, AT(effort), "N",
	  "how much to try, in units of 100 million steps (about 0.1 s); the same effort gives "
	  "the same placement", "10" },
	{ 0, "json", VC_O_FLAG, AT(json), NULL, "one JSON document (vramcast.plan/1)", NULL },
	VC_OPTION_END
};

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 1;
}

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

static void say_plan(struct vc_emit *e, const struct answer *a)
{
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

static int say(const struct answer *a, bool json, struct vc_error *err)
{
	struct vc_emit *e = vc_emit_stdout(json, err);

	if (!e)
		return (int)err->status;
	say_plan(e, a);
	return vc_emit_done(e, err);
}

static int plan_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_session s;
	struct vc_planned p = { 0 };
	struct answer a = { .s = &s, .p = &p };
	struct vc_progress *line;
	int r;

	if (argc != 1)
		return vc_fail(&con->err, VC_EUSAGE, "plan wants one trace, not %zu", argc);
	line = vc_progress_open(con);
	r = vc_session_open(&s, &c->run, 1, argv, VC_SESSION_IN_MEMORY, &con->err);
	vc_progress_say(line, "the blocks of the recording are packed");
	if (r == VC_OK)
		r = vc_sequence_plan(&s.rec->trace, s.rec->device->device, c->effort, &p,
				     &con->err);
	if (r == VC_OK)
		r = compare_native(&s, &a.native, &con->err);
	if (r == VC_OK)
		r = write_plan(&p, c, &con->err);
	vc_progress_close(line);
	if (r == VC_OK)
		r = say(&a, c->json, &con->err);
	vc_planned_fini(&p);
	vc_session_close(&s);
	return r;
}

const struct vc_command vc_command_plan = {
	.name = "plan", .operands = "TRACE",
	.summary = "where the blocks would best lie, and how little memory would do",
	.details =
		"Places the blocks of a recording, whose lives are known, so that they take as "
		"little memory as\npossible, stream by stream. Says the lower bound, and whether "
		"the placement is proven to be the best.\n'vramcast run --plan' runs the program "
		"with it.\n\n"
		"  vramcast plan train.vct -o train.vcp",
	.options = VC_OPTIONS(vc_run_options, options),
	.config_size = sizeof(struct config), .run = plan_run,
};
