/* SPDX-License-Identifier: Apache-2.0 */
/* junit.c - runs as JUnit test cases, for the test tab of a CI server: a run that runs out of
 * memory fails, one that fits only by emptying its cache fails unless flushes=pass, and one that is
 * undecided is skipped. */

#include "common/io.h"
#include "simulator/findings/findings.h"
#include "visualize/sink.h"

struct config { uint64_t flushes; };
enum { FAIL, PASS };

static const struct vc_param params[] = {
	{ "flushes", VC_P_ENUM, offsetof(struct config, flushes), "fail",
	  "a run that fits only by emptying its cache", "fail,pass" },
	VC_PARAM_END
};

/* XML 1.0 has no control characters but three. */
static void put(struct vc_output *o, const char *s)
{
	for (; s && *s; s++) {
		const char *e = *s == '&' ? "&amp;" : *s == '<' ? "&lt;" : *s == '>' ? "&gt;" :
				*s == '"' ? "&quot;" : (unsigned char)*s < 32 ? " " : NULL;

		if (e)
			vc_output_text(o, e);
		else
			vc_output_write(o, s, 1);
	}
}

static bool fails(const struct vc_result *r, const struct config *c)
{
	enum vc_verdict v = vc_result_verdict(r);

	return v == VC_OOM || (v == VC_FLUSHES && c->flushes == FAIL);
}

static void put_name(struct vc_output *o, const struct vc_run_info *i)
{
	const char *const part[] = { i->model, i->torch, i->gpu, i->conf, i->change };

	for (size_t k = 0; k < sizeof(part) / sizeof(*part); k++)
		if (part[k] && *part[k]) {
			vc_output_text(o, k ? " " : "");
			put(o, part[k]);
		}
	if (i->vary)
		vc_output_printf(o, " %s=%.15g", i->vary, i->value);
}

static void test_case(struct vc_output *o, const struct vc_result *r, const struct config *c)
{
	enum vc_verdict v = vc_result_verdict(r);
	char answer[VC_SAY];

	vc_answer_text(r, false, answer, sizeof(answer));
	vc_output_text(o, "  <testcase classname=\"");
	put(o, r->info.trace);
	vc_output_text(o, "\" name=\"");
	put_name(o, &r->info);
	vc_output_text(o, "\">\n");
	if (fails(r, c) || v == VC_UNDECIDED) {
		vc_output_printf(o, v == VC_UNDECIDED ? "    <skipped message=\"" :
				 "    <failure type=\"%s\" message=\"", vc_verdict_name(v));
		put(o, answer);
		vc_output_text(o, v == VC_UNDECIDED ? "\"/>\n" : "\">");
	}
	if (fails(r, c)) {
		put(o, r->oom.message);
		vc_output_text(o, "</failure>\n");
	}
	vc_output_text(o, "    <system-out>");
	put(o, answer);
	if (r->trust.level)
		vc_output_printf(o, "; level %s, %s", vc_level_name(r->trust.level),
				 r->trust.reproduced ? "checked and reproduced" :
				 r->trust.checked    ? "checked and not reproduced" :
						       "not checked");
	vc_output_text(o, "</system-out>\n  </testcase>\n");
}

static int junit_write(const struct vc_result *runs, size_t n, const void *config,
		       struct vc_output *out, struct vc_error *err)
{
	const struct config *c = config;
	size_t failed = 0, skipped = 0;

	for (size_t i = 0; i < n; i++) {
		failed += fails(&runs[i], c);
		skipped += vc_result_verdict(&runs[i]) == VC_UNDECIDED;
	}
	vc_output_printf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite "
			 "name=\"vramcast\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
			 "skipped=\"%zu\">\n", n, failed, skipped);
	for (size_t i = 0; i < n; i++)
		test_case(out, &runs[i], c);
	vc_output_text(out, "</testsuite>\n");
	return VC_OK;
}

const struct vc_sink_type vc_sink_junit = {
	.name = "junit", .extension = "xml",
	.summary = "runs as JUnit test cases, for CI servers: what runs out of memory fails",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("oom", "moment"),
	.write = junit_write,
};
