/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_export.c - vramcast export: a trace as .vct, or a replay of it in another program's format. */
#include <stdlib.h>
#include <string.h>

#include "common/codec.h"
#include "simulator/session.h"
#include "visualize/sink.h"

struct config {
	struct vc_run_options run;
	const char *to, *output;
	uint64_t level, block;
	bool no_stacks, no_addresses, redact;
};

#define AT(f) offsetof(struct config, f)
static const struct vc_option export_options[] = {
	{ 0, "to", VC_O_TEXT, AT(to), "FORMAT",
	  "vct, or the name of a sink (vramcast list sinks)", "vct" },
	{ 'o', "output", VC_O_TEXT, AT(output), "FILE", "where to (- is standard output)", NULL },
	{ 0, "level", VC_O_UINT, AT(level), "N", "vct: zstd level", "3" },
	{ 0, "block", VC_O_UINT, AT(block), "N", "vct: events per block, which is what damage costs", "65536" },
	{ 0, "no-stacks", VC_O_FLAG, AT(no_stacks), NULL,
	  "vct: leave out call sites (they hold user names and paths)", NULL },
	{ 0, "no-addresses", VC_O_FLAG, AT(no_addresses), NULL,
	  "vct: leave out addresses (smaller; cannot be verified any more)", NULL },
	{ 0, "redact", VC_O_FLAG, AT(redact), NULL,
	  "vct: call sites without folders (they hold user names), no command line, no host", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { export_options, vc_run_options, NULL };

static int copy_events(struct vc_source *src, struct vc_encoder *enc, struct vc_error *err)
{
	struct vc_event ev[512];
	long n;
	int r = VC_OK;

	while (r == VC_OK && (n = src->type->next(src, ev, 512, err)) != 0) {
		if (n < 0)
			return (int)n;
		r = vc_encoder_append(enc, ev, (size_t)n, err);
	}
	return r == VC_OK ? vc_encoder_finish(enc, err) : r;
}

static int write_vct(struct vc_session *s, const struct config *c, struct vc_error *err)
{
	struct vc_encoder_options o = { .level = (int)c->level, .block = (uint32_t)c->block,
					.no_addresses = c->no_addresses,
					.no_stacks = c->no_stacks, .redact = c->redact };
	struct vc_source *src = vc_session_source(s, err);
	struct vc_output *out = src ? vc_output_open(c->output, err) : NULL;
	struct vc_encoder *enc = out ? vc_encoder_new(out, src->meta, &o, err) : NULL;
	int r = enc ? copy_events(src, enc, err) : (int)err->status;

	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_encoder_free(enc);
	vc_output_close(out);
	vc_source_free(src);
	return r;
}

static int replay(struct vc_session *s, const struct vc_sink_type *k, struct vc_result *out, struct vc_error *err)
{
	const struct vc_observer_type *watch[16] = { 0 };
	struct vc_plan *plan = NULL;
	size_t n = 0, m = 0;
	int r = vc_session_plans(s, &plan, &n, err);

	for (size_t i = 0; k->observers && k->observers[i] && m < 15; i++)
		if (vc_observer_by_name(k->observers[i]))
			watch[m++] = vc_observer_by_name(k->observers[i]);
	if (r == VC_OK)
		r = vc_session_run(s, plan, watch, out, err);
	free(plan);
	return r;
}

static int write_sink(struct vc_session *s, const struct config *c, const struct vc_sink_type *k,
		      struct vc_error *err)
{
	void *cfg = calloc(1, k->config_size ? k->config_size : 1);
	struct vc_result result = { 0 };
	struct vc_output *out = NULL;
	int r = cfg ? vc_params_parse(k->params, cfg, NULL, err) : vc_nomem(err, "options");

	if (r == VC_OK)
		r = replay(s, k, &result, err);
	if (r == VC_OK && !(out = vc_output_open(c->output, err)))
		r = err->status;
	if (r == VC_OK)
		r = k->write(&result, 1, cfg, out, err);
	if (r == VC_OK)
		r = vc_output_commit(out, err);
	vc_output_close(out);
	vc_result_fini(&result);
	free(cfg);
	return r;
}

static int export_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	const struct vc_sink_type *k = vc_sink_by_name(c->to);
	bool vct = !strcmp(c->to, "vct");
	struct vc_run_options o = c->run;
	struct vc_session s;
	int r;

	if (!c->block || c->block > 1u << 24 || c->level > 22)
		return vc_fail(&con->err, VC_EUSAGE, "--block goes from 1 to 16777216, --level from 0 to 22");
	if (!c->output)
		return vc_fail(&con->err, VC_EUSAGE, "where to? give -o FILE (or -o -)");
	if (!vct && !k)
		return vc_fail(&con->err, VC_EUSAGE, "--to %s: no such format ('vramcast list sinks', or vct)", c->to);
	if (vct)
		o.verify = false;
	r = vc_session_open(&s, &o, argc, argv, vct ? VC_SESSION_NO_REQUESTS_OK : 0, &con->err);
	if (r == VC_OK)
		r = vct ? write_vct(&s, c, &con->err) : write_sink(&s, c, k, &con->err);
	vc_session_close(&s);
	return r;
}

const struct vc_command vc_command_export = {
	.name = "export", .operands = "TRACE --to FORMAT -o FILE",
	.summary = "a trace as .vct or in another program's format",
	.options = tables, .config_size = sizeof(struct config), .run = export_run,
};
