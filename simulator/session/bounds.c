/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - see bounds.h */
#include "simulator/session/bounds.h"
#include "simulator/rewrite/warm_start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How far the interval of a transform reaches beyond its own bounds, percent of its ends: what it
 * was found to be off by where the change was really made (tests/transforms, docs/what-if.md),
 * and a little more. blind: down, for recordings without call sites, whose layers are guessed and
 * too large. Those that are not here are exact on the recording, or their parameters are the
 * question. */
static const struct margin { const char *name; double down, up, blind;
} margins[] = {
	{ "accumulate", 1, 3, 0 }, { "tail_batch", 1, 3, 0 }, { "mixture", 5, 5, 0 },
	{ "optimizer", 3, 4, 0 },  { "checkpoint", 8, 8, 0 }, { "ddp", 0.5, 0.5, 0 },
	{ "fsdp", 5, 4, 25 },      { "zero", 6, 12, 0 },      { "offload", 17, 13, 0 },
	{ "precision", 10, 8, 0 }, { "lora", 20, 12, 0 },     { "qlora", 30, 20, 0 },
	{ "tp", 30, 30, 0 },       { "pp", 12, 22, 0 },
};

static const struct vc_source_type *transform_of(const char *text, bool *bound)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	char name[64];

	*bound = colon && strstr(colon, "bound=");
	if (n >= sizeof(name))
		return NULL;
	memcpy(name, text, n);
	name[n] = '\0';
	return vc_transform_by_name(name);
}

/* Does -x TEXT leave something open that a run with other bounds shows? */
static bool is_open(const char *text)
{
	bool bound;
	const struct vc_source_type *t = transform_of(text, &bound);

	for (const struct vc_param *p = t && !bound ? t->params : NULL; p && p->name; p++)
		if (!strcmp(p->name, "bound"))
			return true;
	return false;
}

static const struct margin *margin_of(const char *text)
{
	/* Its gathers on streams of their own break the cache up more than is predicted. */
	static const struct margin stage3 = { "zero", 6, 18, 0 };
	bool bound;
	const struct vc_source_type *t = transform_of(text, &bound);

	if (t && !bound && !strcmp(t->name, "zero") && strstr(text, "stage=3"))
		return &stage3;
	for (size_t i = 0; t && !bound && i < sizeof(margins) / sizeof(*margins); i++)
		if (!strcmp(margins[i].name, t->name))
			return &margins[i];
	return NULL;
}

bool vc_bounds_wanted(const struct vc_list *transforms)
{
	bool any = false, bound = false;

	for (size_t i = 0; i < transforms->n && !bound; i++) {
		transform_of(transforms->at[i], &bound);
		any |= is_open(transforms->at[i]) || margin_of(transforms->at[i]);
	}
	return any && !bound;
}

/* To whole pages of the allocator, so that the ends are values that could be. */
static uint64_t times(uint64_t bytes, double factor, bool up)
{
	const uint64_t grain = UINT64_C(2) << 20;
	double x = (double)bytes * factor / (double)grain;
	uint64_t n = (uint64_t)x;

	return (n + (up && (double)n < x)) * grain;
}

void vc_bounds_margins(const struct vc_recording *rec, const struct vc_list *transforms,
		       struct vc_result *out)
{
	double down = 1, up = 1;

	/* The run that leads to a recording from its middle is rebuilt
	 * (simulator/rewrite/warm_start.h). */
	if (rec->device->has_start && rec->device->start_reserved > VC_THAW_LITTLE) {
		down = 1 - 4.0 / 100;
		up = 1 + 7.0 / 100;
	}
	for (size_t i = 0; i < transforms->n; i++) {
		const struct margin *m = margin_of(transforms->at[i]);
		bool blind = m && m->blind > 0 && rec->meta->frames <= 1;
		down *= m ? 1 - (blind ? m->blind : m->down) / 100 : 1;
		up *= m ? 1 + m->up / 100 : 1;
	}
	out->low = down < 1 ? times(out->low, down, false) : out->low;
	out->high = up > 1 ? times(out->high, up, true) : out->high;
}

bool vc_bounds_open(const struct vc_list *transforms)
{
	bool open = false;

	for (size_t i = 0; i < transforms->n; i++)
		open |= is_open(transforms->at[i]);
	return open;
}

int vc_bounds_at(const struct vc_list *transforms, const char *bound, struct vc_bounds *b,
		 struct vc_error *err)
{
	size_t n = transforms->n;

	*b = (struct vc_bounds){ .text = calloc(n, sizeof(*b->text)),
				 .at = calloc(n, sizeof(*b->at)) };
	if (!b->text || !b->at)
		return vc_nomem(err, "what the transforms leave open");
	for (size_t i = 0; i < n; i++) {
		const char *now = transforms->at[i];

		b->at[i] = is_open(now) ? b->text[i] : now;
		if (is_open(now) && snprintf(b->text[i], VC_BOUNDS_TEXT, "%s%sbound=%s", now,
					     strchr(now, ':') ? "," : ":", bound) >= VC_BOUNDS_TEXT)
			return vc_fail(err, VC_EUSAGE, "-x %.40s...: longer than %d characters",
				       now, VC_BOUNDS_TEXT - 16);
	}
	b->transform = (struct vc_list){ b->at, n };
	return VC_OK;
}

void vc_bounds_fini(struct vc_bounds *b)
{
	free(b->text);
	free(b->at);
	*b = (struct vc_bounds){ .text = NULL };
}
