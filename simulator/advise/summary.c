/* SPDX-License-Identifier: Apache-2.0 */
/* summary.c - see summary.h. Layout and units of the table: torch/cuda/memory.py, memory_summary.
 */
#include "simulator/advise/summary.h"

#include "common/vec.h"

#define KEY 80
#define RULE "==========================================================================="
#define LINE "---------------------------------------------------------------------------"

/* ---- memory_stats() ---- */
struct field { char key[KEY]; int64_t value; };

VC_COMPARE(by_key, struct field, strcmp(x->key, y->key))

static size_t flatten(const struct vc_counter *c, struct field *to)
{
	const char *const part[4] = { "current", "peak", "allocated", "freed" };
	const int64_t value[4] = { c->current, c->peak, c->allocated, c->freed };
	size_t n = c->klass ? 4 : 1;

	for (size_t k = 0; k < n; k++) {
		to[k].value = value[k];
		if (c->klass)
			snprintf(to[k].key, KEY, "%s%s%s.%s", c->name, *c->klass ? "." : "",
				 c->klass, part[k]);
		else
			snprintf(to[k].key, KEY, "%s", c->name);
	}
	return n;
}

int vc_summary_stats(struct vc_emit *e, const struct vc_counters *c, struct vc_error *err)
{
	struct field *f = calloc(4 * c->n + 1, sizeof(*f));
	size_t n = 0;

	VC_HAVE(f, "the statistics", err);
	for (size_t i = 0; i < c->n; i++)
		n += flatten(&c->at[i], &f[n]);
	vc_sort(f, n, sizeof(*f), by_key);
	for (size_t i = 0; i < n; i++) {
		vc_emit_int(e, f[i].key, NULL, f[i].value);
		vc_emit_line(e, "  %-44s %" PRId64, f[i].key, f[i].value);
	}
	free(f);
	return VC_OK;
}

/* ---- memory_summary() ---- */
static const struct vc_counter *find(const struct vc_counters *c, const char *name,
				     const char *klass)
{
	for (size_t i = 0; i < c->n; i++)
		if (!strcmp(c->at[i].name, name) &&
		    (klass ? c->at[i].klass && !strcmp(c->at[i].klass, klass) : !c->at[i].klass))
			return &c->at[i];
	return NULL;
}

/* The unit follows the value of the row's first line, so that its parts share it. */
static const char *size_cell(int64_t v, int64_t scale, char *buf, size_t n)
{
	static const char *const unit[] = { "B  ", "KiB", "MiB", "GiB", "TiB", "PiB" };
	int k = 0;

	for (; k < 5 && scale >= 768 * 1024; k++) {
		v /= 1024;
		scale /= 1024;
	}
	snprintf(buf, n, "%6" PRId64 " %s", v, unit[k]);
	return buf;
}

static const char *count_cell(int64_t v, int64_t scale, char *buf, size_t n)
{
	static const char unit[] = { ' ', 'K', 'M' };
	int k = 0;

	for (; k < 2 && scale >= 750 * 1000; k++) {
		v /= 1000;
		scale /= 1000;
	}
	snprintf(buf, n, "%7" PRId64 " %c ", v, unit[k]);
	return buf;
}

struct metric { const char *name, *title; bool bytes; };

static void row(struct vc_emit *e, const char *title, const struct vc_counter *x,
		const struct vc_counter *scale, bool bytes)
{
	const char *(*cell)(int64_t, int64_t, char *, size_t) = bytes ? size_cell : count_cell;
	char b[4][48];

	vc_emit_line(e, "| %-21s | %s | %s | %s | %s |", title, cell(x->current, scale->current,
		     b[0], 48), cell(x->peak, scale->peak, b[1], 48),
		     cell(x->allocated, scale->allocated, b[2], 48),
		     cell(x->freed, scale->freed, b[3], 48));
}

static void metric_rows(struct vc_emit *e, const struct vc_counters *c, const struct metric *m)
{
	static const char *const klass[3] = { "all", "large_pool", "small_pool" };
	static const char *const title[3] = { NULL, "      from large pool",
					     "      from small pool" };
	const struct vc_counter *all = find(c, m->name, "all");

	for (int k = 0; all && k < 3; k++) {
		const struct vc_counter *x = find(c, m->name, klass[k]);

		if (x)
			row(e, k ? title[k] : m->title, x, all, m->bytes);
	}
}

static int64_t plain(const struct vc_counters *c, const char *name)
{
	const struct vc_counter *x = find(c, name, NULL);

	return x ? x->current : 0;
}

void vc_summary_table(struct vc_emit *e, const struct vc_counters *c, unsigned device)
{
	static const struct metric metric[] = {
		{ "allocated_bytes", "Allocated memory", true },
		{ "active_bytes", "Active memory", true },
		{ "requested_bytes", "Requested memory", true },
		{ "reserved_bytes", "GPU reserved memory", true },
		{ "inactive_split_bytes", "Non-releasable memory", true },
		{ "allocation", "Allocations", false },
		{ "active", "Active allocs", false },
		{ "segment", "GPU reserved segments", false },
		{ "inactive_split", "Non-releasable allocs", false } };
	static const struct metric single[] = {
		{ "oversize_allocations", "Oversize allocations", false },
		{ "oversize_segments", "Oversize GPU segments", false } };

	vc_emit_line(
		e,
		"|" RULE
		"|\n|                  PyTorch CUDA memory summary, device ID %-17u |\n|" LINE
		"|",
		device);
	vc_emit_line(e, "|            CUDA OOMs: %-12" PRId64
		     "|        cudaMalloc retries: %-8" PRId64 "  |\n|" RULE "|",
		     plain(c, "num_ooms"), plain(c, "num_alloc_retries"));
	vc_emit_line(
		e,
		"|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |");
	for (size_t i = 0; i < sizeof(metric) / sizeof(*metric); i++) {
		vc_emit_line(e, "|" LINE "|");
		metric_rows(e, c, &metric[i]);
	}
	for (size_t i = 0; i < 2; i++) {
		const struct vc_counter *x = find(c, single[i].name, "");

		vc_emit_line(e, "|" LINE "|");
		if (x)
			row(e, single[i].title, x, x, false);
	}
	vc_emit_line(e, "|" RULE "|");
}
