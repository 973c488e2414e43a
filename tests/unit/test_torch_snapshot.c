/* SPDX-License-Identifier: Apache-2.0 */
/* test_torch_snapshot.c - snapshots of every layout become the same events; the start heap is
 * exact. */
#include "tests/support/test.h"

#include "simulator/replay/source.h"
#include "tests/support/snapshot_writer.h"
#include "tests/support/temp_path.h"

#define MIB (1LL << 20)

struct line { const char *action; int64_t addr, size, stream; };
struct cell { int64_t size, requested; const char *state; };
struct seg { int64_t addr, size; const char *type; const struct cell *cell; size_t cells; };
struct shot {
	const struct line *line[3]; size_t lines[3], devices;
	const struct seg *seg; size_t segs;
	int64_t first_us;       /* 0: events without times */
	int expandable;
};

static void write_lines(struct pw *w, const struct shot *s, size_t d)
{
	pw_list(w);
	for (size_t i = 0; i < s->lines[d]; i++) {
		const struct line *l = &s->line[d][i];

		pw_dict(w);
		pw_key_text(w, "action", l->action);
		pw_key_int(w, strcmp(l->action, "oom") ? "addr" : "device_free", l->addr);
		pw_key_int(w, "size", l->size);
		pw_key_int(w, "stream", l->stream);
		if (s->first_us)
			pw_key_int(w, "time_us", s->first_us + (int64_t)i * 10);
		pw_key_text(w, "something_new", "ignored");
		pw_dict_end(w);
		pw_list_item(w);
	}
	pw_list_end(w);
}

static void write_segments(struct pw *w, const struct shot *s)
{
	pw_list(w);
	for (size_t i = 0; i < s->segs; i++) {
		const struct seg *g = &s->seg[i];

		pw_dict(w);
		pw_key_int(w, "device", 0);
		pw_key_int(w, "address", g->addr);
		pw_key_int(w, "total_size", g->size);
		pw_key_int(w, "stream", 0);
		pw_key_text(w, "segment_type", g->type);
		pw_key_bool(w, "is_expandable", s->expandable);
		pw_text(w, "blocks");
		pw_list(w);
		for (size_t k = 0; k < g->cells; k++) {
			pw_dict(w);
			pw_key_int(w, "size", g->cell[k].size);
			pw_key_int(w, "requested_size", g->cell[k].requested);
			pw_key_text(w, "state", g->cell[k].state);
			pw_dict_end(w);
			pw_list_item(w);
		}
		pw_list_end(w);
		pw_item(w);
		pw_dict_end(w);
		pw_list_item(w);
	}
	pw_list_end(w);
}

static void write_shot(struct pw *w, const struct shot *s, enum pw_style style)
{
	pw_begin(w, style);
	pw_dict(w);
	pw_text(w, "segments");
	write_segments(w, s);
	pw_item(w);
	pw_text(w, "device_traces");
	pw_list(w);
	for (size_t d = 0; d < s->devices; d++) {
		write_lines(w, s, d);
		pw_list_item(w);
	}
	pw_list_end(w);
	pw_item(w);
	pw_dict_end(w);
	pw_end(w);
}

/* Reads what the writer holds; the message of a failure goes to *err. */
static int read_bytes(const struct pw *w, struct vc_trace *t, struct vc_error *err)
{
	struct vc_source *src;
	FILE *f = fopen(path, "wb");
	int rc;

	*t = (struct vc_trace){ 0 };
	assert_non_null(f);
	assert_int_equal(fwrite(w->at, 1, w->n, f), w->n);
	fclose(f);
	src = vc_source_open(path, err);
	if (!src)
		return -1;
	rc = vc_trace_read(t, src, err);
	vc_source_free(src);
	return rc;
}

static void read_shot(const struct shot *s, enum pw_style style, struct vc_trace *t)
{
	struct vc_error err = { 0 };
	struct pw w;

	write_shot(&w, s, style);
	if (read_bytes(&w, t, &err))
		fail_msg("%s", err.message);
	free(w.at);
}

/* Compact form of events: kind letter, id, @address in units of 512, =size. */
static const char *spell(const struct vc_trace *t)
{
	static char text[4096];
	static const char *const name[] = {
		[VC_EV_ALLOC] = "A",          [VC_EV_FREE] = "F",
		[VC_EV_FREE_DONE] = "D",      [VC_EV_USE] = "U",
		[VC_EV_TRIM] = "T",           [VC_EV_MARK] = "M",
		[VC_EV_SEGMENT_ALLOC] = "S+", [VC_EV_SEGMENT_FREE] = "S-",
		[VC_EV_SEGMENT_MAP] = "M+",   [VC_EV_SEGMENT_UNMAP] = "M-",
		[VC_EV_OOM] = "OOM",          [VC_EV_HEAP_SEGMENT] = "[",
		[VC_EV_HEAP_BLOCK] = "b",
	};
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < t->n && n < sizeof(text) - 80; i++) {
		const struct vc_event *e = &t->ev[i];

		if (e->flags & VC_EVF_FINAL && e->kind >= VC_EV_HEAP_SEGMENT)
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "",
				      name[e->kind]);
		if (e->kind == VC_EV_HEAP_SEGMENT)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%llx=%lld%s",
					      (unsigned long long)e->addr, (long long)e->size,
					      e->flags & VC_EVF_SMALL ? "s" : "");
		else if (e->kind == VC_EV_HEAP_BLOCK)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%llx=%lld%s",
					      (unsigned long long)e->addr, (long long)e->size,
					      e->flags & VC_EVF_LIVE    ? "L" :
					      e->flags & VC_EVF_PENDING ? "P" :
									  "");
		else if (e->kind >= VC_EV_SEGMENT_ALLOC)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%llx",
					      (unsigned long long)e->addr);
		else if (e->kind != VC_EV_TRIM)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%llu",
					      (unsigned long long)e->id);
	}
	return text;
}

static void expect(const struct shot *s, const char *events)
{
	for (int style = PW_ITEMS2; style <= PW_PYTHON4; style++) {
		struct vc_trace t;

		read_shot(s, style, &t);
		assert_string_equal(spell(&t), events);
		assert_int_equal(t.meta->unmatched_frees, 0);
		vc_trace_fini(&t);
	}
}

static void a_recording_from_the_start_begins_empty(void **unused)
{
	static const struct line l[] = {
		{ "segment_alloc", 0x200000, 2 * MIB, 0 }, { "alloc", 0x200000, 1000, 0 },
		{ "free_requested", 0x200000, 1000, 0 }, { "free_completed", 0x200000, 1000, 0 },
		{ "alloc", 0x200000, 512, 0 },
	};
	static const struct cell c[] = { { 512, 512, "active_allocated" },
					{ 2 * MIB - 512, 0, "inactive" } };
	static const struct seg g[] = { { 0x200000, 2 * MIB, "small", c, 2 } };
	struct shot s = { .line = { l },
			 .lines = { 5 },
			 .devices = 1,
			 .seg = g,
			 .segs = 1,
			 .first_us = 1700000000000000 };
	struct vc_trace t;

	(void)unused;
	expect(&s, "S+200000 A1 F1 A2");
	read_shot(&s, PW_PYTHON4, &t);
	assert_int_equal(t.n, 4 + 3);
	assert_int_equal(t.ev[0].time_ns, 1000);
	assert_int_equal(t.ev[3].time_ns, 41000);
	assert_int_equal(t.meta->start_unix_ns, 1699999999999999000);
	assert_int_equal(t.ev[4].kind, VC_EV_HEAP_SEGMENT);
	assert_int_equal(t.ev[4].flags, VC_EVF_FINAL | VC_EVF_SMALL);
	assert_int_equal(t.ev[5].id, 2);
	assert_int_equal(t.ev[5].flags, VC_EVF_FINAL | VC_EVF_LIVE);
	assert_int_equal(t.ev[6].id, 0);
	assert_int_equal(t.meta->max_id, 2);
	assert_int_equal(t.meta->how[VC_CAP_START_HEAP], VC_HOW_DERIVED);
	assert_int_equal(t.meta->how[VC_CAP_TIMES], VC_HOW_RECORDED);
	vc_trace_fini(&t);
}

static void a_recording_from_the_middle_is_rewound(void **unused)
{
	/* At first: A at +0 (freed later), B at +1 MiB lives through; then C takes A's place. */
	static const struct line l[] = {
		{ "free_requested", 0x200000, 700, 0 }, { "free_completed", 0x200000, 700, 0 },
		{ "alloc", 0x200000, 300, 0 },
	};
	static const struct cell c[] = {
		{ 512, 300, "active_allocated" },
		{ MIB - 512, 0, "inactive" },
		{ MIB, MIB, "active_allocated" },
	};
	static const struct seg g[] = { { 0x200000, 2 * MIB, "small", c, 3 } };
	struct shot s = { .line = { l }, .lines = { 3 }, .devices = 1, .seg = g, .segs = 1 };

	(void)unused;
	expect(&s, "[200000=2097152s b200000=700L b200400=0 b300000=1048576L F1 A3");
}

static void slack_in_large_segments_belongs_to_its_block(void **unused)
{
	/* 20 MiB segment; the rewound block of 12 MiB + 512 KiB of slack before a live one of 4
	 * MiB: large blocks are split only when more than 1 MiB is left. Behind it 3.5 MiB are
	 * free. */
	static const struct line l[] = {
		{ "free_requested", 0x1000000, 12 * MIB, 0 },
		{ "free_completed", 0x1000000, 12 * MIB, 0 },
	};
	static const struct cell c[] = {
		{ 12 * MIB + MIB / 2, 0, "inactive" }, { 4 * MIB, 4 * MIB, "active_allocated" },
		{ 3 * MIB + MIB / 2, 0, "inactive" },
	};
	static const struct seg g[] = { { 0x1000000, 20 * MIB, "large", c, 3 } };
	struct shot s = { .line = { l }, .lines = { 2 }, .devices = 1, .seg = g, .segs = 1 };

	(void)unused;
	expect(&s, "[1000000=20971520 b1000000=12582912L b1c80000=4194304L b2080000=0 F1");
}

static void an_allocation_behind_a_block_proves_its_end(void **unused)
{
	/* 3 MiB at the front hold 512 KiB of slack, the next 2 MiB are free: only the address of
	 * the next allocation says where between 3 and 5.5 MiB the block ends. The last one comes
	 * when the block is gone and proves nothing. */
	static const struct line l[] = {
		{ "alloc", 0x1380000, MIB + MIB / 2, 0 },
		{ "free_requested", 0x1000000, 3 * MIB, 0 },
		{ "free_completed", 0x1000000, 3 * MIB, 0 },
		{ "alloc", 0x1000000, 2 * MIB, 0 },
		{ "alloc", 0x1200000, MIB + 1, 0 },
	};
	static const struct cell c[] = {
		{ 2 * MIB, 2 * MIB, "active_allocated" },
		{ MIB + MIB / 2, MIB + 1, "active_allocated" },
		{ 2 * MIB, MIB + MIB / 2, "active_allocated" },
		{ 4 * MIB, 4 * MIB, "active_allocated" },
		{ 10 * MIB + MIB / 2, 0, "inactive" },
	};
	static const struct seg g[] = { { 0x1000000, 20 * MIB, "large", c, 5 } };
	struct shot s = { .line = { l }, .lines = { 5 }, .devices = 1, .seg = g, .segs = 1 };

	(void)unused;
	expect(&s, "[1000000=20971520 b1000000=3145728L b1380000=0 b1580000=4194304L b1980000=0 "
		   "A3 F1 A4 A5");
}

static void segments_that_went_come_back(void **unused)
{
	static const struct line l[] = {
		{ "free_requested", 0x200000, 512, 0 }, { "free_completed", 0x200000, 512, 0 },
		{ "segment_free", 0x200000, 2 * MIB, 0 }, { "alloc", 0x400000, 512, 0 },
	};
	static const struct cell c[] = { { 512, 512, "active_allocated" },
					{ 2 * MIB - 512, 0, "inactive" } };
	static const struct seg g[] = { { 0x400000, 2 * MIB, "small", c, 2 } };
	struct shot s = { .line = { l }, .lines = { 4 }, .devices = 1, .seg = g, .segs = 1 };

	(void)unused;
	/* The burst of segment_free that served no request was an empty_cache: T comes after it. */
	expect(&s,
	       "[200000=2097152s b200000=512L b200200=0 [400000=2097152s b400000=0 F1 S-200000 T "
	       "A2");
}

static void a_flush_that_serves_a_request_is_no_empty_cache(void **unused)
{
	static const struct line l[] = {
		{ "segment_free", 0x200000, 2 * MIB, 0 },
		{ "segment_alloc", 0x4000000, 20 * MIB, 0 },
		{ "alloc", 0x4000000, 5 * MIB, 0 },
		{ "segment_free", 0x600000, 2 * MIB, 0 },
		{ "oom", 77, 80 * MIB, 0 },
	};
	static const struct cell c[] = { { 5 * MIB, 5 * MIB, "active_allocated" },
					{ 15 * MIB, 0, "inactive" } };
	static const struct seg g[] = { { 0x4000000, 20 * MIB, "large", c, 2 } };
	struct shot s = { .line = { l }, .lines = { 5 }, .devices = 1, .seg = g, .segs = 1 };

	(void)unused;
	expect(&s, "[200000=2097152s b200000=0 [600000=2097152s b600000=0 S-200000 S+4000000 A1 "
	       "S-600000 OOM4d");
}

static void what_waits_at_the_start_is_completed(void **unused)
{
	static const struct line l[] = { { "free_completed", 0x200000, 512, 0 },
					{ "alloc", 0x200000, 300, 0 } };
	static const struct cell c[] = { { 512, 300, "active_allocated" },
					{ 2 * MIB - 512, 0, "inactive" } };
	static const struct seg g[] = { { 0x200000, 2 * MIB, "small", c, 2 } };
	(void)unused;
	expect(&(struct shot){ .line = { l }, .lines = { 2 }, .devices = 1, .seg = g, .segs = 1 },
	       "[200000=2097152s b200000=512P b200200=0 D1 A2");
}

static void deferred_frees_keep_their_completion(void **unused)
{
	static const struct line l[] = {
		{ "segment_alloc", 0x200000, 2 * MIB, 0 }, { "alloc", 0x200000, 512, 0 },
		{ "alloc", 0x200200, 512, 7 }, { "free_requested", 0x200000, 512, 0 },
		{ "alloc", 0x200400, 512, 0 }, { "free_completed", 0x200000, 512, 0 },
	};
	static const struct cell c[] = {
		{ 512, 0, "inactive" },
		{ 512, 512, "active_allocated" },
		{ 512, 512, "active_allocated" },
		{ 2 * MIB - 1536, 0, "inactive" },
	};
	static const struct seg g[] = { { 0x200000, 2 * MIB, "small", c, 4 } };
	struct shot s = { .line = { l }, .lines = { 6 }, .devices = 1, .seg = g, .segs = 1 };
	struct vc_trace t;

	(void)unused;
	expect(&s, "S+200000 A1 A2 U1 F1 A3 D1");
	read_shot(&s, PW_PYTHON4, &t);
	assert_int_equal(t.ev[3].stream, 1); /* the other stream */
	assert_int_equal(t.ev[4].flags, VC_EVF_PENDING);
	assert_int_equal(t.meta->how[VC_CAP_USES], VC_HOW_DERIVED);
	vc_trace_fini(&t);
}

static void a_block_that_waits_at_the_start_is_pending(void **unused)
{
	static const struct line l[] = { { "alloc", 0x200200, 512, 0 },
					{ "free_completed", 0x200000, 512, 0 } };
	static const struct cell c[] = {
		{ 512, 0, "inactive" },
		{ 512, 512, "active_allocated" },
		{ 2 * MIB - 1024, 0, "inactive" },
	};
	static const struct seg g[] = { { 0x200000, 2 * MIB, "small", c, 3 } };
	struct shot s = { .line = { l }, .lines = { 2 }, .devices = 1, .seg = g, .segs = 1 };

	(void)unused;
	expect(&s, "[200000=2097152s b200000=512P b200200=0 A2 D1");
}

static void expandable_segments_grow_and_shrink_backwards(void **unused)
{
	/* Mapped at the end: [0, 2 MiB) and [6, 8). The trace mapped [2, 4) and [6, 8), unmapped
	 * [2, 6). */
	static const struct line l[] = {
		{ "segment_map", 0x10200000, 2 * MIB, 0 },
		{ "segment_unmap", 0x10200000, 4 * MIB, 0 },
		{ "segment_map", 0x10600000, 2 * MIB, 0 },
	};
	static const struct cell c[] = { { 2 * MIB, 2 * MIB, "active_allocated" } },
				 f[] = { { 2 * MIB, 0, "inactive" } };
	static const struct seg g[] = {
		{ 0x10000000, 2 * MIB, "small", c, 1 }, { 0x10600000, 2 * MIB, "small", f, 1 },
	};
	struct shot s = {
		.line = { l }, .lines = { 3 }, .devices = 1, .seg = g, .segs = 2, .expandable = 1 };

	(void)unused;
	expect(&s,
	       "[10000000=2097152s b10000000=2097152L [10400000=2097152s b10400000=0 M+10200000 "
	       "M-10200000 M+10600000");
}

static void the_pool_of_an_unmapped_range_shows_in_its_size(void **unused)
{
	/* Small pools map 2 MiB at a time, large ones 20 (kLargeBuffer). */
	static const struct line l[] = {
		{ "segment_unmap", 0x10000000, 10 * MIB, 0 },
		{ "segment_unmap", 0x20000000, 20 * MIB, 0 },
		{ "segment_unmap", 0x30000000, 60 * MIB, 0 },
		{ "alloc", 0x40000000, 512, 0 },
	};
	struct shot s = { .line = { l }, .lines = { 4 }, .devices = 1, .expandable = 1 };

	(void)unused;
	expect(&s,
	       "[10000000=10485760s b10000000=0 [20000000=20971520 b20000000=0 "
	       "[30000000=62914560 b30000000=0 M-10000000 M-20000000 M-30000000 T A1");
}

static void segments_alone_are_evidence_of_segments(void **unused)
{
	static const char *const action[] = { "segment_alloc", "segment_free", "segment_map",
					      "segment_unmap" };

	(void)unused;
	for (size_t i = 0; i < sizeof(action) / sizeof(*action); i++) {
		struct line l = { action[i], 0x200000, 2 * MIB, 0 };
		struct shot s = { .line = { &l }, .lines = { 1 }, .devices = 1 };
		struct vc_trace t;

		read_shot(&s, PW_PYTHON4, &t);
		assert_int_equal(t.meta->how[VC_CAP_SEGMENTS], VC_HOW_RECORDED);
		assert_int_equal(t.meta->how[VC_CAP_REQUESTS], VC_HOW_ABSENT);
		vc_trace_fini(&t);
	}
}

static void devices_follow_each_other(void **unused)
{
	static const struct line a[] = { { "alloc", 0x200000, 512, 0 } },
				 b[] = { { "alloc", 0x200000, 1024, 0 } };
	struct shot s = { .line = { a, NULL, b }, .lines = { 1, 0, 1 }, .devices = 3 };
	struct vc_trace t;

	(void)unused;
	expect(&s, "A1 A2");
	read_shot(&s, PW_TORCHSCRIPT2, &t);
	assert_int_equal(t.ev[0].device, 0);
	assert_int_equal(t.ev[1].device, 2);
	vc_trace_fini(&t);
}

static void what_cannot_be_is_counted_not_fatal(void **unused)
{
	static const struct line l[] = {
		{ "free_requested", 0x999000, 512, 0 },
		{ "free_completed", 0x999000, 512, 0 },
		{ "alloc", 0x200000, 512, 0 },
		{ "alloc", 0x200000, 512, 0 },
		{ "surprise", 1, 2, 3 },
	};
	struct shot s = { .line = { l }, .lines = { 5 }, .devices = 1 };
	struct vc_trace t;

	(void)unused;
	read_shot(&s, PW_PYTHON4, &t);
	assert_string_equal(spell(&t), "F0 A1 A2");
	assert_int_equal(t.meta->unmatched_frees, 1);
	assert_int_equal(t.meta->double_allocs, 1);
	assert_true(t.meta->notes >= 3);
	vc_trace_fini(&t);
}

static void refused(const struct shot *s, const char *sentence)
{
	struct vc_error err = { 0 };
	struct vc_trace t;
	struct pw w;

	write_shot(&w, s, PW_PYTHON4);
	assert_int_not_equal(read_bytes(&w, &t, &err), 0);
	if (!strstr(err.message, sentence))
		fail_msg("'%s' does not say '%s'", err.message, sentence);
	vc_trace_fini(&t);
	free(w.at);
}

static void impossible_numbers_are_refused(void **unused)
{
	static const struct line negative[] = { { "alloc", 0x200000, 512, 0 },
					       { "alloc", 0x300000, -5, 0 } };
	static const struct line huge[] = { { "alloc", 0x200000, INT64_MAX, 0 } };
	static const struct cell c[] = { { 4 * MIB, 0, "inactive" } };
	static const struct seg g[] = { { 0x400000, 2 * MIB, "small", c, 1 } };
	static const struct seg wide[] = { { 0x400000, INT64_MAX, "small", c, 1 } };
	static const struct seg minus[] = { { 0x400000, -1, "small", c, 1 } };

	(void)unused;
	refused(&(struct shot){ .line = { negative }, .lines = { 2 }, .devices = 1 },
		"event 1: size is negative");
	refused(&(struct shot){ .line = { huge }, .lines = { 1 }, .devices = 1 },
		"more than any device has");
	refused(&(struct shot){ .seg = g, .segs = 1 }, "block 0 does not follow");
	refused(&(struct shot){ .seg = wide, .segs = 1 }, "more than any device has");
	refused(&(struct shot){ .seg = minus, .segs = 1 }, "segment 0: total_size is negative");
}

static void the_layout_of_torch_2_0_and_the_list_form_are_read(void **unused)
{
	struct vc_error err = { 0 };
	struct vc_trace t;
	struct pw w;

	(void)unused;
	for (int form = 0; form < 2; form++) {
		pw_begin(&w, PW_PYTHON4);
		if (!form) {
			pw_dict(&w);
			pw_text(&w, "segments");
		}
		pw_list(&w);
		pw_dict(&w);
		pw_key_int(&w, "address", 0x200000);
		pw_key_int(&w, "total_size", 2 * MIB);
		pw_key_text(&w, "segment_type", "small");
		pw_text(&w, "blocks");
		pw_list(&w);
		pw_dict(&w);
		pw_key_int(&w, "size", 1024);
		pw_key_text(&w, "state", "active_allocated");
		pw_text(&w, "history");
		pw_list(&w);
		pw_dict(&w);
		pw_key_int(&w, "addr", 0x200000);
		pw_key_int(&w, "real_size", 600);
		pw_dict_end(&w);
		pw_list_end(&w);
		pw_dict_end(&w);
		pw_list_end(&w);
		pw_dict_end(&w);
		pw_list_end(&w);
		if (!form)
			pw_dict_end(&w);
		pw_end(&w);
		if (read_bytes(&w, &t, &err))
			fail_msg("%s", err.message);
		assert_string_equal(spell(&t), "[200000=2097152s b200000=600L b200400=0");
		if (form)
			assert_null(t.meta->torch);
		else
			assert_string_equal(t.meta->torch, "2.0");
		vc_trace_fini(&t);
		free(w.at);
	}
}

static void annotate(struct pw *w, const char *stage, int64_t us)
{
	pw_dict(w);
	pw_key_text(w, "name", "forward");
	pw_key_text(w, "stage", stage);
	pw_key_int(w, "device", 0);
	pw_key_int(w, "time_us", us);
	pw_dict_end(w);
}

static void write_rich(struct pw *w, const char *const function[3])
{
	pw_begin(w, PW_PYTHON4);
	pw_dict(w);
	pw_text(w, "device_traces");
	pw_list(w);
	pw_list(w);
	pw_dict(w);
	pw_key_text(w, "action", "alloc");
	pw_key_int(w, "addr", 0x200000);
	pw_key_int(w, "size", 600);
	pw_key_int(w, "time_us", 1000);
	pw_key_text(w, "compile_context", "N/A");
	pw_key_text(w, "user_metadata", "optimizer");
	pw_text(w, "frames");
	pw_list(w);
	for (int i = 0; i < 3; i++) {
		pw_dict(w);
		pw_key_text(w, "filename", "a.py");
		pw_key_int(w, "line", 10 + i);
		pw_key_text(w, "name", function[i]);
		pw_dict_end(w);
	}
	pw_list_end(w);
	pw_dict_end(w);
	pw_list_end(w);
	pw_list_end(w);
	pw_text(w, "allocator_settings");
	pw_dict(w);
	pw_key_text(w, "PYTORCH_CUDA_ALLOC_CONF", "");
	pw_key_int(w, "max_split_size", 64 * MIB);
	pw_key_bool(w, "expandable_segments", 1);
	pw_dict_end(w);
	pw_text(w, "external_annotations");
	pw_list(w);
	annotate(w, "START", 999);
	annotate(w, "END", 1001);
	pw_list_end(w);
	pw_dict_end(w);
	pw_end(w);
}

static void stacks_settings_and_annotations_are_kept(void **unused)
{
	static const char *const function[] = { "malloc_here", "train", "<module>" };
	struct vc_error err = { 0 };
	struct vc_trace t;
	struct pw w;
	const struct vc_frame *f;

	(void)unused;
	write_rich(&w, function);
	if (read_bytes(&w, &t, &err))
		fail_msg("%s", err.message);
	assert_string_equal(spell(&t), "M0 M0 A1 M0");
	assert_int_equal(t.ev[0].flags, VC_MARK_BEGIN);
	assert_string_equal(t.meta->string[t.ev[0].label], "forward");
	assert_int_equal(t.ev[1].flags, VC_MARK_INSTANT);
	assert_string_equal(t.meta->string[t.ev[1].label], "optimizer");
	assert_string_equal(t.meta->string[t.ev[2].label], "optimizer");
	assert_int_equal(t.ev[3].flags, VC_MARK_END);
	f = &t.meta->frame[t.ev[2].site];
	for (int i = 0; i < 3; i++) {
		assert_string_equal(t.meta->string[f->function], function[i]);
		assert_int_equal(f->line, 10 + i);
		f = &t.meta->frame[f->parent];
	}
	assert_ptr_equal(f, t.meta->frame);
	assert_string_equal(t.meta->conf, "expandable_segments:True,max_split_size_mb:64");
	assert_string_equal(t.meta->torch, "2.11");
	vc_trace_fini(&t);
	free(w.at);
}

static void a_cut_or_foreign_pickle_is_one_sentence(void **unused)
{
	static const struct line l[] = { { "alloc", 0x200000, 512, 0 } };
	struct shot s = { .line = { l }, .lines = { 1 }, .devices = 1 };
	struct vc_error err = { 0 };
	struct vc_trace t;
	struct pw w;
	size_t n;

	(void)unused;
	write_shot(&w, &s, PW_PYTHON4);
	n = w.n;
	for (w.n = 2; w.n < n; w.n++)
		assert_int_not_equal(read_bytes(&w, &t, &err), 0);
	free(w.at);
	pw_begin(&w, PW_PYTHON4);
	pw_dict(&w);
	pw_key_int(&w, "x", 1);
	pw_dict_end(&w);
	pw_end(&w);
	assert_int_not_equal(read_bytes(&w, &t, &err), 0);
	assert_non_null(strstr(err.message, "no memory snapshot"));
	free(w.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_recording_from_the_start_begins_empty),
		cmocka_unit_test(a_recording_from_the_middle_is_rewound),
		cmocka_unit_test(slack_in_large_segments_belongs_to_its_block),
		cmocka_unit_test(an_allocation_behind_a_block_proves_its_end),
		cmocka_unit_test(segments_that_went_come_back),
		cmocka_unit_test(a_flush_that_serves_a_request_is_no_empty_cache),
		cmocka_unit_test(what_waits_at_the_start_is_completed),
		cmocka_unit_test(deferred_frees_keep_their_completion),
		cmocka_unit_test(a_block_that_waits_at_the_start_is_pending),
		cmocka_unit_test(expandable_segments_grow_and_shrink_backwards),
		cmocka_unit_test(the_pool_of_an_unmapped_range_shows_in_its_size),
		cmocka_unit_test(segments_alone_are_evidence_of_segments),
		cmocka_unit_test(devices_follow_each_other),
		cmocka_unit_test(what_cannot_be_is_counted_not_fatal),
		cmocka_unit_test(impossible_numbers_are_refused),
		cmocka_unit_test(the_layout_of_torch_2_0_and_the_list_form_are_read),
		cmocka_unit_test(stacks_settings_and_annotations_are_kept),
		cmocka_unit_test(a_cut_or_foreign_pickle_is_one_sentence),
	};

	return cmocka_run_group_tests(tests, make_path, drop_path);
}
