/* SPDX-License-Identifier: Apache-2.0 */
/* rmm_log.c - the CSV log of RMM's logging_resource_adaptor (RAPIDS): one request per line.
 *
 * Thread,Time,Action,Pointer,Size,Stream, with the actions "allocate", "allocate failure" and
 * "free" (rmm/mr/logging_resource_adaptor.hpp, 25.12; Time is %H:%M:%S.%f of its logger, Stream a
 * pointer in hexadecimal). Sizes are those that were asked for. Lines may have been written by
 * several threads; they stand in the order in which they happened. */

#include "common/io.h"
#include "common/map.h"
#include "simulator/replay/source.h"

static const char header[] = "Thread,Time,Action,Pointer,Size,Stream";
enum { MAX_LINE = 512, FIELDS = 6, DAY_S = 24 * 3600 };
enum field { THREAD, TIME, ACTION, POINTER, SIZE, STREAM };

struct state {
	struct vc_map id;  /* address of a live block -> ours */
	uint64_t line, first_ns, last_ns, midnights;
	bool started;
};

static int probe(struct vc_input *in)
{
	size_t n;
	const uint8_t *p = vc_input_peek(in, sizeof(header), &n, NULL);

	return p && n >= sizeof(header) - 1 && !memcmp(p, header, sizeof(header) - 1) ? 100 : 0;
}

/* The fields of the next line, in `buf`; 1, 0 at the end, < 0. */
static int next_line(struct vc_source *s, char *buf, char *field[FIELDS], struct vc_error *err)
{
	struct state *st = s->state;
	size_t got, n = 0, len;
	const uint8_t *p = vc_input_peek(s->input, MAX_LINE, &got, err);

	if (!p && err && err->status)
		return (int)err->status;
	if (!got)
		return 0;
	st->line++;
	got = got < MAX_LINE ? got : MAX_LINE;
	for (len = 0; len < got && p[len] != '\n';)
		len++;
	if (len == MAX_LINE)
		return vc_fail(err, VC_EFORMAT, "line %llu: longer than %d characters",
			       (unsigned long long)st->line, MAX_LINE);
	memcpy(buf, p, len);
	vc_input_skip(s->input, len < got ? len + 1 : len);
	len -= len && buf[len - 1] == '\r';
	buf[len] = '\0';
	for (char *at = buf; n < FIELDS; n++) {
		field[n] = at;
		at = strchr(at, ',');
		if (!at)
			break;
		*at++ = '\0';
	}
	for (n = n < FIELDS ? n + 1 : n; n < FIELDS; n++)
		field[n] = NULL;
	return 1;
}

/* "13:47:02.841961", or seconds; a time that is earlier than the one before is of the next day. */
static uint64_t time_of(struct state *st, const char *text)
{
	unsigned long long part[3] = { 0 }, ns = 0, unit = 100000000;
	char *end = (char *)(uintptr_t)text;
	size_t n = 0;

	for (; n < 3; n++) {
		part[n] = strtoull(end, &end, 10);
		if (*end != ':')
			break;
		end++;
	}
	for (end += *end == '.'; *end >= '0' && *end <= '9'; end++, unit /= 10)
		ns += unit * (unsigned)(*end - '0');
	ns += (n == 2 ? (part[0] * 60 + part[1]) * 60 + part[2] : part[0]) * 1000000000;
	ns += st->midnights * DAY_S * 1000000000;
	if (!st->started)
		st->first_ns = ns;
	if (ns + (uint64_t)DAY_S * 500000000 < st->last_ns && n == 2) {
		st->midnights++;
		ns += (uint64_t)DAY_S * 1000000000;
	}
	st->last_ns = ns > st->last_ns ? ns : st->last_ns;
	st->started = true;
	return st->last_ns - st->first_ns;
}

/* A whole number with nothing behind it. */
static int number(const char *text, int base, uint64_t *v)
{
	char *end;

	*v = strtoull(text, &end, base);
	return end != text && !*end ? 0 : -1;
}

static int free_block(struct vc_source *s, uint64_t addr, struct vc_event *ev)
{
	struct state *st = s->state;

	ev->kind = VC_EV_FREE;
	ev->id = vc_map_take(&st->id, addr);
	if (!ev->id) /* allocated before the log began */
		s->meta->unmatched_frees++;
	return ev->id ? 1 : 0;
}

/* 1: an event, 0: nothing to do, < 0. */
static int event_of(struct vc_source *s, char *field[FIELDS], struct vc_event *ev,
		    struct vc_error *err)
{
	struct state *st = s->state;
	bool none = field[POINTER] && !strcmp(field[POINTER], "(nil)");
	uint64_t addr = 0, stream;

	*ev = (struct vc_event){ 0 };
	if (!field[STREAM] || (!none && number(field[POINTER], 16, &addr)) ||
	    number(field[SIZE], 10, &ev->size) || number(field[STREAM], 16, &stream))
		return vc_fail(err, VC_EFORMAT, "line %llu: wants %s",
			       (unsigned long long)st->line, header);
	ev->time_ns = time_of(st, field[TIME]);
	ev->stream = vc_meta_stream(s->meta, stream);
	if (!strcmp(field[ACTION], "free"))
		return free_block(s, addr, ev);
	if (!strcmp(field[ACTION], "allocate failure")) {
		ev->kind = VC_EV_OOM;
		return 1;
	}
	if (strcmp(field[ACTION], "allocate"))
		return vc_fail(err, VC_EFORMAT, "line %llu: no action is called '%s'",
			       (unsigned long long)st->line, field[ACTION]);
	if (!addr) /* of no bytes */
		return 0;
	s->meta->double_allocs += vc_map_get(&st->id, addr) != NULL;
	ev->kind = VC_EV_ALLOC;
	ev->id = ++s->meta->max_id;
	return vc_map_put(&st->id, addr, ev->id) ? 1 : vc_nomem(err, "addresses of blocks");
}

static int open_log(struct vc_source *s, struct vc_error *err)
{
	char buf[MAX_LINE + 1], *field[FIELDS];
	int r = next_line(s, buf, field, err); /* the header */

	s->meta->how[VC_CAP_REQUESTS] = VC_HOW_RECORDED;
	s->meta->how[VC_CAP_STREAMS] = VC_HOW_RECORDED;
	s->meta->how[VC_CAP_TIMES] = VC_HOW_RECORDED;
	vc_meta_set(&s->meta->producer, "RMM");
	vc_meta_note(s->meta, "a log of RMM's requests: what its pools make of them is "
		     "-m rmm_pool or -m rmm_arena");
	VC_HAVE(vc_meta_device(s->meta, 0), "the log's device", err);
	return r < 0 ? r : VC_OK;
}

static long next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	char buf[MAX_LINE + 1], *field[FIELDS];
	size_t n = 0;
	int r = 1;

	while (n < cap && (r = next_line(s, buf, field, err)) > 0) {
		if (!*buf)
			continue;
		VC_TRY(r = event_of(s, field, &ev[n], err));
		n += (size_t)r;
	}
	VC_TRY(r);
	if (!r && !s->meta->complete && s->meta->unmatched_frees)
		vc_meta_note(s->meta, "%llu frees are of blocks from before the log began",
			     (unsigned long long)s->meta->unmatched_frees);
	s->meta->complete |= !r;
	return vc_meta_ok(s->meta) ? (long)n : vc_nomem(err, "the log's streams");
}

static void close_log(struct vc_source *s)
{
	struct state *st = s->state;

	vc_map_fini(&st->id);
}

const struct vc_source_type vc_source_rmm_log = {
	.name = "rmm_log",
	.summary = "CSV logs of RMM's logging_resource_adaptor",
	.state_size = sizeof(struct state), .probe = probe, .open = open_log, .next = next,
	.close = close_log,
};
