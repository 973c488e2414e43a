/* SPDX-License-Identifier: Apache-2.0 */
/* player.c - see player.h */
#include "player.h"

#include "simulator/models/torch.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->cap - t->n < 4096) {
		t->cap = t->cap ? 2 * t->cap : 65536;
		t->s = realloc(t->s, t->cap);
		if (!t->s)
			die("out of memory", "output");
	}
	va_start(ap, fmt);
	n = vsnprintf(t->s + t->n, t->cap - t->n, fmt, ap);
	va_end(ap);
	t->n += (size_t)n;
}

/* ---- output ---- */
static void on_trace(void *arg, const struct vc_trace_entry *t)
{
	static const char letter[] = { 'A', 'F', 'M', 'U', 'C', 'O' };
	const struct listener *l = arg;
	struct player *p = l->p;
	uint64_t addr = t->kind == VC_TR_OOM ? t->addr : t->addr + l->base;

	if (t->kind == VC_TR_ALLOC || t->kind == VC_TR_FREE) {
		put(&p->out, "! %s %" PRIx64 " %" PRIu64 "\n",
		    t->kind == VC_TR_ALLOC ? "alloc" : "free", addr, t->size);
		return;
	}
	put(&p->out, "%c %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", letter[t->kind], addr, t->size,
	    p->handle[t->stream]);
	p->changed |= t->kind != VC_TR_FREE_DONE;
}

struct brief { int64_t v[10]; };

static int brief_stat(void *arg, const struct vc_stat *s)
{
	static const char *const name[] = { "reserved_bytes", "allocated_bytes", "active_bytes",
		"requested_bytes", "inactive_split_bytes", "inactive_split", "segment", "active",
		"num_alloc_retries", "num_ooms" };
	struct brief *b = arg;

	for (int k = 0; k < 10; k++)
		if (!strcmp(s->name, name[k]) && (!s->klass || !strcmp(s->klass, "all")))
			b->v[k] = s->current;
	return 0;
}

static void put_brief(struct player *p)
{
	struct brief b = { { 0 } };

	p->m->type->stats(p->m, brief_stat, &b);
	put(&p->out, "S");
	for (int k = 0; k < 10; k++)
		put(&p->out, " %" PRId64, b.v[k]);
	put(&p->out, "\n");
}

static const char *const counter_name[5] = { "num_sync_all_streams", "num_device_alloc",
	"num_device_free", "num_oom_rejections", "max_split_size" };

struct finals { struct player *p; int64_t counter[5]; };

static int full_stat(void *arg, const struct vc_stat *s)
{
	struct finals *f = arg;

	for (int k = 0; k < 5; k++)
		if (!strcmp(s->name, counter_name[k]))
			f->counter[k] = s->current;
	if (!s->klass)
		return 0;
	put(&f->p->out, "T %s%s%s %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 "\n", s->name,
	    *s->klass ? "." : "", s->klass, s->current, s->peak, s->allocated, s->freed);
	return 0;
}

static int put_extent(void *arg, const struct vc_extent *x)
{
	const struct listener *l = arg;
	struct player *p = l->p;

	if (x->what == VC_X_SEGMENT)
		put(&p->out,
		    "G %" PRIx64 " %" PRIu64 " %" PRIu64 " %s %d %" PRIu64 ",%" PRIu64 " %" PRIu64
		    " %" PRIu64 " %" PRIu64 "\n",
		    x->addr + l->base, x->size, p->handle[x->stream], x->small ? "small" : "large",
		    x->expandable, x->pool >> 32, x->pool & UINT32_MAX, x->allocated, x->active,
		    x->requested);
	else
		put(&p->out, "B %" PRIu64 " %" PRIu64 " %c\n", x->size, x->requested,
		    x->what == VC_X_LIVE ? 'a' : x->what == VC_X_PENDING ? 'p' : 'i');
	return 0;
}

static void put_finals(struct player *p)
{
	for (unsigned d = 0; d < p->sc->devices; d++) {
		struct finals f = { p, { -1, -1, -1, -1, -1 } };

		p->m->type->stats(&p->model[d], full_stat, &f);
		for (int k = 0; k < 5; k++)
			put(&p->note, "%s %" PRId64 "\n", counter_name[k], f.counter[k]);
	}
	for (unsigned d = 0; d < p->sc->devices; d++)
		p->m->type->walk(&p->model[d], put_extent, &p->listener[d]);
	if (p->faults)
		put(&p->note, "driver_faults %zu\n", p->faults);
}

/* ---- operations ---- */
static uint32_t stream_index(struct player *p, uint64_t handle)
{
	size_t i = 0;

	if (handle == UINT64_MAX)
		return VC_STREAM_ALL;
	while (i < p->streams.n && p->handle[i] != handle)
		i++;
	if (i == MAX_STREAMS)
		die(p->sc->name, "too many streams");
	if (i == p->streams.n)
		p->handle[p->streams.n++] = handle;
	return (uint32_t)i;
}

static const char *do_alloc(struct player *p, const struct op *o, int *answer)
{
	static char line[64];
	struct vc_request rq = { .id = o->a, .size = o->b, .exact = o->kind == 'a' };
	struct vc_block b = { 0 };
	struct vc_error err;

	if (rq.exact)
		rq.addr = o->c;
	else
		rq.stream = stream_index(p, o->c);
	p->m->note[0] = '\0';
	*answer = p->m->type->alloc(p->m, &rq, &b, &err);
	if (*answer < 0)
		die(p->sc->name, err.message);
	if (*answer != VC_DONE)
		return p->m->note[0] ? NULL : "-";
	p->block[o->a] = b;
	p->live[o->a] = true;
	p->on[o->a] = (uint8_t)(p->m - p->model);
	snprintf(line, sizeof(line), "%c %" PRIx64 " %" PRIu64, o->kind,
		 b.addr ? b.addr + p->listener[p->on[o->a]].base : 0, b.size);
	return line;
}

static int do_pool(struct player *p, const struct op *o)
{
	struct vc_pool_call c = { .pool = o->a, .stream = VC_STREAM_ALL };
	struct vc_error err;

	switch (o->kind) {
	case 'k':
		c.what = VC_EV_POOL_CREATE;
		c.flags = !strcmp(o->rest, "oom") ? VC_EVF_USE_ON_OOM
			: !strcmp(o->rest, "nosplit") ? VC_EVF_NO_SPLIT : 0;
		break;
	case 'b':
		c.what = VC_EV_POOL_BEGIN;
		c.stream = stream_index(p, o->b);
		break;
	case 'x':
		c.what = VC_EV_POOL_END;
		break;
	case 'z':
		c.what = VC_EV_POOL_RELEASE;
		break;
	case 'g':
		c.what = o->b ? VC_EV_CAPTURE_BEGIN : VC_EV_CAPTURE_END;
		c.stream = stream_index(p, o->a);
		break;
	case 't':
		c.what = VC_EV_STREAM_CLASS;
		c.stream = stream_index(p, o->a);
		c.klass = o->rest;
		break;
	default:
		die(p->sc->name, o->line);
	}
	return p->speaker->type->pool(p->speaker, &c, &err);
}

/* What concerns every device: settings and reserve classes are the program's, and emptying the
 * caches ends at the first device that raises. */
static int do_all(struct player *p, const struct op *o)
{
	const struct vc_model_type *type = p->m->type;
	struct vc_error err;
	int r = VC_DONE;

	for (unsigned d = 0; d < p->sc->devices && (r == VC_DONE || o->kind != 'e'); d++) {
		p->speaker = &p->model[d];
		if (o->kind == 't')
			r = do_pool(p, o);
		else if (o->kind == 's')
			r = type->configure(p->speaker, o->rest, &err);
		else if (o->kind == 'e')
			r = type->trim(p->speaker, o->a, &err);
		else
			type->sync(p->speaker, VC_STREAM_ALL);
	}
	return r;
}

/* The result line of an operation, or NULL when it is an error with the text in the note. */
static const char *do_op(struct player *p, const struct op *o, int *answer)
{
	const struct vc_model_type *type = p->m->type;
	struct vc_error err;

	*answer = VC_DONE;
	switch (o->kind) {
	case 'm':
	case 'a':
		return do_alloc(p, o, answer);
	case 'f':
		if (o->a > p->sc->max_id || !p->live[o->a])
			return "-";
		p->live[o->a] = false;
		p->speaker = &p->model[p->on[o->a]];
		*answer = type->free(p->speaker, &p->block[o->a]);
		return *answer == VC_WAITS ? "w" : *answer == VC_RAISED ? NULL : "f";
	case 'r':
		if (o->a > p->sc->max_id || !p->live[o->a])
			return "-";
		type->use(&p->model[p->on[o->a]], &p->block[o->a], stream_index(p, o->b));
		return ".";
	case 'd':
		p->m = p->speaker = &p->model[o->a];
		return ".";
	case 'c':
		if (o->a == UINT64_MAX)
			do_all(p, o);
		else
			type->sync(p->m, stream_index(p, o->a));
		return ".";
	case 'o':
		vc_device_set_others(p->m->device, o->a);
		return ".";
	case 'p':
		*answer = type->fraction(p->m, strtod(o->line + 2, NULL), &err);
		break;
	case 's':
	case 'e':
	case 't':
		*answer = do_all(p, o);
		break;
	default:
		*answer = do_pool(p, o);
	}
	return *answer == VC_DONE ? "." : *answer == VC_REFUSED ? "-" : NULL;
}

/* A text that is one line of the notes. */
static void put_text(struct player *p, const char *kind)
{
	put(&p->note, "%s %zu ", kind, p->index);
	for (const char *s = p->speaker->note, *end; *s; s = *end ? end + 1 : end) {
		end = s + strcspn(s, "\n");
		put(&p->note, "%.*s%s", (int)(end - s), s, *end ? "\\n" : "");
	}
	put(&p->note, "\n");
	p->faults += !strncmp(p->speaker->note, "CUDA error: ", 12);
}

static void play_op(struct player *p, const struct op *o)
{
	struct vc_error err;
	const char *line;
	int answer;

	p->changed = false;
	p->kind = o->kind;
	p->speaker = p->m;
	line = do_op(p, o, &answer);
	if (!line)
		line = answer == VC_REFUSED ? "O" : "E";
	put(&p->out, "%s\n", line);
	if (*line == 'O' || *line == 'E')
		put_text(p, *line == 'O' ? "oom" : "error");
	if (p->changed || ++p->since >= 16 || *line == 'O' || p->index + 1 == p->sc->ops) {
		put_brief(p);
		p->since = 0;
	}
	for (unsigned d = 0; d < p->sc->devices; d++) {
		if (!p->torn && ((const struct torch *)p->model[d].state)->torn)
			p->torn = p->index + 1;
		if (p->check && !p->broken[0] && p->m->type->check(&p->model[d], &err) < 0)
			snprintf(p->broken, sizeof(p->broken), "operation %zu: %.200s", p->index,
				 err.message);
	}
}

static void start_device(struct player *p, unsigned d, const char *version)
{
	const struct vc_model_type *type = vc_model_by_name("torch");
	struct vc_device_config device = p->sc->device;
	struct vc_model *m = &p->model[d];
	struct vc_error err;
	void *config = type ? calloc(1, type->config_size) : NULL;

	if (!type)
		die("no such model", "torch");
	device.index = d;
	p->listener[d] = (struct listener){ p, (uint64_t)d << DEVICE_SHIFT };
	*m = (struct vc_model){ .type = type, .state = calloc(1, type->state_size),
				.config = config, .version = version, .conf = p->sc->conf,
				.streams = &p->streams, .device = vc_device_new(&device, &err) };
	if (!config || !m->state || !m->device)
		die("out of memory", p->sc->name);
	for (size_t k = 0; k < p->sc->addrs; k++)
		vc_device_hint(m->device, p->sc->addr[k], 0, &err);
	if (vc_params_parse(type->params, config, p->sc->automatic ? "completion=next" : NULL,
			    &err) < 0 ||
	    type->init(m, &err) < 0)
		die(p->sc->name, err.message);
	m->trace = on_trace;
	m->trace_arg = &p->listener[d];
}

static void player_start(struct player *p, const char *version)
{
	p->streams = (struct vc_streams){ p->handle, 1 };
	p->block = calloc(p->sc->max_id + 1, sizeof(*p->block));
	p->live = calloc(p->sc->max_id + 1, sizeof(*p->live));
	p->on = calloc(p->sc->max_id + 1, sizeof(*p->on));
	if (!p->block || !p->live || !p->on)
		die("out of memory", p->sc->name);
	for (unsigned d = 0; d < p->sc->devices; d++)
		start_device(p, d, version);
	p->m = &p->model[0];
}

void player_end(struct player *p)
{
	for (unsigned d = 0; d < p->sc->devices; d++) {
		struct vc_model *m = &p->model[d];

		m->type->fini(m);
		vc_device_free_all(m->device);
		free(m->state);
		free((void *)(uintptr_t)m->config);
	}
	free(p->block);
	free(p->live);
	free(p->on);
	free(p->out.s);
	free(p->note.s);
}

void player_run(struct player *p, const struct script *sc, const char *version, bool check)
{
	*p = (struct player){ .sc = sc, .check = check };
	player_start(p, version);
	for (p->index = 0; p->index < sc->ops; p->index++)
		play_op(p, &sc->op[p->index]);
	put_finals(p);
}

/* ---- comparison ---- */
/* Which operation a line of the results belongs to: each has one result line. */
static bool is_result_line(const char *s)
{
	return (strchr("fwOE-.", s[0]) && s[0] && (s[1] == '\n' || !s[1])) ||
	       ((s[0] == 'm' || s[0] == 'a') && s[1] == ' ');
}

bool text_differs(const char *want, const char *got, struct difference *d)
{
	*d = (struct difference){ .line = 1 };
	while (*want || *got) {
		size_t a = strcspn(want, "\n"), b = strcspn(got, "\n");

		if (a != b || memcmp(want, got, a) != 0) {
			snprintf(d->want, sizeof(d->want), "%.*s", (int)(a < 300 ? a : 300), want);
			snprintf(d->got, sizeof(d->got), "%.*s", (int)(b < 300 ? b : 300), got);
			return true;
		}
		d->op += is_result_line(want);
		d->line++;
		want += a + (want[a] == '\n');
		got += b + (got[b] == '\n');
	}
	return false;
}
