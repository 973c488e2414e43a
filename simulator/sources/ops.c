/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - operation scripts: the recorded vectors of the allocator, and anything written by hand.
 *
 * A header (total, other, conf, events, ...), then one operation per line: m ID SIZE STREAM, f
 * ID, ... (tests/golden/README.md). Lines from '#' on are skipped. */

#include "common/io.h"
#include "common/map.h"
#include "simulator/replay/source.h"

#define MAX_LINE 65536

struct state {
	struct vc_map id;     /* the script's number of a live block -> ours */
	uint64_t line, others;
	bool started, given;  /* given: `others` has been announced */
};

static int probe(struct vc_input *in)
{
	static const char magic[] = "vramcast-golden 1";
	size_t n;
	const uint8_t *p = vc_input_peek(in, sizeof(magic), &n, NULL);

	return p && n >= sizeof(magic) - 1 && !memcmp(p, magic, sizeof(magic) - 1) ? 100 : 0;
}

/* The next line without its end into buf; 1, 0 at the end, < 0. */
static int next_line(struct vc_source *s, char *buf, struct vc_error *err)
{
	struct state *st = s->state;
	size_t got, len = 0;
	const uint8_t *p = vc_input_peek(s->input, MAX_LINE, &got, err);

	if (!p && err && err->status)
		return (int)err->status;
	if (!got)
		return 0;
	got = got < MAX_LINE ? got : MAX_LINE; /* a peek may give more than was asked for */
	while (len < got && p[len] != '\n')
		len++;
	st->line++;
	if (len == MAX_LINE)
		return vc_fail(err, VC_EFORMAT, "line %llu: longer than %d characters",
			       (unsigned long long)st->line, MAX_LINE);
	memcpy(buf, p, len);
	buf[len] = '\0';
	vc_input_skip(s->input, len < got ? len + 1 : len);
	return 1;
}

/* ---- header ---- */
static void header_line(struct vc_source *s, const char *line)
{
	struct state *st = s->state;
	const char *rest = strchr(line, ' ');

	rest = rest ? rest + 1 : "";
	if (!strncmp(line, "total ", 6))
		vc_meta_device(s->meta, 0)->total = strtoull(rest, NULL, 10);
	else if (!strncmp(line, "other ", 6))
		st->others = strtoull(rest, NULL, 10);
	else if (!strncmp(line, "conf ", 5))
		vc_meta_set(&s->meta->conf, rest);
	else if (!strncmp(line, "torch ", 6))
		vc_meta_set(&s->meta->torch, rest);
	else if (!strncmp(line, "about ", 6))
		vc_meta_note(s->meta, "%s", rest);
	else if (!strcmp(line, "events manual"))
		s->meta->how[VC_CAP_COMPLETION] = VC_HOW_RECORDED;
}

/* ---- operations ---- */
struct words { const char *at[5]; size_t n; const char *rest; }; /* rest: behind the letter */

static struct words cut(char *line)
{
	struct words w = { .rest = line[1] ? line + 2 : line + 1 };

	for (char *p = line; w.n < 5 && *p; ) {
		w.at[w.n++] = p;
		p += strcspn(p, " ");
		if (*p)
			*p++ = '\0';
	}
	return w;
}

static uint64_t number(const struct words *w, size_t i, int base)
{
	return i < w->n ? strtoull(w->at[i], NULL, base) : 0;
}

static uint32_t stream_of(struct vc_source *s, const struct words *w, size_t i)
{
	if (i < w->n && !strcmp(w->at[i], "*"))
		return VC_STREAM_ALL;
	return vc_meta_stream(s->meta, number(w, i, 10));
}

static int alloc_op(struct vc_source *s, const struct words *w, struct vc_event *ev,
		    struct vc_error *err)
{
	struct state *st = s->state;

	ev->kind = VC_EV_ALLOC;
	ev->size = number(w, 2, 10);
	ev->id = ++s->meta->max_id;
	if (!strcmp(w->at[0], "a")) {
		ev->flags = VC_EVF_EXACT;
		ev->addr = number(w, 3, 16);
	} else {
		ev->stream = stream_of(s, w, 3);
	}
	if (w->n < 4)
		return vc_fail(err, VC_EFORMAT, "line %llu: m takes ID SIZE STREAM",
			       (unsigned long long)st->line);
	return vc_map_put(&st->id, number(w, 1, 10), ev->id) ? 1 : vc_nomem(err, "block numbers");
}

/* f and r name a block; one that is not there does nothing in the real run either. */
static int block_op(struct vc_source *s, const struct words *w, struct vc_event *ev)
{
	struct state *st = s->state;
	uint64_t *id = vc_map_get(&st->id, number(w, 1, 10));

	if (!id)
		return 0;
	ev->id = *id;
	ev->kind = VC_EV_FREE;
	if (!strcmp(w->at[0], "r")) {
		ev->kind = VC_EV_USE;
		ev->stream = stream_of(s, w, 2);
		s->meta->how[VC_CAP_USES] = VC_HOW_RECORDED;
	} else {
		vc_map_take(&st->id, number(w, 1, 10));
	}
	return 1;
}

static int pool_op(struct vc_source *s, const struct words *w, struct vc_event *ev)
{
	static const struct { char op; uint8_t kind; } kind[] = { { 'k', VC_EV_POOL_CREATE },
		{ 'b', VC_EV_POOL_BEGIN }, { 'x', VC_EV_POOL_END }, { 'z', VC_EV_POOL_RELEASE } };

	for (size_t i = 0; i < sizeof(kind) / sizeof(*kind); i++)
		if (w->at[0][0] == kind[i].op)
			ev->kind = kind[i].kind;
	ev->id = number(w, 1, 10);
	if (ev->kind == VC_EV_POOL_BEGIN)
		ev->stream = stream_of(s, w, 2);
	if (ev->kind == VC_EV_POOL_CREATE && w->n > 2)
		ev->flags = !strcmp(w->at[2], "oom") ? VC_EVF_USE_ON_OOM : VC_EVF_NO_SPLIT;
	s->meta->how[VC_CAP_POOLS] = VC_HOW_RECORDED;
	return 1;
}

static int other_op(struct vc_source *s, const struct words *w, struct vc_event *ev)
{
	double f;

	switch (w->at[0][0]) {
	case 'c':
		ev->kind = VC_EV_SYNC;
		ev->stream = stream_of(s, w, 1);
		return 1;
	case 'e':
		ev->kind = VC_EV_TRIM;
		ev->id = number(w, 1, 10);
		return 1;
	case 'o':
		ev->kind = VC_EV_OTHERS;
		ev->size = number(w, 1, 10);
		return 1;
	case 'p':
		ev->kind = VC_EV_FRACTION;
		f = w->n > 1 ? strtod(w->at[1], NULL) : 0;
		memcpy(&ev->size, &f, sizeof(f));
		return 1;
	case 'g':
		ev->kind = number(w, 2, 10) ? VC_EV_CAPTURE_BEGIN : VC_EV_CAPTURE_END;
		ev->stream = stream_of(s, w, 1);
		return 1;
	case 't':
		ev->kind = VC_EV_STREAM_CLASS;
		ev->stream = stream_of(s, w, 1);
		ev->label = w->n > 2 ? vc_meta_string(s->meta, w->at[2], strlen(w->at[2])) : 0;
		return 1;
	default: return -1;
	}
}

/* 1: an event, 0: nothing to do, < 0. */
static int operation(struct vc_source *s, char *line, struct vc_event *ev, struct vc_error *err)
{
	struct state *st = s->state;
	struct words w;
	int r;

	*ev = (struct vc_event){ 0 };
	if (line[0] == 's') { /* the settings may hold blanks */
		ev->kind = VC_EV_CONFIGURE;
		ev->label = line[1] ? vc_meta_string(s->meta, line + 2, strlen(line + 2)) : 0;
		return 1;
	}
	w = cut(line);
	if (strchr("ma", line[0]))
		return alloc_op(s, &w, ev, err);
	if (strchr("fr", line[0]))
		return block_op(s, &w, ev);
	if (strchr("kbxz", line[0]))
		return pool_op(s, &w, ev);
	r = other_op(s, &w, ev);
	return r >= 0 ? r : vc_fail(err, VC_EFORMAT, "line %llu: no operation is called '%s'",
				    (unsigned long long)st->line, w.at[0]);
}

static int open_ops(struct vc_source *s, struct vc_error *err)
{
	s->meta->complete = true;
	s->meta->how[VC_CAP_REQUESTS] = VC_HOW_RECORDED;
	s->meta->how[VC_CAP_STREAMS] = VC_HOW_RECORDED;
	s->meta->how[VC_CAP_TRIMS] = VC_HOW_RECORDED;
	VC_HAVE(vc_meta_device(s->meta, 0), "the script's device", err);
	s->meta->how[VC_CAP_SETTINGS] = VC_HOW_RECORDED;
	return VC_OK;
}

static long next(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	struct state *st = s->state;
	char line[MAX_LINE];
	size_t n = 0;
	int r = 1;

	while (n < cap && (r = next_line(s, line, err)) > 0) {
		bool op = line[0] && (line[1] == ' ' || !line[1]);

		if (!line[0] || line[0] == '#')
			continue;
		if (!op) {
			header_line(s, line);
			continue;
		}
		if (!st->given && st->others && n + 1 < cap)
			ev[n++] = (struct vc_event){ .kind = VC_EV_OTHERS, .size = st->others };
		st->given = true;
		VC_TRY(r = operation(s, line, &ev[n], err));
		n += (size_t)r;
	}
	VC_TRY(r);
	return vc_meta_ok(s->meta) ? (long)n : vc_nomem(err, "the script's words");
}

static void close_ops(struct vc_source *s)
{
	struct state *st = s->state;

	vc_map_fini(&st->id);
}

const struct vc_source_type vc_source_ops = {
	.name = "ops", .summary = "operation scripts, one allocation or free per line",
	.state_size = sizeof(struct state), .probe = probe, .open = open_ops, .next = next,
	.close = close_ops,
};
