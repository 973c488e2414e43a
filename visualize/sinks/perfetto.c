/* SPDX-License-Identifier: Apache-2.0 */
/* perfetto.c - a trace for ui.perfetto.dev: counters, kernels by stream, phases, what went wrong.
 *
 * Field numbers: perfetto's protos/perfetto/trace (trace.proto, trace_packet.proto,
 * track_event/{track_descriptor,counter_descriptor,track_event,debug_annotation}.proto,
 * interned_data/interned_data.proto), the same since 2020. */

#include "common/event.h"
#include "common/io.h"
#include "common/kernel_name.h"
#include "common/site.h"
#include "visualize/points.h"
#include "visualize/protobuf.h"
#include "visualize/sink.h"

enum packet { PACKET = 1, TIMESTAMP = 8, SEQUENCE = 10, TRACK_EVENT = 11, INTERNED = 12, FLAGS = 13,
	      DESCRIPTOR = 60 };
enum track { UUID = 1, NAME = 2, PROCESS = 3, PARENT = 5, COUNTER = 8, UNIT = 3, UNIT_BYTES = 3,
	     PROCESS_PID = 1, PROCESS_NAME = 6 };
enum event { CATEGORY = 22, ANNOTATION = 4, TYPE = 9, NAME_IID = 10, TRACK = 11, EVENT_NAME = 23,
	     COUNT = 30, ANNOTATION_NAME = 10, ANNOTATION_TEXT = 6 };
enum type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, VALUE = 4 };
enum { STATE_CLEARED = 1, STATE_NEEDED = 2, EVENT_NAMES = 2, IID = 1, INTERNED_NAME = 2 };

/* Tracks of a run: uuid = run * TRACKS + one of these; streams follow. */
enum { OF_PROCESS = 1, OF_ALLOCATED, OF_RESERVED, OF_STRANDED, OF_CAPACITY, OF_PINNED, OF_MANAGED,
       OF_PHASES, OF_STEPS, OF_TROUBLE, OF_STREAMS, TRACKS = 1 << 20 };

struct writer {
	struct vc_output *out;
	const struct vc_result *r;
	struct vc_proto packet, body, part; /* packet > body > part */
	uint64_t base;      /* of this run's track ids */
	bool nomem;
};

static void flush(struct writer *w, uint32_t field)
{
	uint8_t head[12] = { PACKET << 3 | 2 };
	size_t n = 1;

	if (field)
		vc_proto_message(&w->packet, field, &w->body);
	vc_proto_uint(&w->packet, SEQUENCE, 1);
	for (size_t v = w->packet.n; ; v >>= 7) {
		head[n++] = (uint8_t)(v < 0x80 ? v : v | 0x80);
		if (v < 0x80)
			break;
	}
	vc_output_write(w->out, head, n);
	vc_output_write(w->out, w->packet.at, w->packet.n);
	w->nomem |= w->packet.nomem | w->body.nomem | w->part.nomem;
	w->packet.n = 0;
}

static void track(struct writer *w, uint64_t id, const char *name, bool counter)
{
	vc_proto_uint(&w->body, UUID, w->base + id);
	vc_proto_text(&w->body, NAME, name);
	vc_proto_uint(&w->body, PARENT, w->base + OF_PROCESS);
	if (counter) {
		vc_proto_uint(&w->part, UNIT, UNIT_BYTES);
		vc_proto_message(&w->body, COUNTER, &w->part);
	}
	flush(w, DESCRIPTOR);
}

static void process(struct writer *w, size_t run)
{
	char title[512];

	vc_point_title(w->r, title, sizeof(title));
	vc_proto_uint(&w->body, UUID, w->base + OF_PROCESS);
	vc_proto_uint(&w->part, PROCESS_PID, run + 1);
	vc_proto_text(&w->part, PROCESS_NAME, title);
	vc_proto_message(&w->body, PROCESS, &w->part);
	flush(w, DESCRIPTOR);
}

static void event(struct writer *w, uint64_t ns, enum type type, uint64_t id)
{
	vc_proto_uint(&w->packet, TIMESTAMP, ns);
	vc_proto_uint(&w->body, TYPE, type);
	vc_proto_uint(&w->body, TRACK, w->base + id);
}

static void count(struct writer *w, uint64_t ns, uint64_t id, uint64_t value)
{
	event(w, ns, VALUE, id);
	vc_proto_uint(&w->body, COUNT, value);
	flush(w, TRACK_EVENT);
}

/* ---- what a run consists of ---- */

/* Of the host and of neither: tracks where there is any; values at which they change. */
static void beside(struct writer *w, uint64_t id, const char *name, size_t at)
{
	const struct vc_curve *v = &w->r->curve;
	uint64_t was = 0, now;

	for (size_t i = 0; i < v->n; i++) {
		memcpy(&now, (const char *)&v->at[i] + at, sizeof(now));
		if (now && !was)
			track(w, id, name, true);
		if (now != was)
			count(w, vc_point_ns(w->r, v->at[i].first_event, v->at[i].first_ns), id,
			      now);
		was = now;
	}
}

static void counters(struct writer *w)
{
	const struct vc_result *r = w->r;
	struct vc_point p[VC_POINTS];

	track(w, OF_ALLOCATED, "allocated", true);
	track(w, OF_RESERVED, "reserved", true);
	track(w, OF_STRANDED, "reserved, not in use", true);
	for (size_t i = 0; i < r->curve.n; i++) {
		size_t n = vc_points(r, i, p);

		for (size_t k = 0; k < n; k++) {
			count(w, p[k].ns, OF_ALLOCATED, p[k].allocated);
			count(w, p[k].ns, OF_RESERVED, p[k].reserved);
			count(w, p[k].ns, OF_STRANDED, p[k].stranded);
		}
		if (i + 1 == r->curve.n && r->info.capacity) {
			track(w, OF_CAPACITY, "capacity", true);
			count(w, vc_point_ns(r, 0, r->curve.at[0].first_ns), OF_CAPACITY,
			      r->info.capacity);
			count(w, p[n - 1].ns, OF_CAPACITY, r->info.capacity);
		}
	}
	beside(w, OF_PINNED, VC_LABEL_PINNED, offsetof(struct vc_bucket, pinned_max));
	beside(w, OF_MANAGED, VC_LABEL_MANAGED, offsetof(struct vc_bucket, managed_max));
}

static void instant(struct writer *w, uint64_t ns, uint64_t id, const char *name, const char *text)
{
	event(w, ns, INSTANT, id);
	vc_proto_text(&w->body, EVENT_NAME, name);
	if (text) {
		vc_proto_text(&w->part, ANNOTATION_NAME, "message");
		vc_proto_text(&w->part, ANNOTATION_TEXT, text);
		vc_proto_message(&w->body, ANNOTATION, &w->part);
	}
	flush(w, TRACK_EVENT);
}

static void trouble(struct writer *w)
{
	const struct vc_result *r = w->r;
	const struct vc_oom_report *o = &r->oom;

	if (!o->happened && !r->stats.flushes)
		return;
	track(w, OF_TROUBLE, "trouble", false);
	for (size_t i = 0; i < r->curve.n; i++) {
		const struct vc_bucket *b = &r->curve.at[i];

		if (b->flushes)
			instant(w, vc_point_ns(r, b->first_event, b->first_ns), OF_TROUBLE,
				"cache emptied", NULL);
	}
	if (o->happened)
		instant(w, vc_point_ns(r, o->event, o->time_ns), OF_TROUBLE, "out of memory",
			o->message);
}

static void marks(struct writer *w)
{
	const struct vc_steps *s = &w->r->steps;
	size_t depth = 0;

	if (!s->marks)
		return;
	track(w, OF_PHASES, "phases", false);
	track(w, OF_STEPS, "steps", false);
	for (size_t i = 0; i < s->marks; i++) {
		const struct vc_mark_at *m = &s->mark[i];
		uint64_t ns = vc_point_ns(w->r, m->event, m->time_ns);
		const char *name = vc_label_text(w->r->meta, m->label);

		if (m->kind != VC_MARK_BEGIN && m->kind != VC_MARK_END) {
			instant(w, ns, OF_STEPS, *name ? name : "step", NULL);
			continue;
		}
		if (m->kind == VC_MARK_END && !depth)
			continue; /* began before the recording */
		depth += m->kind == VC_MARK_BEGIN ? 1 : (size_t)-1;
		event(w, ns, m->kind == VC_MARK_BEGIN ? SLICE_BEGIN : SLICE_END, OF_PHASES);
		if (m->kind == VC_MARK_BEGIN)
			vc_proto_text(&w->body, EVENT_NAME, name);
		flush(w, TRACK_EVENT);
	}
}

/* Kernel names repeat: they are sent once and named by number. */
static void intern(struct writer *w, const struct vc_steps *s, uint32_t strings)
{
	bool *seen = calloc(strings + 1u, sizeof(*seen));
	char name[VC_KERNEL_NAME];

	w->nomem |= !seen;
	for (size_t i = 0; seen && i < s->kernels; i++) {
		uint32_t label = s->kernel[i].label < strings ? s->kernel[i].label : 0;

		if (seen[label])
			continue;
		seen[label] = true;
		vc_proto_uint(&w->part, IID, (uint64_t)label + 1);
		vc_proto_text(&w->part, INTERNED_NAME, !label ? "kernel" :
			      vc_kernel_name(w->r->meta->string[label], name));
		vc_proto_message(&w->body, EVENT_NAMES, &w->part);
	}
	free(seen);
	vc_proto_uint(&w->packet, FLAGS, STATE_CLEARED);
	flush(w, INTERNED);
}

/* Copies run beside the kernels of their stream: two tracks for each stream. */
static uint64_t lane(const struct vc_kernel_at *k)
{
	return OF_STREAMS + 2 * ((uint64_t)k->stream & 0x3ffff) + (k->kind == VC_EV_COPY);
}

static void kernels(struct writer *w)
{
	const struct vc_steps *s = &w->r->steps;
	const struct vc_meta *m = w->r->meta;
	uint32_t streams = m ? (uint32_t)m->streams : 0, strings = m ? (uint32_t)m->strings : 0;
	bool *seen = calloc(2u * streams + 2, sizeof(*seen));
	char name[64];

	w->nomem |= !seen;
	if (s->kernels && seen)
		intern(w, s, strings);
	for (size_t i = 0; seen && i < s->kernels; i++) {
		const struct vc_kernel_at *k = &s->kernel[i];
		bool copy = k->kind == VC_EV_COPY;

		if (k->stream < streams && !seen[2 * k->stream + copy]) {
			seen[2 * k->stream + copy] = true;
			snprintf(name, sizeof(name), "%s, stream %llu", copy ? "copies" : "kernels",
				 (unsigned long long)m->stream[k->stream]);
			track(w, lane(k), name, false);
		}
		vc_proto_uint(&w->packet, FLAGS, STATE_NEEDED);
		event(w, k->start_ns, SLICE_BEGIN, lane(k));
		vc_proto_uint(&w->body, NAME_IID,
			      (uint64_t)(k->label < strings ? k->label : 0) + 1);
		flush(w, TRACK_EVENT);
		event(w, k->start_ns + k->duration_ns, SLICE_END, lane(k));
		flush(w, TRACK_EVENT);
	}
	free(seen);
}

static int perfetto_write(const struct vc_result *runs, size_t n, const void *config,
			  struct vc_output *out, struct vc_error *err)
{
	struct writer w = { .out = out };

	for (size_t i = 0; i < n; i++) {
		w.r = &runs[i];
		w.base = i * TRACKS;
		process(&w, i);
		counters(&w);
		marks(&w);
		kernels(&w);
		trouble(&w);
	}
	vc_proto_fini(&w.packet);
	vc_proto_fini(&w.body);
	vc_proto_fini(&w.part);
	return w.nomem ? vc_nomem(err, "the trace") : VC_OK;
}

const struct vc_sink_type vc_sink_perfetto = {
	.name = "perfetto", .extension = "pftrace",
	.summary = "counters, kernels and phases for ui.perfetto.dev and trace_processor",
	.observers = VC_READS("timeline", "oom", "steps"), .write = perfetto_write,
};
