/* SPDX-License-Identifier: Apache-2.0 */
/* memory_plan.c - see memory_plan.h. */
#include "common/memory_plan.h"

#include <stdarg.h>

#include "common/vec.h"

enum { MOST_STREAMS = 4096, MOST_REQUESTS = 1 << 26 };

static const char magic[] = "vramcast-plan 2";

/* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t sum(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h;
}
#define SUM_START 0xcbf29ce484222325u

/* ---- writing ---- */

struct writer { FILE *to; uint64_t sum; };

static void line(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void line(struct writer *w, const char *fmt, ...)
{
	char text[160];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	w->sum = sum(w->sum, text);
	fputs(text, w->to);
}

int vc_memory_plan_write(const struct vc_memory_plan *p, FILE *to)
{
	struct writer w = { to, SUM_START };

	line(&w, "%s\narena %" PRIu64 "\nrepeat %zu %zu\nstreams %zu\n", magic, p->arena, p->first,
	     p->last, p->areas);
	for (size_t i = 0; i < p->areas; i++)
		line(&w, "%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", p->area[i].at,
		     p->area[i].size, p->area[i].bound, p->area[i].stays);
	line(&w, "requests %zu\n", p->n);
	for (size_t i = 0; i < p->n; i++) {
		const struct vc_plan_request *r = &p->request[i];

		if (r->offset == VC_PLAN_NOWHERE)
			line(&w, "%" PRIu64 " %" PRIu32 " -\n", r->size, r->stream);
		else
			line(&w, "%" PRIu64 " %" PRIu32 " %" PRIu64 "\n", r->size, r->stream,
			     r->offset);
	}
	fprintf(to, "end %016" PRIx64 "\n", w.sum);
	return ferror(to) ? VC_EIO : VC_OK;
}

/* ---- reading ---- */

struct reader {
	FILE *from;
	const char *name;
	size_t line;
	uint64_t sum;
	char text[160];
	struct vc_error *err;
};

static int wrong(struct reader *r, const char *what)
{
	return vc_fail(r->err, VC_EFORMAT, "%s: line %zu: %s; make the plan again with 'vramcast "
		       "plan'", r->name, r->line, what);
}

static int next(struct reader *r, const char *what)
{
	size_t n;

	r->line++;
	if (!fgets(r->text, sizeof(r->text), r->from))
		return wrong(r, what);
	n = strlen(r->text);
	if (!n || r->text[n - 1] != '\n')
		return wrong(r, what);
	return VC_OK;
}

/* The numbers of a line behind `word`; "-" is VC_PLAN_NOWHERE. */
static int numbers(struct reader *r, const char *word, uint64_t *at, size_t n, const char *what)
{
	const char *p = r->text;
	size_t len = strlen(word);

	VC_TRY(next(r, what));
	r->sum = sum(r->sum, r->text);
	if (strncmp(p, word, len))
		return wrong(r, what);
	p += len;
	for (size_t i = 0; i < n; i++) {
		char *end;

		p += (i || len) && *p == ' ';
		at[i] = *p == '-' ? VC_PLAN_NOWHERE : strtoull(p, &end, 10);
		if (*p != '-' && (*p < '0' || *p > '9'))
			return wrong(r, what);
		p = *p == '-' ? p + 1 : end;
	}
	return *p == '\n' ? VC_OK : wrong(r, what);
}

static int read_areas(struct reader *r, struct vc_memory_plan *p)
{
	static const char what[] = "an area of the arena was expected, one behind the other";
	uint64_t at[4], end = 0;

	for (size_t i = 0; i < p->areas; i++) {
		VC_TRY(numbers(r, "", at, 4, what));
		if (at[0] != end || at[1] > p->arena - end || at[1] % VC_PLAN_UNIT ||
		    at[3] > at[1] || at[3] % VC_PLAN_UNIT)
			return wrong(r, what);
		p->area[i] = (struct vc_plan_area){ at[0], at[1], at[2], at[3] };
		end += at[1];
	}
	return end == p->arena ? VC_OK : wrong(r, "the areas are not the arena");
}

static bool lies_in(const struct vc_plan_request *q, const struct vc_plan_area *a)
{
	uint64_t cut = a->at + a->stays;

	return q->offset >= a->at && (q->offset >= cut || q->offset + q->size <= cut) &&
	       q->size <= a->size && q->offset - a->at <= a->size - q->size &&
	       q->offset % VC_PLAN_UNIT == 0;
}

static int read_requests(struct reader *r, struct vc_memory_plan *p)
{
	static const char what[] = "a request was expected: SIZE STREAM OFFSET";
	uint64_t at[3];

	for (size_t i = 0; i < p->n; i++) {
		struct vc_plan_request *q = &p->request[i];

		VC_TRY(numbers(r, "", at, 3, what));
		if (!at[0] || at[0] % VC_PLAN_UNIT || at[1] >= p->areas)
			return wrong(r, what);
		*q = (struct vc_plan_request){ at[0], at[2], (uint32_t)at[1] };
		if (q->offset != VC_PLAN_NOWHERE && !lies_in(q, &p->area[q->stream]))
			return wrong(r, "a place outside the area of its stream");
	}
	return VC_OK;
}

static int read_all(struct reader *r, struct vc_memory_plan *p)
{
	uint64_t v[2], said;

	VC_TRY(next(r, "no plan of vramcast (it begins with 'vramcast-plan 2')"));
	if (strncmp(r->text, magic, sizeof(magic) - 1) || r->text[sizeof(magic) - 1] != '\n')
		return wrong(r, "no plan of vramcast that this version knows (it begins with "
				"'vramcast-plan 2')");
	r->sum = sum(r->sum, r->text);
	VC_TRY(numbers(r, "arena", &p->arena, 1, "'arena BYTES' was expected"));
	VC_TRY(numbers(r, "repeat", v, 2, "'repeat FIRST LAST' was expected"));
	p->first = (size_t)v[0];
	p->last = (size_t)v[1];
	VC_TRY(numbers(r, "streams", v, 1, "'streams N' was expected"));
	if (v[0] > MOST_STREAMS)
		return wrong(r, "too many streams");
	p->areas = (size_t)v[0];
	p->area = calloc(p->areas + 1, sizeof(*p->area));
	VC_HAVE(p->area, "the plan", r->err);
	VC_TRY(read_areas(r, p));
	VC_TRY(numbers(r, "requests", v, 1, "'requests N' was expected"));
	if (v[0] > MOST_REQUESTS || p->first > p->last || p->last > v[0])
		return wrong(r, "more requests than there can be, or a repetition outside them");
	p->n = (size_t)v[0];
	p->request = calloc(p->n + 1, sizeof(*p->request));
	VC_HAVE(p->request, "the plan", r->err);
	VC_TRY(read_requests(r, p));
	VC_TRY(next(r, "the end is missing: the file was cut off"));
	if (strncmp(r->text, "end ", 4))
		return wrong(r, "'end SUM' was expected");
	said = strtoull(r->text + 4, NULL, 16);
	return said == r->sum ? VC_OK : wrong(r, "the sum of the lines is another: the file is "
						 "damaged");
}

int vc_memory_plan_read(struct vc_memory_plan *p, FILE *from, const char *name,
			struct vc_error *err)
{
	struct reader r = { .from = from, .name = name, .sum = SUM_START, .err = err };
	int rc;

	*p = (struct vc_memory_plan){ 0 };
	rc = read_all(&r, p);
	if (rc < 0)
		vc_memory_plan_fini(p);
	return rc;
}

void vc_memory_plan_fini(struct vc_memory_plan *p)
{
	VC_FREE(p->area, p->request);
	*p = (struct vc_memory_plan){ 0 };
}
