/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - operation scripts for the bfc model and what TensorFlow's own object code did with them.
 *
 * usage: play SCRIPT RESULT...     replay, compare line by line with what the real one answered
 *        play -t SCRIPT            what the model says when it refuses for the last time
 *        play -r SEED OPERATIONS   write a random script
 *
 * A script begins with limit BYTES total BYTES growth 0|1 gc 0|1 fragmentation F va
 * inc|dec|fit|mix. Then one operation per line: a ID SIZE allocate, f ID free, o BYTES others now
 * use so much.
 * A result begins with release R backpedal always|once. Each operation adds its calls of the
 * device (R ADDR SIZE a region, X SIZE refused, r ADDR SIZE given back; several as a set), and an
 * allocation a ADDR SIZE or -. Every 64th adds S IN_USE PEAK POOL ALLOCATIONS LARGEST. spin: the
 * real one asks for ever for a region below 2,560 bytes; nothing after it is compared.
 * Not compared: alignments above 256 bytes, timestamps, spatial tags, waiting for other threads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/models/bfc.h"
#include "tests/support/play.h"

#define MIB PLAY_MIB
#define dice play_dice
#define pick play_pick

/* ---- a random script ---- */
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

	if (!live || operations > PLAY_MOST)
		play_die("more operations than a script holds", "-r");
	play_seed(seed);
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
static const char *begin(const char *script, const char *result, char *params, size_t room,
			 struct vc_device_config *d)
{
	uint64_t limit, total;
	unsigned growth, gc;
	char frac[32], policy[8], backpedal[8] = "always";

	if (sscanf(script, "limit %" SCNu64 " total %" SCNu64 " growth %u gc %u fragmentation %31s "
			   "va %7s", &limit, &total, &growth, &gc, frac, policy) != 6)
		play_die("not a script", script);
	if (result && sscanf(result, "release %*s backpedal %7s", backpedal) != 1)
		play_die("not a result", result);
	d->total = total;
	d->va = play_policy(policy);
	snprintf(params, room,
		 "memory_limit=%" PRIu64 ",growth=%s,garbage_collection=%s,"
		 "fragmentation_fraction=%s,backpedal=%s,retry=false",
		 limit, growth ? "true" : "false", gc ? "true" : "false", frac, backpedal);
	return "bfc";
}

static void do_line(struct player *p, const char *line)
{
	const struct bfc *b = p->m.state;
	uint64_t id = 0, n = 0;
	char op;

	if (sscanf(line, "%c %" SCNu64 " %" SCNu64, &op, &id, &n) < 2 ||
	    (op != 'o' && id > PLAY_MOST))
		play_die("not an operation", line);
	if (op == 'a') {
		p->live[id] = play_alloc(p, id, n, 0) == VC_DONE && p->block[id].size;
		if (p->live[id])
			play_say(p, "a %" PRIx64 " %" PRIu64, p->block[id].addr, p->block[id].size);
		else
			play_say(p, "-");
	} else if (op == 'o') {
		vc_device_set_others(p->m.device, id);
	} else if (p->live[id]) {
		p->m.type->free(&p->m, &p->block[id]);
		p->live[id] = false;
	}
	if (p->operations % 64 == 0)
		play_say(p, "S %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64,
			 p->m.now.allocated, b->peak, p->m.now.reserved, b->allocs, b->largest);
}

static void print_note(struct player *p, void *unused)
{
	(void)unused;
	puts(p->m.note);
}

int main(int argc, char **argv)
{
	static const struct play_rules rules = { begin, do_line };

	if (argc == 4 && !strcmp(argv[1], "-r")) {
		write_script(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "-t")) {
		play_script(&rules, argv[2], print_note, NULL);
		return 0;
	}
	if (argc < 3 || argc % 2 == 0)
		play_die("usage", "play SCRIPT RESULT [SCRIPT RESULT...] | play -r SEED "
				  "OPERATIONS | play -t SCRIPT");
	return play_compare(&rules, argc - 1, argv + 1);
}
