/* SPDX-License-Identifier: Apache-2.0 */
/* test_fold.c - what is known of the past when a recording begins in the middle of a run (fold.c),
 * and what a watch makes of it (watch.c). */
#include "tests/support/test.h"

#include "tracer/fold.c"
#include "tracer/watch.c"

enum { MIB = 1 << 20 };

static const char *const names[] = {
	[VC_EV_ALLOC] = "alloc", [VC_EV_USE] = "use", [VC_EV_POOL_CREATE] = "create",
	[VC_EV_POOL_BEGIN] = "begin", [VC_EV_FRACTION] = "fraction",
	[VC_EV_CONFIGURE] = "configure", [VC_EV_STREAM_CLASS] = "class",
	[VC_EV_DEVICE_SAMPLE] = "sample", [VC_EV_OUTSIDE_ALLOC] = "outside",
	[VC_EV_PAGES_OUT] = "out", [VC_EV_HEAP_SEGMENT] = "segment",
	[VC_EV_HEAP_BLOCK] = "block" };

static void put_all(struct vc_fold *f, const struct vc_record *rec, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_true(vc_fold_put(f, &rec[i]));
}
#define PUT(f, ...) \
	put_all(f, (const struct vc_record[]){ __VA_ARGS__ }, \
		sizeof((const struct vc_record[]){ __VA_ARGS__ }) / sizeof(struct vc_record))

static void print(char *to, size_t room, const struct vc_record *rec, size_t n)
{
	size_t at = 0;

	to[0] = '\0';
	while (n && rec[n - 1].kind == VC_REC_KNOWN) /* in the order of a table: see known() */
		n--;
	for (size_t i = 0; i < n; i++) {
		const struct { const char *name; uint64_t value; } field[] = {
			{ "d", rec[i].device }, { "at", rec[i].addr }, { "n", rec[i].size },
			{ "x", rec[i].extra }, { "s", rec[i].stream }, { "r", rec[i].reserved },
			{ "f", rec[i].flags }, { "t", rec[i].text } };

		at += (size_t)snprintf(to + at, room - at, "%s", names[rec[i].kind]);
		for (size_t k = 0; k < sizeof(field) / sizeof(*field); k++)
			if (field[k].value)
				at += (size_t)snprintf(to + at, room - at, " %s%llx", field[k].name,
						       (unsigned long long)field[k].value);
		at += (size_t)snprintf(to + at, room - at, "\n");
		assert_true(at < room);
	}
}

/* The records that the state makes. Folded again and again they make the same ones (uses turn
 * around each time) and the same totals. */
static void expect(struct vc_fold *f, const char *wanted)
{
	struct vc_fold_totals was = vc_fold_totals(f), is;
	struct vc_fold *now = f, *next;
	char text[16384];
	size_t n;

	for (int k = 0; k < 3; k++) {
		struct vc_record *rec = vc_fold_records(now, 77, &n);

		assert_non_null(rec);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(rec[i].time_ns, 77);
			assert_int_equal(rec[i].seq, 0);
		}
		print(text, sizeof(text), rec, n);
		if (k != 1)
			assert_string_equal(text, wanted);
		next = vc_fold_new();
		put_all(next, rec, n);
		free(rec);
		if (now != f)
			vc_fold_free(now);
		now = next;
	}
	is = vc_fold_totals(now);
	assert_int_equal(is.allocated, was.allocated);
	assert_int_equal(is.reserved, was.reserved);
	vc_fold_free(now);
}

static void expect_totals(const struct vc_fold *f, uint64_t allocated, uint64_t reserved,
			  size_t blocks)
{
	struct vc_fold_totals t = vc_fold_totals(f);

	assert_int_equal(t.allocated, allocated);
	assert_int_equal(t.reserved, reserved);
	assert_int_equal(t.blocks, blocks);
}

static struct vc_record r(uint8_t kind, uint64_t at, uint64_t n)
{
	return (struct vc_record){ .kind = kind, .addr = at, .size = n, .time_ns = 5, .seq = 9 };
}

static struct vc_record on(struct vc_record rec, uint64_t stream)
{
	rec.stream = stream;
	return rec;
}

static struct vc_record block(uint64_t at, uint64_t n, uint64_t bytes, uint64_t stream)
{
	struct vc_record rec = on(r(VC_EV_ALLOC, at, n), stream);

	rec.extra = bytes;
	rec.text = (uint32_t)at;
	return rec;
}

static struct vc_record flagged(struct vc_record rec, uint8_t flags)
{
	rec.flags = flags;
	return rec;
}

static struct vc_record of(struct vc_record rec, uint16_t device)
{
	rec.device = device;
	return rec;
}

static struct vc_record pool(uint8_t kind, uint64_t first, uint64_t second, uint64_t stream)
{
	struct vc_record rec = on(r(kind, first, 0), stream);

	rec.extra = second;
	return rec;
}

/* A segment becomes whose first request it serves; what lies between its blocks is free. */
static void blocks(void **state)
{
	struct vc_fold *f = vc_fold_new();

	(void)state;
	PUT(f, r(VC_EV_SEGMENT_ALLOC, 0x10000, 0x8000), block(0x10000, 100, 0x200, 5),
	    block(0x10200, 500, 0x200, 6), block(0x10400, 600, 0x400, 5),
	    block(0x10800, 8, 0x200, 5));
	expect_totals(f, 0xa00, 0x8000, 4);
	/* one that is through, one that waits for another stream, one freed that nobody knows */
	PUT(f, r(VC_EV_FREE, 0x10200, 0), r(VC_EV_USE, 0x99999, 0),
	    on(r(VC_EV_USE, 0x10400, 0), 8), on(r(VC_EV_USE, 0x10000, 0), 8),
	    on(r(VC_EV_USE, 0x10000, 0), 9), flagged(r(VC_EV_FREE, 0x10400, 0), VC_EVF_PENDING),
	    r(VC_EV_FREE, 0x10400, 0), r(VC_EV_FREE, 0x77000, 0),
	    r(VC_EV_FREE_DONE, 0x10000, 0));
	expect_totals(f, 0x400, 0x8000, 3);
	expect(f, "segment at10000 n8000 s5 f1\n"
		  "block at10000 n64 x200 s5 f4 t10000\n"
		  "block at10200 s5\n"
		  "block at10400 n258 x400 s5 f8 t10400\n"
		  "block at10800 n8 x200 s5 f4 t10800\n"
		  "block at10a00 s5\n"
		  "use at10000 s9\n"
		  "use at10000 s8\n");
	PUT(f, r(VC_EV_FREE_DONE, 0x10400, 0), block(0x17e00, 0x200, 0x200, 5),
	    on(r(VC_EV_USE, 0x17e00, 0), 3), block(0x10200, 1, 0x400, 6),
	    on(r(VC_EV_USE, 0x10200, 0), 4), r(VC_EV_FREE, 0x10000, 0));
	expect_totals(f, 0x800, 0x8000, 3);
	expect(f, "segment at10000 n8000 s5 f1\n"
		  "block at10000 s5\n"
		  "block at10200 n1 x400 s6 f4 t10200\n"
		  "block at10600 s5\n"
		  "block at10800 n8 x200 s5 f4 t10800\n"
		  "block at10a00 s5\n"
		  "block at17e00 n200 x200 s5 f4 t17e00\n"
		  "use at10200 s4\n"
		  "use at17e00 s3\n");
	/* where a block is there is none beside it */
	PUT(f, block(0x10800, 9, 0x200, 5), r(VC_EV_SEGMENT_FREE, 0x10001, 0),
	    r(VC_EV_SEGMENT_FREE, 0x10000, 0));
	expect_totals(f, 0x800, 0, 3);
	vc_fold_free(f);
	vc_fold_free(NULL);
}

/* Small or large, as the allocator rounds; two devices; blocks that lie in no segment. */
static void owners(void **state)
{
	struct vc_fold *f = vc_fold_new();

	(void)state;
	PUT(f, of(r(VC_EV_SEGMENT_ALLOC, 0x500000, 2 * MIB), 1),
	    r(VC_EV_SEGMENT_ALLOC, 0x200000, 2 * MIB), r(VC_EV_SEGMENT_ALLOC, 0x800000, 2 * MIB),
	    r(VC_EV_SEGMENT_ALLOC, 0xa00000, 2 * MIB + 512),
	    of(block(0x500000, MIB, MIB, 0), 1), block(0x300000, MIB + 1, MIB, 2),
	    flagged(block(0x100, 10, 0x200, 3), VC_RECF_BLOCK_ONLY | VC_RECF_DRIVER),
	    block(0x400, 20, 0x200, 0), flagged(r(VC_EV_FREE, 0x400, 0), VC_EVF_PENDING),
	    of(block(0x200, 30, 0x200, 0), 1), block(0xf00000, 40, 0x200, 0));
	expect(f, "segment at200000 n200000 s2\n"
		  "block at200000 s2\n"
		  "block at300000 n100001 x100000 s2 f4 t300000\n"
		  "segment at800000 n200000 f1\n"
		  "block at800000\n"
		  "segment ata00000 n200200\n"
		  "block ata00000\n"
		  "segment d1 at500000 n200000 f1\n"
		  "block d1 at500000 n100000 x100000 f4 t500000\n"
		  "block d1 at600000\n"
		  "alloc at100 na x200 s3 f40 t100\n"
		  "alloc atf00000 n28 x200 tf00000\n"
		  "alloc d1 at200 n1e x200 t200\n");
	vc_fold_free(f);
}

/* Mapped runs are joined where they are one's, and cut where a part is unmapped. */
static void expandable(void **state)
{
	struct vc_fold *f = vc_fold_new();

	(void)state;
	PUT(f, r(VC_EV_SEGMENT_MAP, 0x1000000, 2 * MIB), block(0x1000000, 64, 512, 1),
	    r(VC_EV_SEGMENT_MAP, 0x1200000, 2 * MIB), r(VC_EV_SEGMENT_MAP, 0x1400000, 4 * MIB));
	expect(f, "segment at1000000 n800000 s1 f3\n"
		  "block at1000000 n40 x200 s1 f4 t1000000\n"
		  "block at1000200 s1\n");
	/* the middle of one, then the end of what is left and the beginning of the next */
	PUT(f, r(VC_EV_SEGMENT_UNMAP, 0x1500000, MIB));
	expect_totals(f, 512, 7 * MIB, 1);
	PUT(f, r(VC_EV_SEGMENT_UNMAP, 0x1300000, 0x180000));
	expect_totals(f, 512, 0x580000, 1);
	expect(f, "segment at1000000 n300000 s1 f3\n"
		  "block at1000000 n40 x200 s1 f4 t1000000\n"
		  "block at1000200 s1\n"
		  "segment at1480000 n80000 f2\n"
		  "block at1480000\n"
		  "segment at1600000 n200000 f2\n"
		  "block at1600000\n");
	/* the next one's is not the first one's, nor is what cudaMalloc gave unmapped */
	PUT(f, r(VC_EV_SEGMENT_MAP, 0x1300000, MIB), block(0x1300000, 64, 512, 2),
	    r(VC_EV_SEGMENT_ALLOC, 0x1400000, 0x80000),
	    r(VC_EV_SEGMENT_UNMAP, 0x1400000, 0x80000), r(VC_EV_SEGMENT_FREE, 0x1300000, 0));
	expect(f, "segment at1000000 n300000 s1 f3\n"
		  "block at1000000 n40 x200 s1 f4 t1000000\n"
		  "block at1000200 s1\n"
		  "segment at1300000 n100000 s2 f3\n"
		  "block at1300000 n40 x200 s2 f4 t1300000\n"
		  "block at1300200 s2\n"
		  "segment at1400000 n80000 f1\n"
		  "block at1400000\n"
		  "segment at1480000 n80000 f2\n"
		  "block at1480000\n"
		  "segment at1600000 n200000 f2\n"
		  "block at1600000\n");
	PUT(f, r(VC_EV_SEGMENT_UNMAP, 0x1000000, 8 * MIB));
	expect(f, "segment at1400000 n80000 f1\nblock at1400000\n"
		  "alloc at1000000 n40 x200 s1 t1000000\nalloc at1300000 n40 x200 s2 t1300000\n");
	vc_fold_free(f);
}

/* The pool of a scope owns the segments of its stream; a pool has its uses and flags. */
static void pools(void **state)
{
	struct vc_fold *f = vc_fold_new();

	(void)state;
	PUT(f, flagged(pool(VC_EV_POOL_CREATE, 0, 7, 0), VC_EVF_SERVED | VC_EVF_SMALL),
	    flagged(pool(VC_EV_POOL_CREATE, 0, 7, 0), VC_EVF_NO_SPLIT),
	    pool(VC_EV_POOL_BEGIN, 0, 7, UINT64_MAX), pool(VC_EV_POOL_BEGIN, 3, 1, 5),
	    r(VC_EV_SEGMENT_ALLOC, 0x200000, 2 * MIB), block(0x200000, 1, 512, 5),
	    r(VC_EV_SEGMENT_ALLOC, 0x400000, 2 * MIB), block(0x400000, 1, 512, 6),
	    of(r(VC_EV_SEGMENT_ALLOC, 0x600000, 2 * MIB), 1), of(block(0x600000, 1, 512, 5), 1),
	    of(pool(VC_EV_POOL_CREATE, 3, 1, 0), 2), pool(VC_EV_POOL_CREATE, 2, 1, 0),
	    pool(VC_EV_POOL_CREATE, 9, 9, 0),
	    pool(VC_EV_POOL_RELEASE, 9, 9, 0));
	expect(f, "segment at200000 n200000 x3 s5 r1 f1\n"
		  "block at200000 n1 x200 s5 f4 t200000\n"
		  "block at200200 s5\n"
		  "segment at400000 n200000 s6 r7 f1\n"
		  "block at400000 n1 x200 s6 f4 t400000\n"
		  "block at400200 s6\n"
		  "segment d1 at600000 n200000 s5 f1\n"
		  "block d1 at600000 n1 x200 s5 f4 t600000\n"
		  "block d1 at600200 s5\n"
		  "create x7 fa0\ncreate x7 fa0\ncreate d2 at3 x1\ncreate at2 x1\n"
		  "begin x7 sffffffffffffffff\nbegin at3 x1 s5\n");
	PUT(f, pool(VC_EV_POOL_END, 0, 7, 0), pool(VC_EV_POOL_RELEASE, 0, 7, 0),
	    pool(VC_EV_POOL_RELEASE, 0, 7, 0), r(VC_EV_SEGMENT_FREE, 0x600000, 0),
	    r(VC_EV_SEGMENT_FREE, 0x400000, 0), r(VC_EV_FREE, 0x400000, 0),
	    of(r(VC_EV_FREE, 0x600000, 0), 1), r(VC_EV_FREE, 0x200000, 0));
	expect(f, "segment at200000 n200000 x3 s5 r1 f1\nblock at200000 s5\n"
		  "create x7 fa0\ncreate d2 at3 x1\ncreate at2 x1\nbegin at3 x1 s5\n");
	vc_fold_free(f);
}

/* What stands once: the last of each device; of settings the last 64. */
static void settings(void **state)
{
	struct vc_fold *f = vc_fold_new();
	char wanted[4096];
	size_t at;

	(void)state;
	PUT(f, r(VC_EV_DEVICE_SAMPLE, 100, 1000), of(r(VC_EV_DEVICE_SAMPLE, 300, 3000), 1),
	    r(VC_EV_FRACTION, 0, 7), r(VC_EV_DEVICE_SAMPLE, 200, 2000),
	    of(r(VC_EV_FRACTION, 0, 8), 1), r(VC_EV_FRACTION, 0, 9));
	assert_int_equal(vc_fold_totals(f).free, 200);
	assert_int_equal(vc_fold_totals(f).total, 2000);
	for (uint64_t i = 0; i < SETTINGS + 2; i++)
		PUT(f, r(i % 2 ? VC_EV_CONFIGURE : VC_EV_STREAM_CLASS, i + 1, 0));
	at = (size_t)snprintf(wanted, sizeof(wanted), "sample atc8 n7d0\nsample d1 at12c nbb8\n"
			      "fraction n9\nfraction d1 n8\n");
	for (unsigned i = 2; i < SETTINGS + 2; i++)
		at += (size_t)snprintf(wanted + at, sizeof(wanted) - at, "%s at%x\n",
				       i % 2 ? "configure" : "class", i + 1);
	expect(f, wanted);
	vc_fold_free(f);
}

/* Memory of others at an address is not the pages of a segment there. */
static void outside(void **state)
{
	struct vc_fold *f = vc_fold_new();

	(void)state;
	PUT(f, flagged(r(VC_EV_OUTSIDE_ALLOC, 0x1000, 10), 1),
	    flagged(r(VC_EV_OUTSIDE_ALLOC, 0x2000, 20), 2), r(VC_EV_PAGES_OUT, 0x1000, 30),
	    r(VC_EV_PAGES_OUT, 0x3000, 40), r(VC_EV_OUTSIDE_FREE, 0x1000, 0),
	    r(VC_EV_PAGES_IN, 0x3000, 40), r(VC_EV_OUTSIDE_FREE, 0x3000, 0),
	    r(VC_EV_PAGES_IN, 0x2000, 0));
	expect(f, "out at1000 n1e\noutside at2000 n14 f2\n");
	vc_fold_free(f);
}

/* What a hook told is not told again by CUPTI, which comes late: once for each. */
static void known(void **state)
{
	const struct vc_record late = flagged(r(VC_EV_OUTSIDE_ALLOC, 0x200000, 9), VC_RECF_LATE);
	struct vc_fold *f = vc_fold_new(), *again = vc_fold_new();
	struct vc_record *rec;
	size_t n;

	(void)state;
	PUT(f, r(VC_EV_SEGMENT_ALLOC, 0x200000, 2 * MIB), r(VC_EV_SEGMENT_ALLOC, 0x200000, 9),
	    flagged(block(0x600000, 1, 512, 0), VC_RECF_DRIVER), late);
	rec = vc_fold_records(f, 1, &n);
	put_all(again, rec, n);
	free(rec);
	for (int i = 0; i < 2; i++) {
		struct vc_fold *which = i ? again : f;

		PUT(which, late, flagged(r(VC_EV_OUTSIDE_ALLOC, 0x600000, 9), VC_RECF_LATE),
		    r(VC_EV_SEGMENT_FREE, 0x200000, 0), r(VC_EV_SEGMENT_FREE, 0x200000, 0),
		    r(VC_EV_FREE, 0x600000, 0));
		assert_int_equal(which->outsides, 0);
		PUT(which, late);
		assert_int_equal(which->outsides, 1);
	}
	vc_fold_free(f);
	vc_fold_free(again);
}

/* ---- watch.c ---- */

static enum vc_turn look(const struct vc_watch *w, struct vc_watching *s, uint8_t kind,
			 uint64_t n, struct vc_fold_totals t)
{
	struct vc_record rec = { .kind = kind, .size = n, .time_ns = n };

	rec.flags = kind == VC_EV_MARK ? VC_MARK_STEP : 0;
	return vc_watch_look(w, s, &rec, &t);
}

/* Sealed when the limit is passed, and again only after it was kept once more. */
static void thresholds(void **state)
{
	static const struct {
		enum vc_when when;
		bool below, percent;
		double value;
		struct vc_fold_totals in, out;
	} c[] = {
		{ VC_WHEN_RESERVED, false, false, 100, { .reserved = 100, .allocated = 900 },
		  { .reserved = 101 } },
		{ VC_WHEN_ALLOCATED, false, false, 100, { .allocated = 100, .reserved = 900 },
		  { .allocated = 101 } },
		{ VC_WHEN_RESERVED, false, true, 25, { .reserved = 250, .total = 1000 },
		  { .reserved = 251, .total = 1000 } },
		{ VC_WHEN_RESERVED, false, true, 25, { .reserved = 251 }, /* of what? */
		  { .reserved = 251, .total = 1000 } },
		{ VC_WHEN_FREE, true, false, 100, { .reserved = 900, .total = 1000 },
		  { .reserved = 901, .total = 1000 } },
		{ VC_WHEN_FREE, true, false, 100, { .reserved = 1200 },
		  { .reserved = 1200, .total = 1000 } },
		{ VC_WHEN_FREE, true, true, 10, { .reserved = 900, .total = 1000 },
		  { .reserved = 901, .total = 1000 } },
		{ VC_WHEN_ALLOCATED, true, false, 100, { .allocated = 100 }, { .allocated = 99 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++) {
		struct vc_watch w = { .when = c[i].when, .below = c[i].below,
				      .percent = c[i].percent, .value = c[i].value };
		struct vc_watching s = { 0 };

		assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1, c[i].in), VC_TURN_NONE);
		assert_int_equal(look(&w, &s, VC_EV_FREE, 1, c[i].out), VC_TURN_NONE);
		assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1, c[i].out), VC_TURN_WHEN);
		assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1, c[i].out), VC_TURN_NONE);
		assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1, c[i].in), VC_TURN_NONE);
		assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1, c[i].out), VC_TURN_WHEN);
	}
}

static void refusals(void **state)
{
	static const enum vc_turn turns[] = { VC_TURN_NONE, VC_TURN_OOM, VC_TURN_STOP };
	const struct vc_fold_totals t = { 0 };

	(void)state;
	for (int on_oom = VC_OOM_CONTINUE; on_oom <= VC_OOM_STOP; on_oom++) {
		struct vc_watch w = { .on_oom = (enum vc_on_oom)on_oom };
		struct vc_watching s = { 0 };

		assert_int_equal(look(&w, &s, VC_EV_OOM, 1, t), turns[on_oom]);
		assert_int_equal(look(&w, &s, VC_REC_CONTROL, VC_CONTROL_DUMP, t), VC_TURN_DUMP);
		assert_int_equal(look(&w, &s, VC_REC_CONTROL, VC_CONTROL_START, t), VC_TURN_NONE);
		assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1, t), VC_TURN_NONE);
	}
}

/* Windows: by steps (the first is 1), by time, by the program's word. */
static void windows(void **state)
{
	const struct vc_fold_totals t = { 0 };
	struct vc_watch w = { .from = 3, .to = 4, .on_oom = VC_OOM_STOP };
	struct vc_watching s = { 0 };

	(void)state;
	vc_watch_begin(&w, &s, 0);
	assert_int_equal(look(&w, &s, VC_EV_MARK, 0, t), VC_TURN_NONE);
	assert_int_equal(look(&w, &s, VC_REC_CONTROL, VC_CONTROL_START, t), VC_TURN_NONE);
	assert_int_equal(look(&w, &s, VC_EV_MARK, 0, t), VC_TURN_OPEN); /* step 3 is going on */
	assert_int_equal(look(&w, &s, VC_EV_MARK, 0, t), VC_TURN_NONE);
	assert_int_equal(look(&w, &s, VC_EV_KERNEL, 0, t), VC_TURN_NONE);
	assert_int_equal(look(&w, &s, VC_EV_MARK, 0, t), VC_TURN_CLOSE);
	assert_int_equal(look(&w, &s, VC_EV_MARK, 0, t), VC_TURN_NONE);
	assert_int_equal(look(&w, &s, VC_EV_OOM, 0, t), VC_TURN_STOP);

	w = (struct vc_watch){ .after_ns = 100, .duration_ns = 50 };
	vc_watch_begin(&w, &s, 1000);
	assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1099, t), VC_TURN_NONE);
	assert_int_equal(look(&w, &s, VC_EV_SEGMENT_ALLOC, 1200, t), VC_TURN_NONE);
	assert_int_equal(look(&w, &s, VC_EV_FREE, 1100, t), VC_TURN_OPEN);
	assert_int_equal(look(&w, &s, VC_EV_OOM, 1149, t), VC_TURN_NONE);
	assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1150, t), VC_TURN_CLOSE);
	assert_int_equal(s.window, VC_WINDOW_OVER);

	w = (struct vc_watch){ .paused = true };
	vc_watch_begin(&w, &s, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(look(&w, &s, VC_EV_ALLOC, 1, t), VC_TURN_NONE);
		assert_int_equal(look(&w, &s, VC_REC_CONTROL, VC_CONTROL_STOP, t), VC_TURN_NONE);
		assert_int_equal(look(&w, &s, VC_REC_CONTROL, VC_CONTROL_START, t), VC_TURN_OPEN);
		assert_int_equal(look(&w, &s, VC_REC_CONTROL, VC_CONTROL_START, t), VC_TURN_NONE);
		assert_int_equal(look(&w, &s, VC_REC_CONTROL, VC_CONTROL_STOP, t), VC_TURN_CLOSE);
	}
	w = (struct vc_watch){ .when = VC_WHEN_FREE };
	assert_false(vc_watch_windows(&w));
	s = (struct vc_watching){ 0 };
	vc_watch_begin(&w, &s, 5);
	assert_int_equal(s.window, VC_WINDOW_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks), cmocka_unit_test(owners), cmocka_unit_test(expandable),
		cmocka_unit_test(pools), cmocka_unit_test(settings), cmocka_unit_test(outside),
		cmocka_unit_test(known), cmocka_unit_test(thresholds), cmocka_unit_test(refusals),
		cmocka_unit_test(windows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
