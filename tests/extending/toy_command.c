/* SPDX-License-Identifier: Apache-2.0 */
/* toy_command.c - vramcast toy: how many events a trace has. */
#include <inttypes.h>

#include "common/opt.h"
#include "simulator/session/session.h"

struct config { bool loud; };

#define AT(f) offsetof(struct config, f)
static const struct vc_option toy_options[] = {
	{ 0, "loud", VC_O_FLAG, AT(loud), NULL, "say it twice", NULL },
	VC_OPTION_END
};
static const struct vc_option *const tables[] = { toy_options, NULL };

static int toy_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_run_options o = vc_run_options_none();
	struct vc_session s;
	int r = vc_session_open(&s, &o, argc, argv, VC_SESSION_NO_REQUESTS_OK, &con->err);
	struct vc_output *out = r == VC_OK ? vc_output_open("-", &con->err) : NULL;

	for (int i = 0; out && i <= c->loud; i++)
		vc_output_printf(out, "%" PRIu64 " events\n", (uint64_t)s.rec->census.events);
	if (r == VC_OK)
		r = out ? vc_output_commit(out, &con->err) : (int)con->err.status;
	vc_output_close(out);
	vc_session_close(&s);
	return r;
}

const struct vc_command vc_command_toy = {
	.name = "toy", .operands = "TRACE", .summary = "how many events a trace has",
	.options = tables, .config_size = sizeof(struct config), .run = toy_run,
};
