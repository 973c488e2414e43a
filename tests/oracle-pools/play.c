/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - operation scripts for a pool, and what the real one did with them.
 *
 * usage: play MODEL SCRIPT RESULT...     replay, compare with what the real one answered
 *        play -r SEED OPERATIONS STREAMS write a random script
 *
 * A script begins with total BYTES limit BYTES unit BYTES va inc|dec|fit|mix (the unit is not
 * read). Then: a ID SIZE STREAM allocate, f ID free, t 0 give back, o BYTES others now use so
 * much. A result begins with release R. Each operation adds calls of the device (R ADDR SIZE
 * given, X SIZE refused, r ADDR SIZE given back, in any order), an allocation a ADDR SIZE or -
 * WORDS, and . USED TOTAL.
 * Of equal free chunks CuPy takes the Python object lowest in host memory, so the model is told
 * the address that the real one gave, and takes that chunk if it may. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/vec.h"
#include "simulator/replay/model.h"
#include "tests/support/dice.h"

#define MOST 200000 /* highest number of a block */
#define LINE 256
#define MIB (1ull << 20)

/* ---- a random script ---- */
static uint64_t some_size(uint64_t style, const uint64_t *often)
{
	switch (style) {
	case 0: return 1 + play_dice(20000);
	case 1: return MIB + play_dice(300 * MIB);
	case 2: return 1 + play_dice(512ull << play_dice(21));
	case 3: return often[play_dice(24)];
	default: return play_dice(3) ? often[play_dice(24)] : 512 * play_dice(5000); /* 0 as well */
	}
}

static void header(void)
{
	static const uint64_t totals[] = { 40 * MIB, 700 * MIB, 3072 * MIB + 12345, 24576 * MIB };
	static const char *const va[] = { "inc", "dec", "fit", "mix" };
	uint64_t total = totals[play_dice(4)], limits[] = { 0, 0, total / 2 + 777, total * 2 };
	uint64_t units[] = { MIB, 8 * MIB, 256 * MIB, 1024 * MIB };

	printf("total %" PRIu64 " limit %" PRIu64 " unit %" PRIu64 " va %s\n", total,
	       limits[play_dice(4)], units[play_dice(4)], va[play_dice(4)]);
}

static void write_script(uint64_t seed, uint64_t operations, uint64_t streams)
{
	uint64_t *live = malloc((operations + 1) * sizeof(*live)), n = 0, id = 0, often[24];
	uint64_t style, grow;

	if (!live || operations > MOST)
		play_die("more operations than a script holds", "-r");
	play_seed(seed);
	header();
	for (int i = 0; i < 24; i++)
		often[i] = 1 + play_dice(play_dice(2) ? 5000 : 60 * MIB);
	style = play_dice(5);
	grow = 52 + play_dice(8);
	for (uint64_t k = 0; k < operations; k++) {
		if (!play_dice(120)) { /* a step ends: nearly everything goes */
			for (; n > play_dice(4) && k < operations; k++)
				printf("f %" PRIu64 "\n", live[--n]);
			style = play_dice(5);
		} else if (!play_dice(300)) {
			printf("o %" PRIu64 "\n", play_dice(2) ? 0 : play_dice(600 * MIB));
		} else if (!play_dice(200)) {
			printf("t 0\n");
		} else if (n && play_dice(100) >= grow) {
			uint64_t i = play_dice(3) ? n - 1 : play_dice(n);

			printf("f %" PRIu64 "\n", live[i]);
			live[i] = live[--n];
		} else {
			live[n++] = ++id;
			printf("a %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", id,
			       some_size(style, often), play_dice(streams));
		}
	}
	free(live);
}

/* ---- the model ---- */
struct lines { char (*at)[LINE]; size_t n, cap; };

struct player {
	struct vc_model m;
	struct vc_streams streams;
	struct vc_block *block; /* by number */
	bool *live;
	struct lines said, real; /* of the current operation */
	uint64_t operations, refused, returned;
};

static void add(struct lines *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(struct lines *l, const char *fmt, ...)
{
	va_list ap;

	if (!vc_vec_room(l->at, l->cap, l->n + 1))
		play_die("no memory", "lines");
	va_start(ap, fmt);
	vsnprintf(l->at[l->n++], LINE, fmt, ap);
	va_end(ap);
}

static void on_device(void *arg, const struct vc_device_change *c)
{
	struct player *p = arg;

	p->returned += c->what == VC_DRV_FREE;
	if (c->failed)
		add(&p->said, "X %" PRIu64, c->size);
	else
		add(&p->said, "%c %" PRIx64 " %" PRIu64, c->what == VC_DRV_FREE ? 'r' : 'R',
		    c->addr, c->size);
}

static void begin(struct player *p, const char *model, const char *head)
{
	static const char *const names[] = { "inc", "dec", "fit", "mix" };
	static const uint64_t handles[] = { 0, 16, 32, 48 };
	uint64_t limit, total, unit;
	unsigned va = 0;
	char policy[8], conf[128];
	struct vc_error err = { 0 };
	struct vc_device_config d = { 0 };

	if (sscanf(head, "total %" SCNu64 " limit %" SCNu64 " unit %" SCNu64 " va %7s", &total,
		   &limit, &unit, policy) != 4)
		play_die("not a script", head);
	while (va < 4 && strcmp(names[va], policy))
		va++;
	d.total = total;
	d.va = (enum vc_va_policy)va;
	snprintf(conf, sizeof(conf), "limit=%" PRIu64, limit);
	p->streams = (struct vc_streams){ handles, 4 };
	p->m.type = vc_model_by_name(model);
	if (!p->m.type)
		play_die("no such model", model);
	p->m.streams = &p->streams;
	p->m.config = calloc(1, p->m.type->config_size);
	p->m.state = calloc(1, p->m.type->state_size);
	p->m.device = vc_device_new(&d, &err);
	p->block = calloc(MOST + 1, sizeof(*p->block));
	p->live = calloc(MOST + 1, sizeof(*p->live));
	if (!p->m.config || !p->m.state || !p->m.device || !p->block || !p->live ||
	    vc_params_parse(p->m.type->params, (void *)(uintptr_t)p->m.config, conf, &err) < 0 ||
	    p->m.type->init(&p->m, &err) < 0)
		play_die(conf, err.message);
	vc_device_listen(p->m.device, on_device, p);
}

static void end(struct player *p)
{
	p->m.type->fini(&p->m);
	vc_device_free_all(p->m.device);
	VC_FREE((void *)(uintptr_t)p->m.config, p->m.state, p->block, p->live, p->said.at,
		p->real.at);
}

/* `addr`: where the real one put it, for models that cannot know which of equal chunks it takes. */
static void do_alloc(struct player *p, uint64_t id, uint64_t size, uint32_t stream, uint64_t addr)
{
	struct vc_request rq = { .id = id, .size = size, .stream = stream, .addr = addr,
				 .exact = addr != 0 };
	struct vc_error err = { 0 };
	int r = p->m.type->alloc(&p->m, &rq, &p->block[id], &err);

	if (r < 0)
		play_die("alloc", err.message);
	p->refused += r == VC_REFUSED;
	p->live[id] = r == VC_DONE;
	if (r != VC_DONE)
		add(&p->said, "- %s", p->m.note);
	else
		add(&p->said, "a %" PRIx64 " %" PRIu64, p->block[id].addr, p->block[id].size);
}

static void do_line(struct player *p, const char *line, uint64_t addr)
{
	uint64_t id = 0, size = 0, stream = 0;
	struct vc_error err;
	char op;

	p->said.n = 0;
	if (sscanf(line, "%c %" SCNu64 " %" SCNu64 " %" SCNu64, &op, &id, &size, &stream) < 2 ||
	    (op != 'o' && id > MOST))
		play_die("not an operation", line);
	if (op == 'a')
		do_alloc(p, id, size, (uint32_t)stream, addr);
	else if (op == 'o')
		vc_device_set_others(p->m.device, id);
	else if (op == 't' && p->m.type->trim)
		p->m.type->trim(&p->m, 0, &err);
	else if (op == 'f' && p->live[id])
		p->m.type->free(&p->m, &p->block[id]);
	if (op == 'f')
		p->live[id] = false;
	add(&p->said, ". %" PRIu64 " %" PRIu64, p->m.now.allocated, p->m.now.reserved);
	p->operations++;
}

static bool read_line(gzFile f, char *line)
{
	if (!gzgets(f, line, LINE))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* One operation of the result, up to its ". USED TOTAL". The address that it gave, or 0. */
static uint64_t read_result(struct player *p, gzFile f)
{
	char line[LINE];
	uint64_t addr = 0;

	p->real.n = 0;
	while (read_line(f, line)) {
		add(&p->real, "%s", line);
		if (line[0] == 'a')
			addr = strtoull(line + 2, NULL, 16);
		if (line[0] == '.')
			break;
	}
	return addr;
}

/* Regions that go back together come in an order of their own. */
static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void order_returns(struct lines *l)
{
	for (size_t i = 0, k; i < l->n; i = k) {
		for (k = i + 1; k < l->n && l->at[i][0] == 'r' && l->at[k][0] == 'r'; k++)
			;
		qsort(l->at[i], k - i, LINE, by_text);
	}
}

static bool is_same(struct player *p, const char *line, const char *name)
{
	order_returns(&p->real);
	order_returns(&p->said);
	for (size_t i = 0; i < p->said.n || i < p->real.n; i++) {
		const char *real = i < p->real.n ? p->real.at[i] : "(the end)";
		const char *said = i < p->said.n ? p->said.at[i] : "(the end)";

		/* "-" alone: the words of the refusal were not written down */
		if (!strcmp(real, said) || (!strcmp(real, "-") && said[0] == '-'))
			continue;
		printf("%s: operation %" PRIu64 " (%s): the real one \"%s\", the model \"%s\"\n",
		       name, p->operations, line, real, said);
		return false;
	}
	return true;
}

static bool compare(const char *model, const char *script, const char *result, uint64_t sum[3])
{
	struct player p = { 0 };
	gzFile s = gzopen(script, "rb"), r = gzopen(result, "rb");
	char line[LINE], head[LINE];
	bool good = true;
	struct vc_error err = { 0 };

	if (!s || !r || !read_line(s, line) || !read_line(r, head) ||
	    strncmp(head, "release ", 8))
		play_die("cannot read", s ? result : script);
	begin(&p, model, line);
	while (good && read_line(s, line)) {
		uint64_t addr = read_result(&p, r);

		do_line(&p, line, addr);
		good = is_same(&p, line, result);
	}
	if (good && read_line(r, head)) {
		printf("%s: the real one goes on with \"%s\"\n", result, head);
		good = false;
	}
	if (p.m.type->check(&p.m, &err) < 0) {
		printf("%s: %s\n", result, err.message);
		good = false;
	}
	sum[0] += p.operations;
	sum[1] += p.refused;
	sum[2] += p.returned;
	gzclose(s);
	gzclose(r);
	end(&p);
	return good;
}

int main(int argc, char **argv)
{
	uint64_t sum[3] = { 0 };
	int different = 0;

	if (argc == 5 && !strcmp(argv[1], "-r")) {
		write_script(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
			     strtoull(argv[4], NULL, 10));
		return 0;
	}
	if (argc < 4 || argc % 2)
		play_die("usage", "play MODEL SCRIPT RESULT... | play -r SEED OPERATIONS STREAMS");
	for (int i = 2; i < argc; i += 2)
		different += !compare(argv[1], argv[i], argv[i + 1], sum);
	printf("%d scripts, %" PRIu64 " operations, %" PRIu64 " refusals, %" PRIu64
	       " regions given back, %d different\n", (argc - 2) / 2, sum[0], sum[1], sum[2],
	       different);
	return different > 0;
}
