/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - operation scripts for the bfc model and what TensorFlow's own object code did with them.
 *
 * usage: play SCRIPT RESULT...     replay, compare line by line with what the real one answered
 *        play -t SCRIPT            what the model says when it refuses for the last time
 *        play -r SEED OPERATIONS   write a random script
 * The format is described in README.md. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "simulator/models/bfc.h"
#include "simulator/replay/model.h"

#define MOST 200000 /* highest number of a block */
#define LINE 256
#define MIB (1ull << 20)

static void die(const char *what, const char *which)
{
	fprintf(stderr, "play: %s: %s\n", what, which);
	exit(2);
}

/* ---- a random script ---- */
static uint64_t state;

static uint64_t dice(uint64_t sides) /* xorshift64*: the same everywhere */
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (state * 2685821657736338717ull >> 11) % sides;
}

static uint64_t pick(const uint64_t *of, uint64_t n)
{
	return of[dice(n)];
}

static uint64_t base[24], style;

static uint64_t some_size(void)
{
	uint64_t p = 256ull << dice(21);

	switch (style) {
	case 0: return dice(20000);
	case 1: return MIB + dice(300 * MIB);
	case 2: return 1 + dice(2 * p);
	case 3: return base[dice(24)];
	case 4: return p + dice(3) * 256 - 256; /* on and beside the bounds of bins and splits */
	default: return dice(3) ? base[dice(24)] : 1 + dice(2 * p);
	}
}

static void header(void)
{
	static const uint64_t limits[] = { 3 * MIB + 1, 64 * MIB, 300 * MIB, 1024 * MIB,
					   3072 * MIB, 8192 * MIB + 12345, 24576 * MIB };
	static const char *const va[] = { "inc", "dec", "fit", "mix" };
	static const char *const frac[] = { "0", "0", "0", "0.05", "0.5", "0.001", "0.3333" };
	uint64_t limit = pick(limits, 7);
	uint64_t totals[] = { limit + 2 * MIB, limit / 2 + 777, limit * 2, limit - limit / 8 };
	uint64_t total = pick(totals, 4), growth = dice(4) > 0, gc = dice(3) > 0;

	printf("limit %" PRIu64 " total %" PRIu64 " growth %" PRIu64 " gc %" PRIu64
	       " fragmentation %s va %s\n", limit, total, growth, gc, frac[dice(7)], va[dice(4)]);
	style = dice(6);
	for (int i = 0; i < 24; i++) {
		uint64_t kinds[] = { 1 + dice(5000), 1 + dice(3 * MIB), 1 + dice(limit / 4),
				     MIB + dice(200 * MIB) };

		base[i] = pick(kinds, 4);
	}
}

static void write_script(uint64_t seed, uint64_t operations)
{
	uint64_t *live = malloc((operations + 1) * sizeof(*live)), n = 0, id = 0, grow;

	if (!live || operations > MOST)
		die("more operations than a script holds", "-r");
	state = seed * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
	dice(2);
	header();
	grow = 52 + dice(8);
	for (uint64_t k = 0; k < operations; k++) {
		if (!dice(120)) { /* a step ends: nearly everything goes */
			for (; n > dice(4) && k < operations; k++)
				printf("f %" PRIu64 "\n", live[--n]);
			style = dice(6);
		} else if (!dice(300)) {
			printf("o %" PRIu64 "\n", dice(2) ? 0 : dice(600 * MIB));
		} else if (n && dice(100) >= grow) {
			uint64_t i = dice(3) ? n - 1 : dice(n);

			printf("f %" PRIu64 "\n", live[i]);
			live[i] = live[--n];
		} else {
			live[n++] = ++id;
			printf("a %" PRIu64 " %" PRIu64 "\n", id, some_size());
		}
	}
	free(live);
}

/* ---- the model ---- */
struct player {
	struct vc_model m;
	struct bfc_config config;
	struct vc_block *block; /* by number; size 0: none */
	char (*said)[LINE];     /* lines of the current operation */
	unsigned lines, cap;
	uint64_t operations, refused, returned, smaller, failed;
};

static void say(struct player *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct player *p, const char *fmt, ...)
{
	va_list ap;

	if (p->lines == p->cap) {
		p->cap = p->cap ? 2 * p->cap : 64;
		p->said = realloc(p->said, p->cap * sizeof(*p->said));
		if (!p->said)
			die("no memory", "lines");
	}
	va_start(ap, fmt);
	vsnprintf(p->said[p->lines++], LINE, fmt, ap);
	va_end(ap);
}

static void on_device(void *arg, const struct vc_device_change *c)
{
	struct player *p = arg;

	p->failed += c->failed;
	p->smaller += p->failed && c->what == VC_DRV_MALLOC && !c->failed;
	p->returned += c->what == VC_DRV_FREE;
	if (c->failed)
		say(p, "X %" PRIu64, c->size);
	else
		say(p, "%c %" PRIx64 " %" PRIu64, c->what == VC_DRV_FREE ? 'r' : 'R', c->addr,
		    c->size);
}

static void begin(struct player *p, const char *head, const char *backpedal)
{
	static const char *const names[] = { "inc", "dec", "fit", "mix" };
	uint64_t limit, total;
	unsigned growth, gc, va = 0;
	char frac[32], policy[8], conf[256];
	struct vc_error err = { 0 };
	struct vc_device_config d = { 0 };

	if (sscanf(head, "limit %" SCNu64 " total %" SCNu64 " growth %u gc %u fragmentation %31s "
			 "va %7s", &limit, &total, &growth, &gc, frac, policy) != 6)
		die("not a script", head);
	while (va < 4 && strcmp(names[va], policy))
		va++;
	d.total = total;
	d.va = (enum vc_va_policy)va;
	snprintf(conf, sizeof(conf),
		 "memory_limit=%" PRIu64 ",growth=%s,garbage_collection=%s,"
		 "fragmentation_fraction=%s,backpedal=%s,retry=false",
		 limit, growth ? "true" : "false", gc ? "true" : "false", frac, backpedal);
	p->m.type = vc_model_by_name("bfc");
	p->m.config = &p->config;
	p->m.state = calloc(1, p->m.type->state_size);
	p->m.device = vc_device_new(&d, &err);
	p->block = calloc(MOST + 1, sizeof(*p->block));
	if (!p->m.state || !p->m.device || !p->block ||
	    vc_params_parse(p->m.type->params, &p->config, conf, &err) < 0 ||
	    p->m.type->init(&p->m, &err) < 0)
		die(conf, err.message);
	vc_device_listen(p->m.device, on_device, p);
}

static void end(struct player *p)
{
	p->m.type->fini(&p->m);
	vc_device_free_all(p->m.device);
	free(p->m.state);
	free(p->block);
	free(p->said);
}

static void do_alloc(struct player *p, uint64_t id, uint64_t size)
{
	struct vc_request rq = { .id = id, .size = size };
	struct vc_error err = { 0 };
	int r = p->m.type->alloc(&p->m, &rq, &p->block[id], &err);

	if (r < 0)
		die("alloc", err.message);
	p->refused += r == VC_REFUSED;
	if (r != VC_DONE || !p->block[id].size) {
		p->block[id].size = 0;
		say(p, "-");
		return;
	}
	say(p, "a %" PRIx64 " %" PRIu64, p->block[id].addr, p->block[id].size);
}

static void do_line(struct player *p, const char *line)
{
	const struct bfc *b = p->m.state;
	uint64_t id = 0, n = 0;
	char op;

	p->lines = 0;
	p->failed = 0;
	if (sscanf(line, "%c %" SCNu64 " %" SCNu64, &op, &id, &n) < 2 || (op != 'o' && id > MOST))
		die("not an operation", line);
	if (op == 'a')
		do_alloc(p, id, n);
	else if (op == 'o')
		vc_device_set_others(p->m.device, id);
	else if (p->block[id].size)
		p->m.type->free(&p->m, &p->block[id]);
	if (op == 'f')
		p->block[id].size = 0;
	if (++p->operations % 64 == 0)
		say(p, "S %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
		    p->m.now.allocated, b->peak, p->m.now.reserved, b->allocs, b->largest);
}

static bool read_line(gzFile f, char *line)
{
	if (!gzgets(f, line, LINE))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* false: the real one hangs in the operation, nothing comes after it. */
static bool is_same(struct player *p, gzFile result, const char *line, const char *name, bool *bad)
{
	char real[LINE];

	for (unsigned i = 0; i < p->lines; i++) {
		if (!read_line(result, real))
			snprintf(real, sizeof(real), "(the end)");
		if (!strcmp(real, "spin"))
			return false;
		if (strcmp(real, p->said[i])) {
			printf("%s: operation %" PRIu64 " (%s): the real one \"%s\", the model "
			       "\"%s\"\n", name, p->operations, line, real, p->said[i]);
			*bad = true;
			return false;
		}
	}
	return true;
}

static void print_text(const char *script)
{
	struct player p = { 0 };
	gzFile s = gzopen(script, "rb");
	char line[LINE];

	if (!s || !read_line(s, line))
		die("cannot read", script);
	begin(&p, line, "always");
	while (read_line(s, line))
		do_line(&p, line);
	puts(p.m.note);
	gzclose(s);
	end(&p);
}

static bool compare(const char *script, const char *result, uint64_t sum[4])
{
	struct player p = { 0 };
	gzFile s = gzopen(script, "rb"), r = gzopen(result, "rb");
	char line[LINE], head[LINE], once[8];
	bool bad = false, whole = true;
	struct vc_error err = { 0 };

	if (!s || !r || !read_line(s, line) || !read_line(r, head) ||
	    sscanf(head, "release %*s backpedal %7s", once) != 1)
		die("cannot read", s ? result : script);
	begin(&p, line, once);
	while (whole && read_line(s, line)) {
		do_line(&p, line);
		whole = is_same(&p, r, line, result, &bad);
	}
	if (whole && read_line(r, head)) {
		printf("%s: the real one goes on with \"%s\"\n", result, head);
		bad = true;
	}
	if (p.m.type->check(&p.m, &err) < 0) {
		printf("%s: %s\n", result, err.message);
		bad = true;
	}
	sum[0] += p.operations;
	sum[1] += p.refused;
	sum[2] += p.returned;
	sum[3] += p.smaller;
	gzclose(s);
	gzclose(r);
	end(&p);
	return !bad;
}

int main(int argc, char **argv)
{
	uint64_t sum[4] = { 0 };
	int different = 0;

	if (argc == 4 && !strcmp(argv[1], "-r")) {
		write_script(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "-t")) {
		print_text(argv[2]);
		return 0;
	}
	if (argc < 3 || argc % 2 == 0)
		die("usage", "play SCRIPT RESULT [SCRIPT RESULT...] | play -r SEED OPERATIONS");
	for (int i = 1; i < argc; i += 2)
		different += !compare(argv[i], argv[i + 1], sum);
	printf("%d scripts, %" PRIu64 " operations, %" PRIu64 " refusals, %" PRIu64
	       " regions given back, %" PRIu64 " smaller regions, %d different\n",
	       (argc - 1) / 2, sum[0], sum[1], sum[2], sum[3], different);
	return different > 0;
}
