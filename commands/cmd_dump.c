/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dump.c - vramcast dump: events as text, one per line. */

#include "common/kernel_name.h"
#include "common/utf8.h"
#include "simulator/session/session.h"
#include "simulator/anatomy/anatomy.h"

struct config { struct vc_list transform; uint64_t from, to; bool anatomy; };

#define AT(f) offsetof(struct config, f)
static const struct vc_option dump_options[] = {
	{ 0, "from", VC_O_UINT, AT(from), "N", "first event (they count from 0)", "0" },
	{ 0, "to", VC_O_UINT, AT(to), "N", "last event", NULL },
	{ 'x', "transform", VC_O_LIST, AT(transform), "NAME[:K=V,...]",
	  "a what-if on the events, in the order given", NULL },
	{ 0, "anatomy", VC_O_FLAG, AT(anatomy), NULL,
	  "with each allocation its iteration, phase and category (see 'vramcast info')", NULL },
	VC_OPTION_END
};

static const char *const kind_name[256] = {
	[VC_EV_ALLOC] = "alloc", [VC_EV_FREE] = "free", [VC_EV_FREE_DONE] = "free_done",
	[VC_EV_USE] = "use", [VC_EV_SYNC] = "sync", [VC_EV_TRIM] = "trim", [VC_EV_MARK] = "mark",
	[VC_EV_POOL_CREATE] = "pool_create", [VC_EV_POOL_BEGIN] = "pool_begin",
	[VC_EV_POOL_END] = "pool_end", [VC_EV_POOL_RELEASE] = "pool_release",
	[VC_EV_CAPTURE_BEGIN] = "capture_begin", [VC_EV_CAPTURE_END] = "capture_end",
	[VC_EV_OTHERS] = "others", [VC_EV_FRACTION] = "fraction", [VC_EV_CONFIGURE] = "configure",
	[VC_EV_STREAM_CLASS] = "stream_class", [VC_EV_SEGMENT_ALLOC] = "segment_alloc",
	[VC_EV_SEGMENT_FREE] = "segment_free", [VC_EV_SEGMENT_MAP] = "segment_map",
	[VC_EV_SEGMENT_UNMAP] = "segment_unmap", [VC_EV_OOM] = "oom",
	[VC_EV_OUTSIDE_ALLOC] = "outside_alloc", [VC_EV_OUTSIDE_FREE] = "outside_free",
	[VC_EV_DEVICE_SAMPLE] = "device_sample", [VC_EV_KERNEL] = "kernel", [VC_EV_COPY] = "copy",
	[VC_EV_DRIVER_POOL] = "driver_pool", [VC_EV_OVERHEAD] = "overhead",
	[VC_EV_LAUNCH] = "launch", [VC_EV_PLAN] = "plan", [VC_EV_PAGES_OUT] = "pages_out",
	[VC_EV_PAGES_IN] = "pages_in", [VC_EV_HEAP_SEGMENT] = "heap_segment",
	[VC_EV_HEAP_BLOCK] = "heap_block",
};

/* " NAME=TEXT" on one line, whatever the text is. */
static void name(struct vc_output *out, const char *what, const char *text)
{
	char plain[1024];

	snprintf(plain, sizeof(plain), "%s", text);
	vc_output_printf(out, "%s%s", what, vc_utf8_plain(plain));
}

static void place(struct vc_output *out, const struct vc_meta *m, const struct vc_event *ev)
{
	char kernel[VC_KERNEL_NAME];

	if (ev->label && ev->label < m->strings)
		name(out, " label=", ev->kind != VC_EV_KERNEL ? m->string[ev->label] :
		     vc_kernel_name(m->string[ev->label], kernel));
	if (ev->site && ev->site < m->frames) {
		const struct vc_frame *f = &m->frame[ev->site];
		bool work = ev->kind == VC_EV_KERNEL;

		name(out, work ? " work=" : " at=", m->string[work ? f->function : f->file]);
		if (!work) {
			vc_output_printf(out, ":%" PRIu32, f->line);
			name(out, ":", m->string[f->function]);
		}
	}
	vc_output_text(out, "\n");
}

static void line(struct vc_output *out, const struct vc_meta *m, uint64_t index,
		 const struct vc_event *ev)
{
	const char *kind = kind_name[ev->kind] ? kind_name[ev->kind] : "unknown";

	vc_output_printf(out, "%" PRIu64 " %" PRIu64 " %s device=%u", index, ev->time_ns, kind,
			 ev->device);
	if (ev->id)
		vc_output_printf(out, " id=%" PRIu64, ev->id);
	if (ev->size)
		vc_output_printf(out, " size=%" PRIu64, ev->size);
	if (ev->addr)
		vc_output_printf(out, " addr=%" PRIx64, ev->addr);
	if (ev->stream == VC_STREAM_ALL)
		vc_output_text(out, " stream=all");
	else if (ev->stream && ev->stream < m->streams)
		vc_output_printf(out, " stream=%" PRIu64, m->stream[ev->stream]);
	if (ev->flags)
		vc_output_printf(out, " flags=%u", ev->flags);
}

/* " is=optimizer_state phase=optimizer iteration=0" */
static void purpose(struct vc_output *out, const struct vc_anatomy *a, size_t block)
{
	const struct vc_span *in = &a->span[a->block[block].span];
	const char *name = vc_category_name((enum vc_category)a->block[block].category);
	char text[32];
	size_t n = 0;

	for (; name[n] && n + 1 < sizeof(text); n++)
		text[n] = name[n] == ' ' ? '_' : name[n];
	text[n] = '\0';
	vc_output_printf(out, " is=%s phase=%s", text, vc_phase_name((enum vc_phase)in->phase));
	if (in->iteration != UINT32_MAX)
		vc_output_printf(out, " iteration=%" PRIu32, in->iteration);
}

/* a: of the same events, or empty. */
static int print_events(struct vc_session *s, const struct config *c, const struct vc_anatomy *a,
			struct vc_error *err)
{
	struct vc_source *src = vc_session_source(s, err);
	struct vc_output *out = src ? vc_output_open("-", err) : NULL;
	struct vc_event ev[256];
	uint64_t index = 0;
	size_t block = 0;
	long n = 0;
	int r;

	while (out && index <= c->to && (n = src->type->next(src, ev, 256, err)) > 0)
		for (long i = 0; i < n; i++, index++) {
			bool known = block < a->n && a->block[block].event == index;

			if (index >= c->from && index <= c->to) {
				line(out, src->meta, index, &ev[i]);
				if (known)
					purpose(out, a, block);
				place(out, src->meta, &ev[i]);
			}
			block += known;
		}
	r = !out || n < 0 ? (int)err->status : vc_output_commit(out, err);
	vc_output_close(out);
	vc_source_free(src);
	return r;
}

static int read_anatomy(const struct vc_session *s, struct vc_anatomy *a, struct vc_error *err)
{
	struct vc_source *src = vc_session_source(s, err);
	struct vc_trace t = { 0 };
	int r = src ? vc_trace_read(&t, src, err) : (int)err->status;

	if (r == VC_OK)
		r = vc_anatomy_read(a, t.ev, t.n, s->rec->device->device,
				    t.meta ? t.meta : s->rec->meta, err);
	vc_trace_fini(&t);
	vc_source_free(src);
	return r;
}

static int dump_run(const void *config, size_t argc, char **argv, struct vc_console *con)
{
	const struct config *c = config;
	struct vc_run_options o = vc_run_options_none();
	struct vc_anatomy a = { 0 };
	struct vc_session s;
	int r;

	if (c->from > c->to)
		return vc_fail(&con->err, VC_EUSAGE,
			       "--from %" PRIu64 " --to %" PRIu64 ": nothing lies between",
			       c->from, c->to);
	o.transform = c->transform;
	r = vc_session_open(&s, &o, argc, argv, VC_SESSION_NO_REQUESTS_OK, &con->err);
	if (r == VC_OK && c->anatomy)
		r = read_anatomy(&s, &a, &con->err);
	if (r == VC_OK)
		r = print_events(&s, c, &a, &con->err);
	vc_anatomy_fini(&a);
	vc_session_close(&s);
	return r;
}

const struct vc_command vc_command_dump = {
	.name = "dump", .operands = "TRACE", .summary = "events as text, one per line",
	.options = VC_OPTIONS(dump_options), .config_size = sizeof(struct config), .run = dump_run,
};
