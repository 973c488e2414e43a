/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - what-if: several such processes on one card.
 *
 * worst: the others hold what a caching allocator holds once it has seen its own peak, which is the
 * steady state of such processes. aligned: they are always where this one is. optimal: they need
 * only what is live, and peak when this one does not (the mean). */

#include "simulator/replay/transform.h"
#include "simulator/rewrite/rewrite.h"

enum mode { WORST, ALIGNED, OPTIMAL };
struct config { uint64_t processes, each, context, mode; };

#define AT(f) offsetof(struct config, f)
static const struct vc_param params[] = {
	{ "processes", VC_P_UINT, AT(processes), "2", "on the card, this one included", NULL },
	VC_PARAM_ALIAS("n", "processes"),
	{ "each", VC_P_SIZE, AT(each), "0", "memory each of the others reserves (0: as this one)",
	  NULL },
	{ "context", VC_P_SIZE, AT(context), "450MiB",
	  "of each of the others, beside its allocator", NULL },
	{ "mode", VC_P_ENUM, AT(mode), "worst", "when the others peak", "worst,aligned,optimal" },
	VC_PARAM_END };

static int share_open(struct vc_source *s, struct vc_error *err)
{
	const struct config *c = s->config;

	return c->processes ? VC_OK :
		      vc_fail(err, VC_EUSAGE, "share: processes counts this one, it starts at 1");
}

/* Live requested bytes after each event of the device. */
static uint64_t live_after(const struct vc_whole *w, size_t i, uint64_t live, const uint64_t *size)
{
	const struct vc_event *e = &w->in[i];

	if (e->device != w->device)
		return live;
	if (e->kind == VC_EV_ALLOC || (e->kind == VC_EV_HEAP_BLOCK && (e->flags & VC_EVF_LIVE) &&
				       !(e->flags & VC_EVF_FINAL)))
		return live + e->size;
	return e->kind == VC_EV_FREE && e->id < w->next_id ? live - size[e->id] : live;
}

/* Bytes of segments after each event of the device, as recorded: what such a process holds. */
static uint64_t reserved_after(const struct vc_whole *w, size_t i, uint64_t reserved)
{
	const struct vc_event *e = &w->in[i];

	if (e->device != w->device)
		return reserved;
	switch (e->kind) {
	case VC_EV_SEGMENT_ALLOC: case VC_EV_SEGMENT_MAP:
	case VC_EV_PAGES_IN:
		return reserved + e->size;
	case VC_EV_SEGMENT_FREE: case VC_EV_SEGMENT_UNMAP: case VC_EV_PAGES_OUT:
		return reserved - (e->size < reserved ? e->size : reserved);
	case VC_EV_HEAP_SEGMENT: return e->flags & VC_EVF_FINAL ? reserved : reserved + e->size;
	default: return reserved;
	}
}

struct needs { uint64_t *size, live, reserved, peak, top; double mean; };

/* What one process has at its fullest and on average. Without segments (another transform changed
 * the requests): what is live. */
static int read_needs(const struct vc_whole *w, struct needs *n, struct vc_error *err)
{
	n->size = calloc(w->next_id + 1, sizeof(*n->size));
	VC_HAVE(n->size, "block sizes", err);
	for (size_t i = 0; i < w->n; i++) {
		if (w->in[i].kind == VC_EV_ALLOC || w->in[i].kind == VC_EV_HEAP_BLOCK)
			n->size[w->in[i].id] = w->in[i].size;
		n->live = live_after(w, i, n->live, n->size);
		n->reserved = reserved_after(w, i, n->reserved);
		n->peak = n->live > n->peak ? n->live : n->peak;
		n->top = n->reserved > n->top ? n->reserved : n->top;
		n->mean += (double)n->live / (double)w->n;
	}
	n->live = n->reserved = 0;
	return VC_OK;
}

static int rewrite(struct vc_source *s, struct vc_whole *w, struct vc_error *err)
{
	const struct config *c = s->config;
	struct needs n = { 0 };
	uint64_t said = 0;
	int r = read_needs(w, &n, err);

	for (size_t i = 0; r == VC_OK && i < w->n; i++) {
		n.live = live_after(w, i, n.live, n.size);
		n.reserved = reserved_after(w, i, n.reserved);
		uint64_t worst = n.top > n.peak ? n.top : n.peak,
			 aligned = n.top > n.peak ? n.reserved : n.live;
		uint64_t now = c->each            ? c->each :
			       c->mode == WORST   ? worst :
			       c->mode == ALIGNED ? aligned :
						    (uint64_t)n.mean;
		uint64_t others = (c->processes - 1) * (now + c->context);
		uint64_t off = others > said ? others - said : said - others;

		if (w->in[i].kind < VC_EV_HEAP_SEGMENT && (off >= 2u << 20)) {
			struct vc_event e = vc_event_like(&w->in[i], VC_EV_OTHERS, 0, others);
			said = others;
			r = vc_whole_put(w, &e, 1, err);
		}
		if (r == VC_OK)
			r = vc_whole_put(w, &w->in[i], 1, err);
	}
	free(n.size);
	return r;
}

const struct vc_source_type vc_transform_share = {
	.name = "share", .summary = "several such processes on one card",
	.params = params, .config_size = sizeof(struct config),
	/* exact: what the others hold is what the parameters say they hold */
	.margin = &(const struct vc_margin){ 0 },
	.open = share_open,
	VC_WHOLE(rewrite),
};
