/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_peaks.c - PyTorch's own peaks in a dry run, and between which ends a card's lie.
 *
 * The ends come from what this run met: other orders of fresh addresses, other workspaces of
 * convolutions, sizes that a library only bounds, steps that a scaler may leave out. What is beside
 * PyTorch (contexts, communicators, handles) is no part of them. */
#include "commands/cmd_dryrun.h"
#include "common/emit.h"

/* How far off peaks were for which nothing else was named, of published rows and of a card's own
 * recordings (docs/measurements/published.md): other releases of libraries, other first steps. */
enum { BLOCK = 2 << 20, SEGMENTS = 4 << 20, PER_MILLE = 10 };

/* Of convolutions by rule (docs/measurements/null-gpu.md), where one takes so much: they run one
 * after another, and the cache keeps segments of several. */
enum { BY_RULE = 70, LEFT = 4 };

/* A scaler begins with 2^16 and halves that with each step that it leaves out: one is made by then,
 * and its states are there. */
enum { SCALES = 17 };

static void widen(struct vc_dryrun_peak *p, uint64_t less, uint64_t more)
{
	p->low -= less < p->low ? less : p->low;
	p->high += more;
}

static void both(struct vc_dryrun_peak *p, uint64_t by)
{
	widen(p, by, by);
}

static uint64_t share(uint64_t bytes, uint64_t per_mille)
{
	return bytes / 1000 * per_mille;
}

static void span(struct vc_dryrun_peak *p, uint64_t low, uint64_t high)
{
	if (low)
		vc_lower(&p->low, low);
	vc_raise(&p->high, high);
}

struct vc_dryrun_peaks vc_dryrun_peaks(const struct vc_dryrun_outcome *o)
{
	const struct vc_dryrun_replay *r = &o->replay;
	uint64_t less = 0, more = 0, rule = 0;
	struct vc_dryrun_peaks p = { .known = r->traces && !r->others && !o->pool && !o->refused,
		.allocated = { r->allocated, r->allocated, r->allocated },
		.reserved = { r->reserved, r->reserved, r->reserved } };

	span(&p.allocated, r->least_allocated, r->most_allocated);
	span(&p.reserved, r->least_reserved, r->most_reserved);
	span(&p.reserved, r->least_drawn, r->most_drawn);
	for (size_t i = 0; i < o->n_unknown; i++) {
		const struct vc_null_unknown *u = &o->unknown[i];
		less += o->steps < SCALES ? u->fewer : 0;
		more += u->at_most - u->beside;
		if (!strncmp(u->name, VC_NULL_BY_RULE, sizeof(VC_NULL_BY_RULE) - 1))
			vc_raise(&rule, u->most); /* the largest that one could have taken */
		p.open |= !u->bounded && !u->ranks; /* the verdict tells of ranks */
	}
	both(&p.allocated, share(r->allocated, PER_MILLE) + BLOCK);
	both(&p.reserved, share(r->reserved, PER_MILLE) + SEGMENTS);
	both(&p.allocated, vc_least(share(r->allocated, BY_RULE), rule));
	both(&p.reserved, vc_least(share(r->reserved, BY_RULE), rule * LEFT));
	widen(&p.allocated, less, more);
	widen(&p.reserved, less, more);
	return p;
}

/* None where JSON has none: something that is not known has no bound. */
static const char *ends(const struct vc_dryrun_peak *p, bool open, char out[static 64])
{
	char low[24], high[24];
	snprintf(low, sizeof(low), "%.2f", vc_gib(p->low));
	snprintf(high, sizeof(high), "%.2f", vc_gib(p->high));
	*out = '\0';
	if (!open && strcmp(low, high))
		snprintf(out, 64, " (%s to %s)", low, high);
	return out;
}

void vc_dryrun_say_peaks(const struct vc_dryrun_outcome *o)
{
	struct vc_dryrun_peaks p = vc_dryrun_peaks(o);
	char a[64], r[64];
	if (p.known && p.reserved.bytes)
		fprintf(stderr,
			"  PyTorch allocates %.2f GiB%s and reserves %.2f GiB%s at most%s\n",
			vc_gib(p.allocated.bytes), ends(&p.allocated, p.open, a),
			vc_gib(p.reserved.bytes), ends(&p.reserved, p.open, r),
			p.open ? "; what is not known may change that" : "");
}

static void emit_peak(struct vc_emit *e, const char *key, const struct vc_dryrun_peaks *p,
		      const struct vc_dryrun_peak *of)
{
	if (!p->known) {
		vc_emit_null(e, key, NULL);
		return;
	}
	vc_emit_object(e, key, NULL);
	vc_emit_bytes(e, "peak", NULL, of->bytes);
	vc_emit_bytes(vc_emit_known(e, !p->open), "low", NULL, of->low);
	vc_emit_bytes(vc_emit_known(e, !p->open), "high", NULL, of->high);
	vc_emit_end(e);
}

void vc_dryrun_emit_peaks(struct vc_emit *e, const struct vc_dryrun_outcome *o)
{
	struct vc_dryrun_peaks p = vc_dryrun_peaks(o);
	emit_peak(e, "allocated", &p, &p.allocated);
	emit_peak(e, "reserved", &p, &p.reserved);
}
