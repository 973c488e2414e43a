/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - scripts for the rules that the torch model has for XPU, and what PyTorch did with them.
 *
 * usage: play -v RELEASE SCRIPT RESULT...   replay, compare line by line with what the real one did
 *        play -r SEED OPERATIONS RELEASE    write a random script
 *
 * A script begins with x TOTAL EXPANDABLE. Then: m ID SIZE STREAM allocate, f ID free, r ID STREAM
 * record_stream, c STREAM what was submitted there completes, e empty_cache, o BYTES others use
 * that much, p FRACTION (2.10 on). A result has a line per operation: driver calls (A F M U), the
 * address or the refusal's text, and allocated, active, reserved and requested bytes. Several
 * waiting streams, private pools and graphs are not driven. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "simulator/models/torch_rules.h"
#include "simulator/replay/model.h"
#include "tests/support/dice.h"

enum { MOST = 100000, LINE = 1 << 16, STREAMS = 8 };
#define MIB (1ull << 20)

/* ---- a random script ---- */
static uint64_t some_size(uint64_t style)
{
	static const uint64_t edge[] = { 1, 511, 512, 513, MIB - 512, MIB - 1, MIB, MIB + 1,
					2 * MIB, 10 * MIB - 1, 10 * MIB, 10 * MIB + 1, 20 * MIB };

	switch ((style + play_dice(4)) % 5) {
	case 0: return 1 + play_dice(4096);
	case 1: return 1 + play_dice(2 * MIB);
	case 2: return 1 + play_dice(64 * MIB);
	case 3: return edge[play_dice(sizeof(edge) / sizeof(*edge))];
	default: return (1 + play_dice(40)) * MIB;
	}
}

static void write_script(uint64_t operations, const char *release)
{
	static uint64_t live[MOST];
	uint64_t n = 0, id = 1, style = play_dice(5), most = 4 + play_dice(120);
	uint64_t streams = play_dice(3) ? 1 : 3;
	struct torch_rules r;

	if (torch_rules_for(release, TORCH_XPU, &r) < 0)
		play_die("not a release with XPU", release);
	printf("x %" PRIu64 " %d\n", (uint64_t)((100 + play_dice(1500)) * MIB),
	       r.conf_use == TORCH_CONF_EXPANDABLE && play_dice(2));
	for (; operations; operations--) {
		uint64_t what = play_dice(100), at = n ? play_dice(n) : 0;

		if (n > most ? what < 70 : what < 35 && n) {
			printf("f %" PRIu64 "\n", live[at]);
			live[at] = live[--n];
		} else if (what >= 90 && what < 94 && n) {
			printf("r %" PRIu64 " %" PRIu64 "\n", live[at], play_dice(STREAMS));
		} else if (what >= 94 && what < 97) {
			printf("c %" PRIu64 "\n", play_dice(STREAMS));
		} else if (what == 97) {
			if (play_dice(3))
				printf("o %" PRIu64 "\n", (uint64_t)(play_dice(100) * MIB));
			else
				puts("e");
		} else if (what == 98 && !r.fraction_off && !play_dice(4)) {
			printf("p %.3f\n", (double)(300 + play_dice(700)) / 1000);
		} else {
			printf("m %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", id, some_size(style),
			       play_dice(streams));
			live[n++] = id++;
		}
		if (n == MOST)
			n = 0;
	}
}

/* ---- a script, played by the model ---- */
struct player {
	struct vc_model m;
	void *config;
	struct vc_block block[MOST];
	bool live[MOST];
	struct vc_streams streams;
	uint64_t handle[STREAMS];
	char said[LINE];
	size_t used;
	struct vc_error err;
};

static void say(struct player *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct player *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	p->used += (size_t)vsnprintf(p->said + p->used, LINE - p->used, fmt, ap);
	va_end(ap);
	if (p->used >= LINE)
		play_die("a line is too long", "");
}

static void on_driver(void *arg, const struct vc_device_change *c)
{
	struct player *p = arg;

	if (c->failed)
		return;
	if (c->what == VC_DRV_MALLOC)
		say(p, "A %" PRIx64 " %" PRIu64 " ", c->addr, c->size);
	else if (c->what == VC_DRV_FREE)
		say(p, "F %" PRIx64 " ", c->addr);
	else if (c->what == VC_DRV_MAP || c->what == VC_DRV_UNMAP)
		say(p, "%c %" PRIx64 " %" PRIu64 " ", c->what == VC_DRV_MAP ? 'M' : 'U', c->addr,
		    c->size);
}

static void begin(struct player *p, const char *release, const char *line)
{
	struct vc_device_config d = { .kind = VC_KIND_XPU, .va = VC_VA_FIT };
	unsigned long long total;
	int expand;

	if (sscanf(line, "x %llu %d", &total, &expand) != 2)
		play_die("a script begins with", "x TOTAL 0|1");
	d.total = total;
	*p = (struct player){ .config = NULL };
	p->m.type = vc_model_by_name("torch");
	p->m.version = release;
	p->m.conf = expand ? "expandable_segments:True" : NULL;
	p->m.device = vc_device_new(&d, &p->err);
	p->config = calloc(1, p->m.type->config_size);
	p->m.config = p->config;
	p->m.state = calloc(1, p->m.type->state_size);
	for (uint64_t i = 0; i < STREAMS; i++)
		p->handle[i] = i;
	p->streams = (struct vc_streams){ p->handle, STREAMS };
	p->m.streams = &p->streams;
	if (!p->m.device || !p->config || !p->m.state ||
	    vc_params_parse(p->m.type->params, p->config, NULL, &p->err) < 0 ||
	    p->m.type->init(&p->m, &p->err) < 0)
		play_die("the model cannot begin", p->err.message);
	vc_device_listen(p->m.device, on_driver, p);
}

static void end(struct player *p)
{
	p->m.type->fini(&p->m);
	vc_device_free_all(p->m.device);
	free(p->config);
	free(p->m.state);
}

static void allocate(struct player *p, uint64_t id, uint64_t size, uint64_t stream)
{
	struct vc_request rq = { .id = id, .size = size, .stream = (uint32_t)stream };
	int r = p->m.type->alloc(&p->m, &rq, &p->block[id], &p->err);

	if (r < 0)
		play_die("the model failed", p->err.message);
	p->live[id] = r == VC_DONE;
	if (r == VC_DONE)
		say(p, "m %" PRIx64 " ", p->block[id].addr);
	else
		say(p, "O %s ", p->m.note);
}

static bool step(struct player *p, const char *line)
{
	const struct vc_model_type *t = p->m.type;
	uint64_t a = 0, b = 0, c = 0;
	double part = 0;

	if (*line != 'p' &&
	    sscanf(line + 1, "%" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c) > 0 && a >= MOST &&
	    strchr("mfr", *line))
		play_die("a block has too large a number", line);
	switch (*line) {
	case 'm': allocate(p, a, b, c); break;
	case 'f':
		if (p->live[a])
			t->free(&p->m, &p->block[a]);
		p->live[a] = false;
		break;
	case 'r':
		if (p->live[a])
			t->use(&p->m, &p->block[a], (uint32_t)b);
		break;
	case 'c': t->sync(&p->m, (uint32_t)a); break;
	case 'e': t->trim(&p->m, 0, &p->err); break;
	case 'o': vc_device_set_others(p->m.device, a); break;
	case 'p':
		part = strtod(line + 1, NULL);
		t->fraction(&p->m, part, &p->err);
		break;
	default: return false;
	}
	if (*line != 'm')
		say(p, "%c ", *line);
	say(p, "| %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, p->m.now.allocated,
	    p->m.now.active, p->m.now.reserved, p->m.now.requested);
	return true;
}

struct sums { uint64_t operations, refused, calls, different; };

static void play(const char *release, const char *script, const char *result, struct sums *sum)
{
	static struct player p;
	static char line[LINE], want[LINE];
	gzFile in = gzopen(script, "r"), real = gzopen(result, "r");
	uint64_t n = 1, bad = 0;

	if (!in || !real || !gzgets(in, line, LINE))
		play_die("cannot be read", in ? result : script);
	begin(&p, release, line);
	while (gzgets(in, line, LINE) && bad < 1) {
		n++;
		p.used = 0;
		if (!step(&p, line))
			continue;
		if (!gzgets(real, want, LINE))
			snprintf(want, LINE, "(nothing)");
		want[strcspn(want, "\n")] = '\0';
		sum->operations++;
		sum->refused += strstr(want, "out of memory") != NULL;
		for (const char *s = want; *s; s++)
			sum->calls += strchr("AFMU", *s) && s[1] == ' ';
		if (strcmp(want, p.said) && !bad++)
			printf("%s, line %" PRIu64 ": %s  real  %s\n  model %s\n", script, n,
			       line, want, p.said);
	}
	sum->different += bad;
	end(&p);
	gzclose(in);
	gzclose(real);
}

int main(int argc, char **argv)
{
	struct sums sum = { 0 };
	int scripts = 0;

	if (argc == 5 && !strcmp(argv[1], "-r")) {
		play_seed(strtoull(argv[2], NULL, 10));
		write_script(strtoull(argv[3], NULL, 10), argv[4]);
		return 0;
	}
	if (argc < 5 || strcmp(argv[1], "-v") || argc % 2 == 0)
		play_die("usage", "-v RELEASE SCRIPT RESULT..., -r SEED OPERATIONS RELEASE");
	for (int i = 3; i + 1 < argc; i += 2, scripts++)
		play(argv[2], argv[i], argv[i + 1], &sum);
	printf("%d scripts, %" PRIu64 " operations, %" PRIu64 " refusals, %" PRIu64
	       " driver calls, %" PRIu64 " different\n",
	       scripts, sum.operations, sum.refused, sum.calls, sum.different);
	return sum.different != 0;
}
