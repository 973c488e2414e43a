/* SPDX-License-Identifier: Apache-2.0 */
/* bfc_text.c - what TensorFlow's allocator logs, and JAX raises, when memory runs out.
 *
 * The words are those of TensorFlow 2.21: the warning, the sums and the picture, without the lists
 * of bins and chunks between them. */
#include <stdarg.h>

#include "simulator/models/bfc.h"

#define COLUMNS 100 /* RenderOccupancy */

struct size_text { char s[32]; };

/* HumanReadableNumBytes of tsl/platform/numbers.cc divides whole numbers, so it cuts off. */
static struct size_text fmt(uint64_t n)
{
	const char *unit = "KMGTPE";
	struct size_text o;

	if (n < 1024) {
		snprintf(o.s, sizeof(o.s), "%" PRIu64 "B", n);
		return o;
	}
	for (; n >= 1024 * 1024; unit++)
		n /= 1024;
	snprintf(o.s, sizeof(o.s), *unit == 'K' ? "%.1f%ciB" : "%.2f%ciB", (double)n / 1024, *unit);
	return o;
}

static void say(struct vc_model *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct vc_model *m, const char *format, ...)
{
	size_t at = strlen(m->note);
	va_list ap;

	va_start(ap, format);
	vsnprintf(m->note + at, sizeof(m->note) - at, format, ap);
	va_end(ap);
}

/* DumpMemoryLog and AllocatorStats::DebugString; its last three rows are never filled. */
static void say_sums(struct vc_model *m)
{
	const struct bfc *b = m->state;

	say(m, "Sum Total of in-use chunks: %s\n", fmt(m->now.allocated).s);
	say(m, "Total size in pool: %s memory_limit_: %s available size: %s "
	       "curr_region_allocation_bytes_: %s\n", fmt(m->now.reserved).s, fmt(b->limit).s,
	    fmt(b->limit - m->now.reserved).s, fmt(b->curr).s);
	say(m, "Stats: \nLimit:            %20s\nInUse:            %20s\nMaxInUse:         %20s\n",
	    fmt(b->limit).s, fmt(m->now.allocated).s, fmt(b->peak).s);
	say(m, "NumAllocs:        %20" PRIu64 "\nMaxAllocSize:     %20s\n", b->allocs,
	    fmt(b->largest).s);
	say(m, "Reserved:         %20s\nPeakReserved:     %20s\nLargestFreeBlock: %20s\n\n", "0B",
	    "0B", "0B");
}

/* Where bytes [at, at + n) of the pool lie in the picture. */
static void paint(char *picture, uint64_t pool, uint64_t at, uint64_t n, char c)
{
	uint64_t last = (at + n - 1) * COLUMNS / pool;

	for (uint64_t i = at * COLUMNS / pool; i <= last; i++)
		picture[i] = c;
}

/* RenderOccupancy: '*' what was asked for, 'x' what a block has beyond that, '_' what is free. */
static void say_picture(struct vc_model *m)
{
	const struct bfc *b = m->state;
	char picture[COLUMNS + 1] = "";
	const struct vc_chunk *c;
	uint64_t at = 0;

	if (!m->now.reserved) {
		say(m, "<allocator contains no memory>\n");
		return;
	}
	memset(picture, '_', COLUMNS);
	for (uint32_t r = 0; r < b->k.regions; r++)
		for (uint32_t i = b->k.region[r].first; i; at += c->size, i = c->next) {
			c = &b->k.c[i];
			if (c->live && c->size > c->requested)
				paint(picture, m->now.reserved, at + c->requested,
				      c->size - c->requested, 'x');
			if (c->live)
				paint(picture, m->now.reserved, at, c->requested, '*');
		}
	say(m, "%s\n", picture);
}

void bfc_text_oom(struct vc_model *m, uint64_t asked, uint64_t rounded)
{
	const struct bfc *b = m->state;
	unsigned gpu = vc_device_config(m->device)->index;

	m->note[0] = '\0';
	/* MemoryAllocationError of xla/stream_executor/integrations/tf_allocator_adapter.cc. */
	if (b->conf->framework == BFC_JAX)
		say(m, "RESOURCE_EXHAUSTED: Out of memory while trying to allocate %s.\n",
		    fmt(asked).s);
	say(m, "Allocator (GPU_%u_bfc) ran out of memory trying to allocate %s (rounded to %" PRIu64
	       ")requested by op \n"
	       "If the cause is memory fragmentation maybe the environment variable "
	       "'TF_GPU_ALLOCATOR=cuda_malloc_async' will improve the situation. \n"
	       "Current allocation summary follows.\nCurrent allocation summary follows.\n",
	    gpu, fmt(asked).s, rounded);
	say_sums(m);
	say_picture(m);
	if (!b->conf->retry)
		say(m, "Allocator (GPU_%u_bfc) ran out of memory trying to allocate %s with "
		       "freed_by_count=0.\n", gpu, fmt(asked).s);
	m->note[strlen(m->note) - 1] = '\0'; /* the last line ends without a newline here */
}
