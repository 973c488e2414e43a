/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_case.c - which program, which release, and what is changed: all from one seed. */
#include "whatif.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const change_name[CHANGES] = { "capacity", "settings", "both" };
const unsigned cut_percent[CUTS] = { 0, 35, 60, 80 };

#define CARD (80 * GIB) /* what programs are recorded on */
#define PAGE (2 * MIB)

static void say(char *to, size_t cap, const char *name, uint64_t value)
{
	snprintf(to, cap, "%s:%" PRIu64, name, value);
}

/* Some settings that the release knows; `kind` gets their name. */
static void some_settings(struct dice *d, unsigned minor, struct settings *s, char *kind,
			  size_t cap)
{
	static const unsigned split[] = { 32, 64, 128, 256, 512 };
	unsigned which = (unsigned)dice_below(d, 100);

	s->percent = 0;
	if (which < 20) {
		say(s->conf, sizeof(s->conf), "max_split_size_mb", split[dice_below(d, 5)]);
		snprintf(kind, cap, "split");
	} else if (which < 38) {
		say(s->conf, sizeof(s->conf), "max_split_size_mb", 100000);
		snprintf(kind, cap, "no-effect");
	} else if (which < 63) {
		say(s->conf, sizeof(s->conf), "roundup_power2_divisions", 2u << dice_below(d, 3));
		snprintf(kind, cap, "roundup");
	} else if (which < 88 && minor) {
		snprintf(s->conf, sizeof(s->conf), "expandable_segments:True");
		snprintf(kind, cap, "expandable");
	} else {
		s->percent = (unsigned)dice_in(d, 80, 95);
		snprintf(s->conf, sizeof(s->conf), "garbage_collection_threshold:0.%u",
			 (unsigned)dice_in(d, 5, 9));
		snprintf(kind, cap, "gc");
	}
}

static void draw_orders(struct whatif_case *c, struct dice *d)
{
	static const char *const drawn[] = { "mix 1", "mix 2", "mix 3", "mix 4", "mix 5", "mix 6" };
	static const char *const other[] = { "up", "dec", "mix", "inc" };
	const char *all[] = { "window", "up", "dec", "mix", drawn[dice_below(d, 6)] };
	const char *first = dice_percent(d, 65) ? "window" : other[dice_below(d, 4)];
	size_t n = 0;

	c->order[n++] = first;
	for (size_t k = 0; k < ORDERS && n < ORDERS; k++)
		if (strcmp(all[k], first))
			c->order[n++] = all[k];
}

static enum family draw_family(struct dice *d)
{
	uint64_t x = dice_below(d, 100);

	return x < 60 ? FAMILY_TRAIN : x < 75 ? FAMILY_INFER : x < 90 ? FAMILY_WALK : FAMILY_PHASES;
}

static void draw_change(struct whatif_case *c, struct dice *d)
{
	uint64_t x = dice_below(d, 100);
	bool plain = !c->recorded.conf[0];

	c->change = x < 40 ? CHANGE_CAPACITY : x < 80 ? CHANGE_SETTINGS : CHANGE_BOTH;
	c->changed = c->recorded;
	snprintf(c->kind, sizeof(c->kind), "capacity");
	if (c->change == CHANGE_CAPACITY)
		return;
	if (!plain && dice_percent(d, 60)) {
		c->changed.conf[0] = '\0';
		snprintf(c->kind, sizeof(c->kind), "default");
		return;
	}
	do
		some_settings(d, c->minor, &c->changed, c->kind, sizeof(c->kind));
	while (!strcmp(c->changed.conf, c->recorded.conf));
	if (c->recorded.percent) /* what the recording itself says of the fraction stays */
		c->changed.percent = c->recorded.percent;
	/* Without a limit nothing would ever be collected. */
	if (c->changed.percent && c->change == CHANGE_SETTINGS)
		c->change = CHANGE_BOTH;
}

void case_draw(struct whatif_case *c, const struct whatif *w, uint64_t seed)
{
	struct dice dice = { seed ^ 0x76726d63617374ull }, *d = &dice;
	char kind[32];

	dice_next(d);
	*c = (struct whatif_case){ .seed = seed, .version = w->version[seed % w->versions] };
	c->minor = (unsigned)strtoul(c->version + 2, NULL, 10);
	c->family = draw_family(d);
	c->cut = dice_percent(d, 40) ? 0 : cut_percent[1 + dice_below(d, CUTS - 1)];
	c->sites = dice_percent(d, 75);
	c->marks = dice_percent(d, 40) && !c->cut;
	draw_orders(c, d);
	c->recorded.total = CARD;
	if (dice_percent(d, 20))
		some_settings(d, c->minor, &c->recorded, kind, sizeof(kind));
	draw_change(c, d);
}

void case_capacity(struct whatif_case *c, const struct digest *r, unsigned tries)
{
	struct dice dice = { c->seed * 31 + 7 }, *d = &dice;
	uint64_t low = r->allocated, high = r->reserved, x = dice_below(d, 100), bytes;
	bool page = dice_percent(d, 70);

	if (c->change == CHANGE_SETTINGS)
		return;
	if (x < 15)
		bytes = high - PAGE;
	else if (x < 27)
		bytes = dice_in(d, high, high + high / 20);
	else if (x < 50)
		bytes = dice_in(d, high - (high - low) / 4, high);
	else
		bytes = dice_in(d, low, high);
	while (tries-- && bytes < high)
		bytes = high - (high - bytes) / 2;
	if (page)
		bytes = (bytes + PAGE - 1) / PAGE * PAGE;
	if (c->changed.percent)
		bytes = bytes / c->changed.percent * 100;
	c->changed.total = bytes;
}

void case_options(const struct whatif_case *c, char *to, size_t cap)
{
	size_t n = 0;

	to[0] = '\0';
	if (strcmp(c->changed.conf, c->recorded.conf))
		n += (size_t)snprintf(to + n, cap - n, " --conf %s",
				      c->changed.conf[0] ? c->changed.conf : "''");
	if (c->changed.total != c->recorded.total)
		n += (size_t)snprintf(to + n, cap - n, " --capacity %" PRIu64, c->changed.total);
	if (c->changed.percent != c->recorded.percent)
		snprintf(to + n, cap - n, " --fraction 0.%02u", c->changed.percent);
}
