/* SPDX-License-Identifier: Apache-2.0 */
/* chrome.c - the JSON trace event format of chrome://tracing: counters, kernels, phases.
 *
 * Viewers of this format fail between one and one and a half million events, so kernels beyond a
 * limit are left out and the file says so; the perfetto sink has no such limit. */

#include "common/event.h"
#include "common/io.h"
#include "common/json.h"
#include "common/kernel_name.h"
#include "common/site.h"
#include "visualize/points.h"
#include "visualize/sink.h"

struct config { uint64_t limit; };

static const struct vc_param params[] = {
	{ "limit", VC_P_UINT, offsetof(struct config, limit), "200000",
	  "most kernels and copies to write", NULL },
	VC_PARAM_END
};

struct writer { struct vc_output *o; const struct vc_result *r; size_t pid; bool any; };

/* Microseconds, with the nanoseconds behind the point. */
static void when(struct writer *w, const char *key, uint64_t ns)
{
	vc_output_printf(w->o, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void open_event(struct writer *w, const char *ph, const char *name)
{
	vc_output_printf(w->o, "%s\n{\"ph\":\"%s\",\"pid\":%zu,\"name\":", w->any ? "," : "", ph,
			 w->pid);
	vc_json_quote(w->o, name, strlen(name));
	w->any = true;
}

static void name_of(struct writer *w, const char *what, uint64_t tid, const char *name)
{
	open_event(w, "M", what);
	vc_output_printf(w->o, ",\"tid\":%" PRIu64 ",\"args\":{\"name\":", tid);
	vc_json_quote(w->o, name, strlen(name));
	vc_output_text(w->o, "}}");
}

static void counters(struct writer *w)
{
	const struct vc_result *r = w->r;
	struct vc_point p[VC_POINTS];

	for (size_t i = 0; i < r->curve.n; i++) {
		size_t n = vc_points(r, i, p);

		for (size_t k = 0; k < n; k++) {
			open_event(w, "C", "GPU memory");
			when(w, "ts", p[k].ns);
			vc_output_printf(
				w->o,
				",\"args\":{\"allocated\":%" PRIu64 ",\"cached\":%" PRIu64 "}}",
				p[k].allocated,
				p[k].reserved > p[k].allocated ? p[k].reserved - p[k].allocated :
								 0);
		}
	}
}

enum { TID_PHASES = 0, TID_STREAMS = 1 };

static void marks(struct writer *w)
{
	const struct vc_steps *s = &w->r->steps;
	size_t depth = 0;

	for (size_t i = 0; i < s->marks; i++) {
		const struct vc_mark_at *m = &s->mark[i];
		bool begin = m->kind == VC_MARK_BEGIN, end = m->kind == VC_MARK_END;

		if (end && !depth)
			continue; /* began before the recording */
		depth += begin ? 1 : end ? (size_t)-1 : 0;
		open_event(w, begin ? "B" : end ? "E" : "i", vc_label_text(w->r->meta, m->label));
		when(w, "ts", vc_point_ns(w->r, m->event, m->time_ns));
		vc_output_printf(w->o, ",\"tid\":%d%s}", TID_PHASES,
				 begin || end ? "" : ",\"s\":\"p\"");
	}
}

static void kernels(struct writer *w, uint64_t limit)
{
	const struct vc_steps *s = &w->r->steps;
	const struct vc_meta *m = w->r->meta;
	char text[VC_KERNEL_NAME];

	for (size_t i = 0; i < s->kernels && i < limit; i++) {
		const struct vc_kernel_at *k = &s->kernel[i];
		const char *name = vc_kernel_name(vc_label_text(m, k->label), text);

		open_event(w, "X", *name ? name : "kernel");
		when(w, "ts", k->start_ns);
		when(w, "dur", k->duration_ns);
		vc_output_printf(w->o, ",\"tid\":%u,\"cat\":\"%s\"}", TID_STREAMS + k->stream,
				 k->kind == VC_EV_COPY ? "gpu_memcpy" : "kernel");
	}
}

static void oom(struct writer *w)
{
	const struct vc_oom_report *o = &w->r->oom;

	if (!o->happened)
		return;
	open_event(w, "i", "out of memory");
	when(w, "ts", vc_point_ns(w->r, o->event, o->time_ns));
	vc_output_printf(w->o, ",\"tid\":%d,\"s\":\"g\",\"args\":{\"message\":", TID_PHASES);
	vc_json_quote(w->o, o->message ? o->message : "", o->message ? strlen(o->message) : 0);
	vc_output_text(w->o, "}}");
}

static void left_out(struct writer *w, const struct vc_result *runs, size_t n, uint64_t limit)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += runs[i].steps.kernels > limit ? runs[i].steps.kernels - limit : 0;
	vc_output_printf(w->o,
			 "\n],\"displayTimeUnit\":\"ms\",\"otherData\":{\"producer\":\"vramcast "
			 "%s\",\"time\":\"%s\",\"kernels_left_out\":%" PRIu64 "}}\n", VC_VERSION,
			 n && runs->stats.has_times ? "recorded" : "one microsecond for each event",
			 sum);
}

static int chrome_write(const struct vc_result *runs, size_t n, const void *config,
			struct vc_output *out, struct vc_error *err)
{
	const struct config *c = config;
	struct writer w = { .o = out };
	char title[512];

	vc_output_text(out, "{\"traceEvents\":[");
	for (size_t i = 0; i < n; i++) {
		w.r = &runs[i];
		w.pid = i + 1;
		vc_point_title(w.r, title, sizeof(title));
		name_of(&w, "process_name", 0, title);
		name_of(&w, "thread_name", TID_PHASES, "phases");
		counters(&w);
		marks(&w);
		kernels(&w, c->limit);
		oom(&w);
	}
	left_out(&w, runs, n, c->limit);
	return VC_OK;
}

const struct vc_sink_type vc_sink_chrome = {
	.name = "chrome", .extension = "trace",
	.summary = "counters, kernels and phases as JSON trace events (chrome://tracing)",
	.params = params, .config_size = sizeof(struct config),
	.observers = VC_READS("timeline", "oom", "steps"),
	.write = chrome_write,
};
