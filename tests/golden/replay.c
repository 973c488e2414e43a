/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c - replays recorded vectors of the real allocator through the torch model, line by line.
 *
 * usage: replay DIR [-s SCRIPT] [-t VERSION] [-c] [-q]
 * DIR holds index.txt, scripts/, results/ and notes/ as described in tests/golden/README.md.
 * -c checks the model's invariants after every operation. Ends with "N passed, N failed". */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/io.h"
#include "simulator/model.h"

#define MAX_STREAMS 64
#define MAX_PROCESSES 32

struct text { char *s; size_t n, cap; };

struct op { char kind; const char *line; uint64_t a, b, c; const char *rest; };

struct script {
	char name[128];
	char *text;
	struct vc_device_config device;
	struct vc_process process[MAX_PROCESSES];
	uint64_t *addr;
	size_t addrs;
	bool automatic;
	char *conf;
	struct op *op;
	size_t ops;
	uint64_t max_id;
};

struct player {
	const struct script *sc;
	struct vc_model model;
	struct vc_streams streams;
	uint64_t handle[MAX_STREAMS];
	struct vc_block *block;
	bool *live;
	struct text out, note;
	bool changed, check;
	char kind; /* of the current operation */
	uint64_t id, size;
	size_t since, index;
	char broken[256];
};

static void die(const char *what, const char *detail)
{
	fprintf(stderr, "replay: %s: %s\n", what, detail);
	exit(2);
}

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
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

static char *slurp(const char *path)
{
	struct vc_error err = { 0 };
	struct vc_input *in = vc_input_open(path, &err);
	char *s = malloc(1);
	size_t n = 0, got;

	if (!in || !s)
		die(path, err.message);
	for (;;) {
		const uint8_t *p = vc_input_peek(in, 65536, &got, &err);

		if (!p && err.status)
			die(path, err.message);
		if (!got)
			break;
		s = realloc(s, n + got + 1);
		if (!s)
			die(path, "out of memory");
		memcpy(s + n, p, got);
		n += got;
		vc_input_skip(in, got);
	}
	vc_input_close(in);
	s[n] = '\0';
	return s;
}

/* ---- script ---- */
static uint64_t stream_number(const char **p)
{
	char *end;
	uint64_t v;

	while (**p == ' ')
		(*p)++;
	if (**p == '*') {
		(*p)++;
		return UINT64_MAX;
	}
	v = strtoull(*p, &end, 0);
	*p = end;
	return v;
}

static void read_op(struct script *sc, char *line)
{
	struct op o = { .kind = line[0], .line = line };
	const char *p = line + 1;

	switch (o.kind) {
	case 'm':
	case 'a':
		o.a = stream_number(&p);
		o.b = stream_number(&p);
		o.c = o.kind == 'a' ? strtoull(p, NULL, 16) : stream_number(&p);
		if (o.a > sc->max_id)
			sc->max_id = o.a;
		break;
	case 'r':
	case 'b':
	case 'g':
		o.a = stream_number(&p);
		o.b = stream_number(&p);
		break;
	case 's':
		break;
	default:
		o.a = stream_number(&p);
	}
	while (*p == ' ')
		p++;
	o.rest = p;
	sc->op = realloc(sc->op, (sc->ops + 1) * sizeof(*sc->op));
	if (!sc->op)
		die("out of memory", "script");
	sc->op[sc->ops++] = o;
}

static void read_process(struct script *sc, const char *rest)
{
	struct vc_process *p = &sc->process[sc->device.processes++];

	p->self = !strncmp(rest, "self", 4);
	p->pid = p->self ? 0 : (uint32_t)strtoul(rest, NULL, 10);
	p->bytes = strtoull(strchr(rest, ' ') + 1, NULL, 10);
}

static void read_header(struct script *sc, const char *line)
{
	static const char *const va[] = { "inc", "dec", "fit", "mix", "list" };
	const char *rest = strchr(line, ' ');

	rest = rest ? rest + 1 : "";
	if (!strncmp(line, "total ", 6))
		sc->device.total = strtoull(rest, NULL, 10);
	else if (!strncmp(line, "proptotal ", 10))
		sc->device.prop_total = strtoull(rest, NULL, 10);
	else if (!strncmp(line, "other ", 6))
		sc->device.others = strtoull(rest, NULL, 10);
	else if (!strncmp(line, "events ", 7))
		sc->automatic = !strcmp(rest, "auto");
	else if (!strncmp(line, "conf ", 5))
		sc->conf = (char *)(uintptr_t)rest;
	else if (!strncmp(line, "proc ", 5))
		read_process(sc, rest);
	else if (!strncmp(line, "va ", 3))
		for (int k = 0; k < 5; k++)
			if (!strcmp(rest, va[k]))
				sc->device.va = (enum vc_va_policy)k;
	if (!strncmp(line, "addr ", 5)) {
		sc->addr = realloc(sc->addr, (sc->addrs + 1) * sizeof(*sc->addr));
		if (!sc->addr)
			die("out of memory", "script");
		sc->addr[sc->addrs++] = strtoull(rest, NULL, 10);
	}
}

static void script_fini(struct script *sc)
{
	free(sc->text);
	free(sc->op);
	free(sc->addr);
	*sc = (struct script){ 0 };
}

static void script_load(struct script *sc, const char *dir, const char *name)
{
	char path[1024];

	script_fini(sc);
	snprintf(sc->name, sizeof(sc->name), "%s", name);
	snprintf(path, sizeof(path), "%s/scripts/%s.txt.gz", dir, name);
	sc->text = slurp(path);
	sc->automatic = true;
	for (char *line = sc->text; *line; ) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		if (line[0] && (line[1] == ' ' || !line[1]))
			read_op(sc, line);
		else if (line[0] && line[0] != '#')
			read_header(sc, line);
		if (!end)
			break;
		line = end + 1;
	}
	sc->device.process = sc->process;
}

/* ---- output ---- */
static void on_trace(void *arg, const struct vc_trace_entry *t)
{
	static const char letter[] = { 'A', 'F', 'M', 'U', 'C', 'O' };
	struct player *p = arg;

	if (t->kind == VC_TR_ALLOC || t->kind == VC_TR_FREE) {
		put(&p->out, "! %s %" PRIx64 " %" PRIu64 "\n", t->kind == VC_TR_ALLOC ? "alloc" : "free",
		    t->addr, t->size);
		return;
	}
	put(&p->out, "%c %" PRIx64 " %" PRIu64 " %" PRIu64 "\n", letter[t->kind], t->addr, t->size,
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

	p->model.type->stats(&p->model, brief_stat, &b);
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
	struct player *p = arg;

	if (x->what == VC_X_SEGMENT)
		put(&p->out, "G %" PRIx64 " %" PRIu64 " %" PRIu64 " %s %d %" PRIu64 ",%" PRIu64 " %" PRIu64
		    " %" PRIu64 " %" PRIu64 "\n", x->addr, x->size, p->handle[x->stream],
		    x->small ? "small" : "large", x->expandable, x->pool >> 32, x->pool & UINT32_MAX,
		    x->allocated, x->active, x->requested);
	else
		put(&p->out, "B %" PRIu64 " %" PRIu64 " %c\n", x->size, x->requested,
		    x->what == VC_X_LIVE ? 'a' : x->what == VC_X_PENDING ? 'p' : 'i');
	return 0;
}

static void put_finals(struct player *p)
{
	struct finals f = { p, { -1, -1, -1, -1, -1 } };

	p->model.type->stats(&p->model, full_stat, &f);
	p->model.type->walk(&p->model, put_extent, p);
	for (int k = 0; k < 5; k++)
		put(&p->note, "%s %" PRId64 "\n", counter_name[k], f.counter[k]);
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
	p->model.note[0] = '\0';
	*answer = p->model.type->alloc(&p->model, &rq, &b, &err);
	if (*answer < 0)
		die(p->sc->name, err.message);
	if (*answer != VC_DONE)
		return p->model.note[0] ? NULL : "-";
	p->block[o->a] = b;
	p->live[o->a] = true;
	snprintf(line, sizeof(line), "%c %" PRIx64 " %" PRIu64, o->kind, b.addr, b.size);
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
	return p->model.type->pool(&p->model, &c, &err);
}

/* The result line of an operation, or NULL when it is an error with the text in the note. */
static const char *do_op(struct player *p, const struct op *o, int *answer)
{
	const struct vc_model_type *type = p->model.type;
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
		return type->free(&p->model, &p->block[o->a]) == VC_WAITS ? "w" : "f";
	case 'r':
		if (o->a > p->sc->max_id || !p->live[o->a])
			return "-";
		type->use(&p->model, &p->block[o->a], stream_index(p, o->b));
		return ".";
	case 'c':
		type->sync(&p->model, stream_index(p, o->a));
		return ".";
	case 'o':
		vc_device_set_others(p->model.device, o->a);
		return ".";
	case 'e':
		*answer = type->trim(&p->model, o->a, &err);
		break;
	case 'p':
		*answer = type->fraction(&p->model, strtod(o->line + 2, NULL), &err);
		break;
	case 's':
		*answer = type->configure(&p->model, o->rest, &err);
		break;
	default:
		*answer = do_pool(p, o);
	}
	return *answer == VC_DONE ? "." : *answer == VC_REFUSED ? "-" : NULL;
}

static void play_op(struct player *p, const struct op *o)
{
	struct vc_error err;
	const char *line;
	int answer;

	p->changed = false;
	p->kind = o->kind;
	line = do_op(p, o, &answer);
	if (!line)
		line = answer == VC_REFUSED ? "O" : "E";
	put(&p->out, "%s\n", line);
	if (*line == 'O' || *line == 'E')
		put(&p->note, "%s %zu %s\n", *line == 'O' ? "oom" : "error", p->index, p->model.note);
	if (p->changed || ++p->since >= 16 || *line == 'O' || p->index + 1 == p->sc->ops) {
		put_brief(p);
		p->since = 0;
	}
	if (p->check && !p->broken[0] && p->model.type->check(&p->model, &err) < 0)
		snprintf(p->broken, sizeof(p->broken), "operation %zu: %.200s", p->index, err.message);
}

static void player_start(struct player *p, const char *version)
{
	const struct vc_model_type *type = vc_model_by_name("torch");
	struct vc_error err;
	void *config;

	if (!type)
		die("no such model", "torch");
	config = calloc(1, type->config_size);
	p->model.type = type;
	p->model.state = calloc(1, type->state_size);
	p->model.config = config;
	p->model.version = version;
	p->model.conf = p->sc->conf;
	p->model.streams = &p->streams;
	p->streams = (struct vc_streams){ p->handle, 1 };
	p->model.device = vc_device_new(&p->sc->device, &err);
	p->block = calloc(p->sc->max_id + 1, sizeof(*p->block));
	p->live = calloc(p->sc->max_id + 1, sizeof(*p->live));
	if (!config || !p->model.state || !p->model.device || !p->block || !p->live)
		die("out of memory", p->sc->name);
	for (size_t k = 0; k < p->sc->addrs; k++)
		vc_device_hint(p->model.device, p->sc->addr[k], 0, &err);
	if (vc_params_parse(type->params, config, p->sc->automatic ? "completion=next" : NULL, &err) < 0 ||
	    type->init(&p->model, &err) < 0)
		die(p->sc->name, err.message);
	p->model.trace = on_trace;
	p->model.trace_arg = p;
}

static void player_end(struct player *p)
{
	p->model.type->fini(&p->model);
	vc_device_free_all(p->model.device);
	free(p->model.state);
	free((void *)(uintptr_t)p->model.config);
	free(p->block);
	free(p->live);
	free(p->out.s);
	free(p->note.s);
}

/* ---- comparison ---- */
static size_t line_length(const char *s)
{
	return strcspn(s, "\n");
}

/* Which operation a line of the results belongs to: each has one result line. */
static bool is_result_line(const char *s)
{
	return (strchr("fwOE-.", s[0]) && s[0] && (s[1] == '\n' || !s[1])) ||
	       ((s[0] == 'm' || s[0] == 'a') && s[1] == ' ');
}

static bool compare(const struct player *p, const char *want, const char *got, const char *what,
		    const char *version, bool quiet)
{
	size_t op = 0, line = 1;

	while (*want || *got) {
		size_t a = line_length(want), b = line_length(got);

		if (a != b || memcmp(want, got, a) != 0) {
			if (!quiet)
				printf("FAIL %s %s: %s line %zu, operation %zu (%s): expected \"%.*s\", got"
				       " \"%.*s\"\n", p->sc->name, version, what, line, op,
				       op < p->sc->ops ? p->sc->op[op].line : "end", (int)(a < 300 ? a : 300),
				       want, (int)(b < 300 ? b : 300), got);
			return false;
		}
		op += is_result_line(want);
		line++;
		want += a + (want[a] == '\n');
		got += b + (got[b] == '\n');
	}
	return true;
}

struct options { const char *dir, *script, *version; bool check, quiet; };

static bool replay(const struct options *o, const struct script *sc, char *const field[4])
{
	struct player p = { .sc = sc, .check = o->check };
	char path[1024], *want, *notes;
	bool ok;

	player_start(&p, field[1]);
	for (p.index = 0; p.index < sc->ops; p.index++)
		play_op(&p, &sc->op[p.index]);
	put_finals(&p);
	snprintf(path, sizeof(path), "%s/results/%s.gz", o->dir, field[2]);
	want = slurp(path);
	snprintf(path, sizeof(path), "%s/notes/%s.gz", o->dir, field[3]);
	notes = slurp(path);
	ok = compare(&p, want, p.out.s, "result", field[1], o->quiet) &&
	     compare(&p, notes, p.note.s, "note", field[1], o->quiet);
	if (ok && p.broken[0]) {
		printf("FAIL %s %s: %s\n", sc->name, field[1], p.broken);
		ok = false;
	}
	free(want);
	free(notes);
	player_end(&p);
	return ok;
}

static int replay_all(const struct options *o)
{
	struct script sc = { 0 };
	char path[1024], *index, *next;
	size_t passed = 0, failed = 0;

	snprintf(path, sizeof(path), "%s/index.txt", o->dir);
	index = slurp(path);
	for (char *line = index; *line; line = next) {
		char *field[4];
		int n = 0;

		next = line + line_length(line);
		if (*next)
			*next++ = '\0';
		for (char *f = line; n < 4 && *f; n++) {
			field[n] = f;
			f += strcspn(f, " ");
			if (*f)
				*f++ = '\0';
		}
		if (n < 4 || *line == '#' || (o->script && strcmp(o->script, field[0])) ||
		    (o->version && strcmp(o->version, field[1])))
			continue;
		if (strcmp(sc.name, field[0]) != 0)
			script_load(&sc, o->dir, field[0]);
		if (replay(o, &sc, field))
			passed++;
		else
			failed++;
	}
	printf("%zu passed, %zu failed\n", passed, failed);
	free(index);
	script_fini(&sc);
	return failed || !passed;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };

	for (int k = 1; k < argc; k++) {
		if (!strcmp(argv[k], "-c"))
			o.check = true;
		else if (!strcmp(argv[k], "-q"))
			o.quiet = true;
		else if (!strcmp(argv[k], "-s") && k + 1 < argc)
			o.script = argv[++k];
		else if (!strcmp(argv[k], "-t") && k + 1 < argc)
			o.version = argv[++k];
		else
			o.dir = argv[k];
	}
	if (!o.dir)
		die("usage", "replay DIR [-s SCRIPT] [-t VERSION] [-c] [-q]");
	return replay_all(&o);
}
