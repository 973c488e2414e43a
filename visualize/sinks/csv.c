/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - the usage curve, or the life of every block, for spreadsheets, pandas and duckdb. */
#include "common/io.h"
#include "visualize/record.h"
#include "visualize/sink.h"

struct config { uint64_t what; };

static const struct vc_param params[] = {
	{ "what", VC_P_ENUM, offsetof(struct config, what), "curve",
	  "usage over time, or one line per block", "curve,blocks" },
	VC_PARAM_END
};

static int csv_write(const struct vc_result *runs, size_t n, const void *config, struct vc_output *out,
		     struct vc_error *err)
{
	const struct config *c = config;
	bool blocks = c && c->what;

	(void)err;
	vc_record_csv_head(out, blocks ? vc_life_fields : vc_bucket_fields);
	for (size_t i = 0; i < n; i++) {
		const struct vc_result *r = &runs[i];

		for (size_t k = 0; !blocks && k < r->curve.n; k++)
			vc_record_csv(out, vc_bucket_fields, i, &r->curve.at[k], r->meta);
		for (size_t k = 0; blocks && k < r->lives.n; k++)
			vc_record_csv(out, vc_life_fields, i, &r->lives.at[k], r->meta);
	}
	return VC_OK;
}

static const char *const reads[] = { "timeline", "lives", NULL };

const struct vc_sink_type vc_sink_csv = {
	.name = "csv", .extension = "csv",
	.summary = "usage over time (or what=blocks: every block) as comma-separated values",
	.params = params, .config_size = sizeof(struct config), .observers = reads, .write = csv_write,
};
