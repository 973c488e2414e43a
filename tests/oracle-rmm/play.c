/* SPDX-License-Identifier: Apache-2.0 */
/* play.c - operation scripts for the rmm_pool model and what RMM's own source did with them.
 *
 * usage: play SCRIPT RESULT...               replay, compare line by line with the real one
 *        play -r SEED OPERATIONS pool        write a random script
 *
 * A script begins with pool initial BYTES maximum BYTES total BYTES va inc|dec|fit|mix (maximum 0:
 * none). Then: a ID SIZE STREAM allocate, f ID STREAM free on that stream, o BYTES others now use
 * so much. The first a makes the pool. A result begins with release R as 26.10|25.12|25.4|24.12
 * (the model's release). Each operation adds its calls of the device, an allocation a ADDR or -
 * WORDS, and what the pool holds.
 * From 26.6 on the driver replaces cuda_memory_resource, because librmm.so has a CUDA runtime
 * inside. 26.4 does not link so. Not compared: per-thread default streams, alignments above 256
 * bytes, threads. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "simulator/models/rmm.h"
#include "tests/support/play.h"

#define MIB PLAY_MIB

/* ---- a random script ---- */
static uint64_t base[24], style, streams;

static uint64_t some_size(void)
{
	uint64_t p = 256ull << play_dice(20);

	switch (style) {
	case 0: return play_dice(20000);
	case 1: return MIB + play_dice(120 * MIB);
	case 2: return 1 + play_dice(2 * p);
	case 3: return base[play_dice(24)];
	case 4: return p + play_dice(3) * 256 - 256;
	case 5: return MIB - 512 + play_dice(1024);
	default: return play_dice(3) ? base[play_dice(24)] : 1 + play_dice(2 * p);
	}
}

static void header(const char *resource)
{
	static const uint64_t starts[] = { 0, 0, 256, 3 * MIB, 64 * MIB, 300 * MIB + 256,
					   1024 * MIB, 3072 * MIB };
	static const char *const va[] = { "inc", "dec", "fit", "mix" };
	uint64_t initial = play_pick(starts, 8);
	uint64_t maxima[] = { 0, 0, initial + 256, 2 * initial + 64 * MIB, 3000 * MIB + 768 };
	uint64_t totals[] = { initial + 2 * MIB, initial * 2 + 96 * MIB + 777, 6000 * MIB,
			      24576 * MIB };
	uint64_t maximum = play_pick(maxima, 5);

	if (maximum && maximum < initial)
		maximum = initial;
	printf("%s initial %" PRIu64 " maximum %" PRIu64 " total %" PRIu64 " va %s\n", resource,
	       initial, maximum, play_pick(totals, 4), va[play_dice(4)]);
	style = play_dice(7);
	streams = 1 + play_dice(6);
	for (int i = 0; i < 24; i++) {
		uint64_t kinds[] = { 1 + play_dice(5000), 1 + play_dice(3 * MIB),
				     1 + play_dice(initial / 8 + 100), MIB + play_dice(60 * MIB) };

		base[i] = play_pick(kinds, 4);
	}
}

struct open { uint64_t id, stream; };

/* Most blocks go back on their own stream, as those of PyTorch do. */
static void write_free(struct open *live, uint64_t *n, uint64_t i)
{
	uint64_t on = play_dice(10) ? live[i].stream : play_dice(streams);

	printf("f %" PRIu64 " %" PRIu64 "\n", live[i].id, on);
	live[i] = live[--*n];
}

static void write_script(uint64_t seed, uint64_t operations, const char *resource)
{
	struct open *live = malloc((operations + 1) * sizeof(*live));
	uint64_t n = 0, id = 0, grow, now = 0;

	if (!live || operations > PLAY_MOST)
		play_die("more operations than a script holds", "-r");
	play_seed(seed);
	header(resource);
	grow = 52 + play_dice(8);
	for (uint64_t k = 0; k < operations; k++) {
		if (!play_dice(120)) { /* a step ends: nearly everything goes */
			for (; n > play_dice(4) && k < operations; k++)
				write_free(live, &n, n - 1);
			style = play_dice(7);
		} else if (!play_dice(300)) {
			printf("o %" PRIu64 "\n", play_dice(2) ? 0 : play_dice(600 * MIB));
		} else if (n && play_dice(100) >= grow) {
			write_free(live, &n, play_dice(3) ? n - 1 : play_dice(n));
		} else {
			now = play_dice(8) ? now : play_dice(streams);
			live[n++] = (struct open){ ++id, now };
			printf("a %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", id, some_size(), now);
		}
	}
	free(live);
}

/* ---- the model ---- */
static const char *begin(const char *script, const char *result, char *params, size_t room,
			 struct vc_device_config *d)
{
	uint64_t initial, maximum, total;
	char resource[8], policy[8], release[8];

	if (sscanf(script, "%7s initial %" SCNu64 " maximum %" SCNu64 " total %" SCNu64 " va %7s",
		   resource, &initial, &maximum, &total, policy) != 5)
		play_die("not a script", script);
	if (sscanf(result, "release %*s as %7s", release) != 1)
		play_die("not a result", result);
	if (strcmp(resource, "pool"))
		play_die("only of pools", script);
	d->total = total;
	d->va = play_policy(policy);
	snprintf(params, room, "initial_pool_size=%" PRIu64 ",maximum_pool_size=%" PRIu64
		 ",release=%s", initial, maximum, release);
	return "rmm_pool";
}

static void do_line(struct player *p, const char *line)
{
	uint64_t id = 0, n = 0, stream = 0;
	char op;

	if (sscanf(line, "%c %" SCNu64 " %" SCNu64 " %" SCNu64, &op, &id, &n, &stream) < 2 ||
	    (op != 'o' && id > PLAY_MOST))
		play_die("not an operation", line);
	if (op == 'a') {
		if (play_alloc(p, id, n, (uint32_t)stream) == VC_DONE)
			play_say(p, "a %" PRIx64, p->block[id].addr);
		else
			play_say(p, "- %s", p->m.note);
	} else if (op == 'o') {
		vc_device_set_others(p->m.device, id);
	} else if (p->live[id]) {
		p->live[id] = false;
		rmm_pool_free_on(&p->m, &p->block[id], (uint32_t)n);
	}
	if (p->operations % 64 == 0)
		play_say(p, "S %" PRIu64, p->m.now.reserved);
}

int main(int argc, char **argv)
{
	static const struct play_rules rules = { begin, do_line };

	if (argc == 5 && !strcmp(argv[1], "-r")) {
		write_script(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), argv[4]);
		return 0;
	}
	if (argc < 3 || argc % 2 == 0)
		play_die("usage", "play SCRIPT RESULT [SCRIPT RESULT...] | play -r SEED "
				  "OPERATIONS pool");
	return play_compare(&rules, argc - 1, argv + 1);
}
