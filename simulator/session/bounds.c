/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c - see bounds.h */
#include "simulator/session/bounds.h"
#include "simulator/replay/transform.h"
#include "simulator/rewrite/warm_start.h"

/* What blocks of 1 to 10 MiB share (kLargeBuffer, c10/core/AllocatorConfig.h): one more or less is
 * needed where other sizes leave other holes. */
enum { SEGMENT = 20 << 20 };

/* What -x TEXT says of itself; a text that is wrong says nothing: the run complains. */
static bool read_use(const char *text, struct vc_transform_use *u)
{
	struct vc_error ignored = { 0 };

	return vc_transform_parse(u, text, &ignored) == VC_OK;
}

/* Does it leave something open that a run with other bounds shows? */
static bool has_bounds(const struct vc_transform_use *u)
{
	return vc_param_find(u->type->params, "bound") != NULL;
}

static bool is_open(const char *text)
{
	struct vc_transform_use u;

	return read_use(text, &u) && has_bounds(&u) && !vc_transform_given(&u, "bound");
}

enum openness { CLOSED, MARGIN, BOUND_CHOSEN, UNKNOWN };

static enum openness openness_of(const struct vc_list *transforms)
{
	enum openness most = CLOSED;

	for (size_t i = 0; i < transforms->n; i++) {
		struct vc_transform_use u;
		const struct vc_margin *m;
		enum openness now;

		if (!read_use(transforms->at[i], &u))
			continue;
		m = vc_transform_margin(&u);
		now = !m ? UNKNOWN :
		      vc_transform_given(&u, "bound") ? BOUND_CHOSEN :
		      has_bounds(&u) || m->down > 0 || m->up > 0 ? MARGIN : CLOSED;
		most = now > most ? now : most;
	}
	return most;
}

bool vc_bounds_wanted(const struct vc_list *transforms)
{
	return openness_of(transforms) == MARGIN;
}

bool vc_bounds_unknown(const struct vc_list *transforms)
{
	return openness_of(transforms) == UNKNOWN;
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
	bool layout = false;

	/* The run that leads to a recording from its middle is rebuilt
	 * (simulator/rewrite/warm_start.h). */
	if (rec->device->has_start && rec->device->start_reserved > VC_THAW_LITTLE) {
		down = 1 - 4.0 / 100;
		up = 1 + 7.0 / 100;
	}
	for (size_t i = 0; i < transforms->n; i++) {
		struct vc_transform_use u;
		const struct vc_margin *m =
			read_use(transforms->at[i], &u) ? vc_transform_margin(&u) : NULL;
		bool blind = m && m->blind > 0 && rec->meta->frames <= 1;

		down *= m ? 1 - (blind ? m->blind : m->down) / 100 : 1;
		up *= m ? 1 + m->up / 100 : 1;
		layout |= m && m->layout;
	}
	out->low = down < 1 ? times(out->low, down, false) : out->low;
	out->high = up > 1 ? times(out->high, up, true) : out->high;
	if (layout) {
		out->low -= out->low > SEGMENT ? SEGMENT : out->low;
		out->high += SEGMENT;
	}
}

void vc_bounds_resized(struct vc_result *out)
{
	out->low = times(out->low, 0.99, false);
	out->high = times(out->high, 1.01, true) + SEGMENT;
	out->low -= out->low > SEGMENT ? SEGMENT : out->low;
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
	VC_HAVE(b->text && b->at, "what the transforms leave open", err);
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
