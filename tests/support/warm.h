/* SPDX-License-Identifier: Apache-2.0 */
/* warm.h - traces made by hand that begin with a heap, and the recordings that do. */
#ifndef VC_WARM_H
#define VC_WARM_H

#include "tests/support/test.h"

#include <dirent.h>

#include "simulator/replay/source.h"

#define MIB (1ull << 20)
#define AT  0x7f0000000000ull

static inline struct vc_trace empty(void)
{
	struct vc_trace t = { .meta = vc_meta_new(NULL) };

	assert_non_null(t.meta);
	vc_meta_stream(t.meta, 0);
	vc_meta_stream(t.meta, 77);
	return t;
}

static inline void add(struct vc_trace *t, struct vc_event e)
{
	assert_int_equal(vc_trace_append(t, &e, 1, NULL), VC_OK);
}

static inline void add_segment(struct vc_trace *t, uint64_t addr, uint64_t size, uint32_t stream)
{
	add(t, (struct vc_event){ .kind = VC_EV_HEAP_SEGMENT, .addr = addr, .size = size,
				  .stream = stream });
}

static inline void add_live(struct vc_trace *t, uint64_t addr, uint64_t id, uint64_t size)
{
	add(t, (struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .addr = addr, .size = size, .id = id,
				  .flags = VC_EVF_LIVE });
}

/* A block that fills a segment of its own. */
static inline void add_whole(struct vc_trace *t, uint64_t id, uint64_t mib)
{
	add_segment(t, AT + id * 4096 * MIB, mib * MIB, 0);
	add_live(t, AT + id * 4096 * MIB, id, mib * MIB);
}

static inline void take(struct vc_trace *t, uint64_t id, uint64_t mib)
{
	add(t, (struct vc_event){ .kind = VC_EV_ALLOC, .id = id, .size = mib * MIB });
}

static inline void give(struct vc_trace *t, uint64_t id)
{
	add(t, (struct vc_event){ .kind = VC_EV_FREE, .id = id });
}

/* A step as an optimizer makes it: gradient of 30 (2), an activation of 80, a workspace at the end.
 * Block 3 lies in a segment of 80 that something else had needed. */
static inline struct vc_trace a_step(void)
{
	struct vc_trace t = empty();

	add_whole(&t, 1, 30);
	add_segment(&t, AT, 80 * MIB, 0);
	add_live(&t, AT, 3, 30 * MIB);
	add(&t, (struct vc_event){ .kind = VC_EV_HEAP_BLOCK, .addr = AT + 30 * MIB });
	take(&t, 4, 80);
	take(&t, 5, 30);
	give(&t, 4);
	take(&t, 6, 10);
	give(&t, 6);
	give(&t, 5);
	return t;
}

static inline struct vc_trace read_trace(const char *path)
{
	struct vc_error err = { 0 };
	struct vc_trace t = { .meta = NULL };
	struct vc_source *s = vc_source_open(path, &err);

	assert_non_null(s);
	assert_int_equal(vc_trace_read(&t, s, &err), VC_OK);
	vc_source_free(s);
	return t;
}

/* Calls `f` on each recording of tests/whatif; says how many there are. */
static inline int each_recording(void (*f)(struct vc_trace *t, void *arg), void *arg)
{
	DIR *d = opendir("tests/whatif");
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		char path[512];
		struct vc_trace t;

		if (!strstr(e->d_name, ".vct"))
			continue;
		snprintf(path, sizeof(path), "tests/whatif/%s", e->d_name);
		t = read_trace(path);
		f(&t, arg);
		vc_trace_fini(&t);
		n++;
	}
	closedir(d);
	return n;
}

#endif
