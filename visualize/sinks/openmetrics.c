/* SPDX-License-Identifier: Apache-2.0 */
/* openmetrics.c - gauges for node_exporter's textfile collector and other scrapers. The closing EOF
 * line is demanded by OpenMetrics and is a comment in the older Prometheus text format. */

#include "common/io.h"
#include "visualize/sink.h"

struct gauge {
	const char *name, *unit, *help;
	bool (*value)(const struct vc_result *r, uint64_t *v); /* false: unknown for this run */
};

#define STAT(field)                                                                              \
	static bool field(const struct vc_result *r, uint64_t *v)                                \
	{                                                                                        \
		*v = r->stats.field;                                                             \
		return true;                                                                     \
	}
STAT(peak_requested)
STAT(peak_allocated)
STAT(peak_reserved)
STAT(peak_used)
STAT(stranded_at_peak)
STAT(lower_bound)
STAT(segments_peak)
STAT(flushes)
STAT(ooms)
#undef STAT

static bool peak_reserved_low(const struct vc_result *r, uint64_t *v)
{
	*v = r->has_interval ? r->low : r->stats.peak_reserved;
	return true;
}

static bool peak_reserved_high(const struct vc_result *r, uint64_t *v)
{
	*v = r->has_interval ? r->high : r->stats.peak_reserved;
	return !r->trust.endless;
}

static bool checked(const struct vc_result *r, uint64_t *v)
{
	*v = r->trust.checked;
	return r->trust.level != VC_LEVEL_NONE;
}

static bool reproduced(const struct vc_result *r, uint64_t *v)
{
	*v = r->trust.reproduced;
	return r->trust.level != VC_LEVEL_NONE;
}

static bool capacity(const struct vc_result *r, uint64_t *v)
{
	*v = r->info.capacity;
	return r->info.capacity != 0;
}

static bool headroom(const struct vc_result *r, uint64_t *v)
{
	*v = r->stats.peak_used < r->info.capacity ? r->info.capacity - r->stats.peak_used : 0;
	return r->info.capacity != 0;
}

static const struct gauge gauges[] = {
	{ "peak_requested_bytes", "bytes", "Most bytes that the program asked for and held",
	  peak_requested },
	{ "peak_allocated_bytes", "bytes", "The same after rounding by the allocator",
	  peak_allocated },
	{ "peak_reserved_bytes", "bytes", "Most bytes that the allocator held from the device",
	  peak_reserved },
	{ "peak_reserved_low_bytes", "bytes", "Lower end of what may be reserved",
	  peak_reserved_low },
	{ "peak_reserved_high_bytes", "bytes", "Upper end of what may be reserved",
	  peak_reserved_high },
	{ "peak_used_bytes", "bytes", "Reserved, context and other processes at the peak",
	  peak_used },
	{ "stranded_bytes", "bytes", "Reserved but not in use at the peak", stranded_at_peak },
	{ "lower_bound_bytes", "bytes", "What no allocator can go below", lower_bound },
	{ "capacity_bytes", "bytes", "Memory of the device", capacity },
	{ "headroom_bytes", "bytes", "Capacity less what is used at the peak, never below 0",
	  headroom },
	{ "segments", NULL, "Most pieces held from the device", segments_peak },
	{ "cache_flushes", NULL, "Times the cache was emptied to serve a request", flushes },
	{ "ooms", NULL, "Requests that failed", ooms },
	{ "checked", NULL, "1 where the recording was checked against the model", checked },
	{ "reproduced", NULL, "1 where the model reproduces the recording", reproduced },
};

static void label(struct vc_output *o, const char *name, const char *value)
{
	vc_output_printf(o, "%s=\"", name);
	for (; value && *value; value++) {
		if (*value == '"' || *value == '\\')
			vc_output_printf(o, "\\%c", *value);
		else if (*value == '\n')
			vc_output_text(o, "\\n");
		else
			vc_output_write(o, value, 1);
	}
	vc_output_text(o, "\"");
}

/* `run` keeps series apart that agree in everything else. */
static void labels(struct vc_output *o, const struct vc_result *r, size_t run, const char *name,
		   const char *value)
{
	char number[24];

	snprintf(number, sizeof(number), "%u", r->info.device);
	vc_output_text(o, "{");
	label(o, "device", number);
	vc_output_text(o, ",");
	label(o, "conf", r->info.conf);
	vc_output_text(o, ",");
	label(o, "gpu", r->info.gpu);
	vc_output_text(o, ",");
	label(o, "model", r->info.model);
	vc_output_text(o, ",");
	label(o, "torch", r->info.torch);
	vc_output_text(o, ",");
	label(o, "trace", r->info.trace);
	snprintf(number, sizeof(number), "%zu", run);
	vc_output_text(o, ",");
	label(o, "run", number);
	if (name) {
		vc_output_text(o, ",");
		label(o, name, value);
	}
	vc_output_text(o, "} ");
}

/* One of several that holds, for each run: 1 for it, 0 for the others. */
static void states(struct vc_output *o, const struct vc_result *runs, size_t n)
{
	vc_output_text(o, "# TYPE vramcast_verdict gauge\n"
		       "# HELP vramcast_verdict 1 for the verdict that holds, 0 for the others\n");
	for (size_t i = 0; i < n; i++)
		for (int v = VC_FITS; v <= VC_OOM; v++) {
			vc_output_text(o, "vramcast_verdict");
			labels(o, &runs[i], i, "verdict", vc_verdict_name((enum vc_verdict)v));
			vc_output_printf(o, "%d\n",
					 vc_result_verdict(&runs[i]) == (enum vc_verdict)v);
		}
	vc_output_text(o, "# TYPE vramcast_level gauge\n"
		       "# HELP vramcast_level 1 for what the answer rests on, 0 for the others\n");
	for (size_t i = 0; i < n; i++)
		for (int l = VC_EXACT; l <= VC_UNKNOWN; l++) {
			vc_output_text(o, "vramcast_level");
			labels(o, &runs[i], i, "level", vc_level_name((enum vc_level)l));
			vc_output_printf(o, "%d\n", runs[i].trust.level == (enum vc_level)l);
		}
}

static int openmetrics_write(const struct vc_result *runs, size_t n, const void *config,
			     struct vc_output *o, struct vc_error *err)
{
	for (size_t g = 0; g < sizeof(gauges) / sizeof(*gauges); g++) {
		vc_output_printf(o, "# TYPE vramcast_%s gauge\n", gauges[g].name);
		if (gauges[g].unit)
			vc_output_printf(o, "# UNIT vramcast_%s %s\n", gauges[g].name,
					 gauges[g].unit);
		vc_output_printf(o, "# HELP vramcast_%s %s\n", gauges[g].name, gauges[g].help);
		for (size_t i = 0; i < n; i++) {
			uint64_t v;

			if (!gauges[g].value(&runs[i], &v))
				continue;
			vc_output_printf(o, "vramcast_%s", gauges[g].name);
			labels(o, &runs[i], i, NULL, NULL);
			vc_output_printf(o, "%" PRIu64 "\n", v);
		}
	}
	states(o, runs, n);
	vc_output_text(o, "# EOF\n");
	return VC_OK;
}

const struct vc_sink_type vc_sink_openmetrics = {
	.name = "openmetrics", .extension = "prom",
	.summary = "gauges for Prometheus (textfile collector) and CI dashboards",
	.write = openmetrics_write,
};
