/* SPDX-License-Identifier: Apache-2.0 */
/* pprof.c - bytes by call stack for 'go tool pprof'. Field numbers: google/pprof's profile.proto.
 */
#include <limits.h>
#include <zlib.h>

#include "common/io.h"
#include "common/map.h"
#include "common/site.h"
#include "common/vec.h"
#include "visualize/protobuf.h"
#include "visualize/sink.h"
#include "visualize/stacks.h"

enum profile { SAMPLE_TYPE = 1, SAMPLE = 2, LOCATION = 4, FUNCTION = 5, STRING = 6, DURATION = 10,
	       COMMENT = 13, DEFAULT_TYPE = 14 };
enum { VT_TYPE = 1, VT_UNIT = 2, SAMPLE_LOCATIONS = 1, SAMPLE_VALUES = 2, ID = 1, FN_NAME = 2,
       FN_SYSTEM = 3, FN_FILE = 4, LOC_LINE = 4, LINE_FUNCTION = 1, LINE_LINE = 2 };

struct writer {
	const struct vc_meta *m;
	struct vc_proto p, sub, part, strings;
	struct vc_map string;     /* string of the trace + 1 -> index in the profile */
	struct vc_map function;   /* function << 32 | file -> id */
	struct vc_map location;   /* function id << 32 | line -> id */
	uint64_t nstrings, nfunctions, nlocations;
	bool nomem;
};

static uint64_t add_text(struct writer *w, const char *text)
{
	vc_proto_text(&w->strings, STRING, text);
	return w->nstrings++;
}

static uint64_t string_of(struct writer *w, uint32_t label)
{
	uint64_t *known = vc_map_get(&w->string, (uint64_t)label + 1), at;

	if (known)
		return *known;
	at = add_text(w, vc_label_text(w->m, label));
	w->nomem |= !vc_map_put(&w->string, (uint64_t)label + 1, at);
	return at;
}

static uint64_t function_of(struct writer *w, uint64_t key, uint64_t name, uint64_t file)
{
	uint64_t *known = vc_map_get(&w->function, key), id;

	if (known)
		return *known;
	id = ++w->nfunctions;
	vc_proto_uint(&w->sub, ID, id);
	vc_proto_uint(&w->sub, FN_NAME, name);
	vc_proto_uint(&w->sub, FN_SYSTEM, name);
	vc_proto_uint(&w->sub, FN_FILE, file);
	vc_proto_message(&w->p, FUNCTION, &w->sub);
	w->nomem |= !vc_map_put(&w->function, key, id);
	return id;
}

static uint64_t location_of(struct writer *w, uint64_t function, uint32_t line)
{
	uint64_t key = function << 32 | line, *known = vc_map_get(&w->location, key), id;

	if (known)
		return *known;
	id = ++w->nlocations;
	vc_proto_uint(&w->part, LINE_FUNCTION, function);
	vc_proto_uint(&w->part, LINE_LINE, line);
	vc_proto_uint(&w->sub, ID, id);
	vc_proto_message(&w->sub, LOC_LINE, &w->part);
	vc_proto_message(&w->p, LOCATION, &w->sub);
	w->nomem |= !vc_map_put(&w->location, key, id);
	return id;
}

/* Innermost first, as profiles have it. */
static void locations(struct writer *w, const struct vc_stack *s, struct vc_proto *packed)
{
	const struct vc_meta *m = w->m;

	if (!s->site || !m) {
		uint64_t name = s->label ? string_of(w, s->label) : 0;
		uint64_t key = UINT64_MAX - s->label;

		if (!vc_map_get(&w->function, key) && !s->label)
			name = add_text(w, VC_STACK_UNKNOWN);
		vc_proto_value(packed, location_of(w, function_of(w, key, name, 0), 0));
		return;
	}
	for (uint32_t at = s->site; at && at < m->frames;
	     at = m->frame[at].parent < at ? m->frame[at].parent : 0) {
		const struct vc_frame *f = &m->frame[at];
		uint64_t name = string_of(w, f->function), file = string_of(w, f->file);

		vc_proto_value(packed, location_of(w, function_of(w, (uint64_t)f->function << 32 |
								  f->file, name, file), f->line));
	}
}

static void sample(struct writer *w, const struct vc_stack *s, bool has_all)
{
	struct vc_proto packed = { 0 }, values = { 0 }, body = { 0 };

	locations(w, s, &packed);
	if (has_all) {
		vc_proto_value(&values, s->all_blocks);
		vc_proto_value(&values, s->all_bytes);
	}
	vc_proto_value(&values, s->blocks);
	vc_proto_value(&values, s->bytes);
	vc_proto_message(&body, SAMPLE_LOCATIONS, &packed);
	vc_proto_message(&body, SAMPLE_VALUES, &values);
	vc_proto_message(&w->p, SAMPLE, &body);
	vc_proto_fini(&packed);
	vc_proto_fini(&values);
	vc_proto_fini(&body);
}

static void types(struct writer *w, bool has_all)
{
	static const char *const type[] = { "alloc_objects", "alloc_space", "inuse_objects",
					   "inuse_space" };
	uint64_t count, bytes, name = 0;

	add_text(w, "");
	count = add_text(w, "count");
	bytes = add_text(w, "bytes");
	for (size_t i = has_all ? 0 : 2; i < 4; i++) {
		name = add_text(w, type[i]);
		vc_proto_uint(&w->sub, VT_TYPE, name);
		vc_proto_uint(&w->sub, VT_UNIT, i % 2 ? bytes : count);
		vc_proto_message(&w->p, SAMPLE_TYPE, &w->sub);
	}
	vc_proto_uint(&w->p, DEFAULT_TYPE, name);
}

/* One gzip member; no time, no name, so the same run gives the same bytes. */
static int compress_to(struct vc_output *out, const struct vc_proto *p, struct vc_error *err)
{
	z_stream z = { 0 };
	unsigned char buf[16384];
	size_t at = 0;
	int r;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return vc_nomem(err, "gzip");
	do {
		if (!z.avail_in && at < p->n) {
			z.next_in = p->at + at;
			z.avail_in = p->n - at > INT_MAX ? INT_MAX : (uInt)(p->n - at);
			at += z.avail_in;
		}
		z.next_out = buf;
		z.avail_out = sizeof(buf);
		r = deflate(&z, at == p->n ? Z_FINISH : Z_NO_FLUSH);
		vc_output_write(out, buf, sizeof(buf) - z.avail_out);
	} while (r == Z_OK);
	deflateEnd(&z);
	return r == Z_STREAM_END ? VC_OK : vc_fail(err, VC_EINTERNAL, "gzip failed (%d)", r);
}

static int pprof_write(const struct vc_result *runs, size_t n, const void *config,
		       struct vc_output *out, struct vc_error *err)
{
	struct writer w = { .m = n ? runs->meta : NULL };
	struct vc_stacks s;
	int r;

	if (n != 1)
		return vc_fail(err, VC_EUSAGE, "a profile holds one run, not %zu; write one file "
			       "for each ('go tool pprof -diff_base' compares them)", n);
	VC_TRY(vc_stacks_init(&s, runs, err));
	types(&w, s.has_all);
	for (size_t i = 0; i < s.n; i++)
		sample(&w, &s.at[i], s.has_all);
	vc_proto_uint(&w.p, COMMENT,
		      add_text(&w, s.at_oom ? "live bytes when it ran out of memory" :
					      "live bytes at the peak of reserved memory"));
	vc_proto_uint(&w.p, DURATION, runs->stats.time_ns);
	vc_proto_append(&w.p, &w.strings);
	w.nomem |= w.p.nomem | w.sub.nomem | w.part.nomem;
	r = w.nomem ? vc_nomem(err, "the profile") : compress_to(out, &w.p, err);
	vc_proto_fini(&w.p);
	vc_proto_fini(&w.sub);
	vc_proto_fini(&w.part);
	vc_proto_fini(&w.strings);
	VC_FREE(w.string.slot, w.function.slot, w.location.slot);
	vc_stacks_fini(&s);
	return r;
}

const struct vc_sink_type vc_sink_pprof = {
	.name = "pprof", .extension = "pprof",
	.summary = "bytes by call stack for go tool pprof (gzip'ed)",
	.observers = VC_READS("peak", "oom", "lives"), .write = pprof_write,
};
