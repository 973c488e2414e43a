/* SPDX-License-Identifier: Apache-2.0 */
/* budget_say.c - see budget_say.h */
#include "commands/budget_say.h"

#include "commands/budget_code.h"
#include "commands/budget_file.h"

static size_t taken(const struct vc_budget_find *f, enum vc_budget_do way)
{
	return f->found ? vc_budget_count(&f->b, f->best, way) : 0;
}

static const char *cost_text(const struct vc_budget_find *f, double cost, char text[32])
{
	if (f->b.timed)
		snprintf(text, 32, "%.3g ms", cost / 1e6);
	else
		vc_bytes_text((uint64_t)cost, text);
	return text;
}

static void say_conf(struct vc_emit *e, const struct vc_budget_find *f)
{
	if (f->expandable)
		vc_emit_line(e, "its allocator has PYTORCH_CUDA_ALLOC_CONF=" VC_BUDGET_CONF);
}

/* Of the search's costs: how much less another choice could cost. */
static double gap_of(const struct vc_budget_find *f)
{
	return f->cost > f->bound ? 100 * (f->cost - f->bound) / f->cost : 0;
}

/* What it adds to a step. */
static void say_added(struct vc_emit *e, const struct vc_budget_find *f)
{
	const struct vc_budget_added *a = &f->added;

	if (a->by == VC_BUDGET_BY_NOTHING)
		vc_emit_line(e, "what it adds to a step is not known: no kernels are");
	else if (a->unknown[0])
		vc_emit_line(e, "what it adds to a step is not known: nothing is of the kernel %s",
			     a->unknown);
	else
		vc_emit_line(e, "%.3g ms a step more (%.3g .. %.3g), %.1f %%%s", a->ns / 1e6,
			     a->low / 1e6, a->high / 1e6, 100 * a->ns / a->step,
			     a->by == VC_BUDGET_BY_KERNELS ? ", by its kernels alone: the card "
							     "waits for the program" : "");
}

/* What the search counted, which knows no others than these modules. */
static void say_counted(struct vc_emit *e, const struct vc_budget_find *f)
{
	char cost[32], least[32], even[32];

	vc_emit_line(e, "  counted for each module: %s%s%s", cost_text(f, f->cost, cost),
		     f->b.timed ? "" : ", of what they write",
		     f->b.unproven ? " (not all choices compared)" : "");
	if (f->bounded)
		vc_emit_line(e, "  no choice of these counts less than %s: a gap of %.2g %%",
			     cost_text(f, f->bound, least), gap_of(f));
	if (f->even && f->b.timed)
		vc_emit_line(e, "  the fewest computed twice, evenly spread, count %s",
			     cost_text(f, f->uniform, even));
}

static void say_ways(struct vc_emit *e, const struct vc_budget_find *f)
{
	static const char *const words[VC_BUDGET_WAYS] = {
		NULL, "computed twice", "computed twice but for products",
		"kept in lower precision", "sent to the host",
		"computed twice, and what they are called with sent to the host" };
	char used[32], said[32], text[32];

	for (int way = VC_BUDGET_RECOMPUTE; way < VC_BUDGET_WAYS; way++)
		if (taken(f, way))
			vc_emit_line(e, "%zu of %zu modules %s", taken(f, way), f->b.n, words[way]);
	vc_emit_line(e, "a dry run with that needs %s (%s predicted)%s",
		     vc_bytes_text(f->used, used), vc_bytes_text(f->predicted, said),
		     f->host ? ", and in the host's memory:" : "");
	if (f->host)
		vc_emit_line(e, "  %s, pinned", vc_bytes_text(f->host, text));
	say_added(e, f);
	say_counted(e, f);
	vc_emit_line(e, "  the least of %zu dry runs and %zu replays", f->runs, f->replays);
	say_conf(e, f);
	if (f->limit)
		vc_emit_line(e, "its allocator is limited to %s and empties its cache %" PRIu64
			     " times%s", vc_bytes_text(f->limit, text), f->flushes,
			     f->b.timed ? ", which is in that time" : "");
}

/* What python/budget_hook.py does; which layers are the model's own names. */
static void say_twice(struct vc_emit *e, const struct vc_budget_find *f)
{
	vc_emit_line(e, "  to paste in front of torch.compile, with the layers of the model:");
	vc_emit_line(e, "    from functools import partial");
	vc_emit_line(e, "    from torch.utils.checkpoint import checkpoint");
	vc_emit_line(e, "    for i, layer in enumerate(layers):");
	vc_emit_line(e, "        if (i + 1) * %" PRIu64 " // 100 > i * %" PRIu64 " // 100:",
		     f->twice, f->twice);
	vc_emit_line(e, "            layer.forward = partial(checkpoint, layer.forward,");
	vc_emit_line(e, "                                    use_reentrant=False)");
	vc_emit_line(e, "  (a cache of keys would see each batch twice: turn it off)");
}

static void say_share(struct vc_emit *e, const struct vc_budget_find *f)
{
	char text[32];

	if (f->twice)
		vc_emit_line(e, "%" PRIu64 " %% of the layers computed twice, evenly spread, "
			     "inside of what is compiled", f->twice);
	else
		vc_emit_line(e, "torch.compile may keep %" PRIu64 " %% of what it would", f->share);
	say_conf(e, f);
	vc_emit_line(e, "a dry run with that needs %s", vc_bytes_text(f->used, text));
	say_added(e, f);
	vc_emit_line(e, "  the least of %zu dry runs; others may take less", f->runs);
	if (f->twice) {
		say_twice(e, f);
		return;
	}
	vc_emit_line(e, "  to paste in front of torch.compile:");
	vc_emit_line(e, "    import torch._functorch.config");
	vc_emit_line(e, "    torch._functorch.config.activation_memory_budget = %.2f",
		     (double)f->share / 100);
}

static void say_floor(struct vc_emit *e, const struct vc_budget_find *f)
{
	char text[32];

	vc_emit_line(e, "%s: no choice for whole modules needs less than %s,",
		     f->floor > f->peak ? "proven" : "not proven", vc_bytes_text(f->floor, text));
	vc_emit_line(e, "  which is allocated %s", f->floor_in);
}

static void say_people(struct vc_emit *e, const struct vc_budget_find *f)
{
	char need[32], peak[32], least[32];

	vc_emit_line(e, "as it is it needs %s; asked for: at most %s",
		     vc_bytes_text(f->ran[0].used, need), vc_bytes_text(f->peak, peak));
	if (!f->found) {
		vc_emit_line(e, "no choice was found that stays below; the least that was tried "
			     "needs %s", vc_bytes_text(f->least, least));
		if (f->b.n)
			say_floor(e, f);
	} else if (f->b.compiled && (f->share < 100 || f->twice || f->expandable)) {
		say_share(e, f);
	} else if (taken(f, VC_BUDGET_KEEP) == f->b.n && !f->limit && !f->expandable) {
		vc_emit_line(e, "nothing has to be computed twice");
	} else {
		say_ways(e, f);
		vc_budget_paste(e, &f->b, f->best, f->limit);
	}
}

static void say_costs(struct vc_emit *e, const struct vc_budget_find *f)
{
	const struct vc_budget_added *a = &f->added;
	bool known = a->by != VC_BUDGET_BY_NOTHING && !a->unknown[0];

	vc_emit_text(e, "unit", NULL, f->b.timed ? "ns" : "bytes");
	vc_emit_int(vc_emit_known(e, f->found), "extra", NULL, (int64_t)f->cost);
	vc_emit_int(vc_emit_known(e, known), "added_ns", NULL, (int64_t)a->ns);
	vc_emit_int(vc_emit_known(e, known), "added_low_ns", NULL, (int64_t)a->low);
	vc_emit_int(vc_emit_known(e, known), "added_high_ns", NULL, (int64_t)a->high);
	vc_emit_text(vc_emit_known(e, known), "added_by", NULL,
		     a->by == VC_BUDGET_BY_KERNELS ? "kernels" : "steps");
	vc_emit_text(vc_emit_known(e, a->unknown[0]), "unknown_kernel", NULL, a->unknown);
	vc_emit_uint(vc_emit_known(e, f->bounded), "bound", NULL, (uint64_t)f->bound);
	vc_emit_real(vc_emit_known(e, f->bounded && f->found), "gap", NULL, gap_of(f));
	vc_emit_uint(vc_emit_known(e, f->even), "uniform", NULL, (uint64_t)f->uniform);
}

static void say_unit(struct vc_emit *e, const struct vc_budget_find *f, size_t i)
{
	const struct vc_budget_unit *u = &f->b.at[i];

	vc_emit_object(e, NULL, NULL);
	vc_emit_text(e, "name", NULL, u->name);
	vc_emit_text(e, "do", NULL, vc_budget_word[f->found ? vc_budget_done(&f->b, f->best, i) :
							VC_BUDGET_KEEP]);
	vc_emit_array(e, "ways", NULL);
	for (int way = VC_BUDGET_RECOMPUTE; way < VC_BUDGET_WAYS; way++) {
		if (!f->b.can[way])
			continue;
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "do", NULL, vc_budget_word[way]);
		vc_emit_uint(e, "freed", NULL, (uint64_t)u->freed[way]);
		vc_emit_uint(e, "extra", NULL, (uint64_t)u->cost[way]);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_end(e);
}

void vc_budget_say(const void *find, size_t card, struct vc_emit *e)
{
	const struct vc_budget_find *f = find;

	(void)card;
	vc_emit_uint(e, "peak", NULL, f->peak);
	vc_emit_bool(e, "fits", NULL, f->found);
	vc_emit_uint(e, "needs", NULL, f->ran[VC_BUDGET_KEEP].used);
	vc_emit_uint(e, "least", NULL, f->least);
	vc_emit_uint(vc_emit_known(e, f->b.n), "floor", NULL, f->floor);
	vc_emit_uint(vc_emit_known(e, f->found), "used", NULL, f->used);
	vc_emit_uint(vc_emit_known(e, f->found), "predicted", NULL, f->predicted);
	vc_emit_uint(vc_emit_known(e, f->found), "host", NULL, f->host);
	say_costs(e, f);
	vc_emit_uint(vc_emit_known(e, f->limit), "limit", NULL, f->limit);
	vc_emit_uint(vc_emit_known(e, f->limit), "flushes", NULL, f->flushes);
	vc_emit_text(vc_emit_known(e, f->expandable), "conf", NULL, VC_BUDGET_CONF);
	vc_emit_uint(vc_emit_known(e, f->b.compiled && f->found), "share", NULL, f->share);
	vc_emit_uint(vc_emit_known(e, f->b.compiled && f->found), "twice", NULL, f->twice);
	vc_emit_array(e, "tried", NULL);
	for (size_t i = 0; i < f->runs; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_uint(e, "predicted", NULL, f->tried[i].predicted);
		vc_emit_uint(e, "used", NULL, f->tried[i].used);
		vc_emit_int(e, "extra", NULL, (int64_t)f->tried[i].cost);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	vc_emit_uint(e, "replays", NULL, f->replays);
	vc_emit_array(e, "units", NULL);
	for (size_t i = 0; i < f->b.n; i++)
		say_unit(e, f, i);
	vc_emit_end(e);
	say_people(e, f);
}
