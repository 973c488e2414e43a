/* SPDX-License-Identifier: Apache-2.0 */
/* recompute_words.c - see recompute_words.h */
#include "simulator/search/recompute_words.h"

#include "common/site.h"

enum { ROWS = 24 }; /* of the table for people; JSON has all of them */

/* "+8.6 %" of a step, or "12.5 % of the forward pass" where no kernels were recorded. */
static const char *time_text(const struct vc_layer_costs *c, double ns, char *buf, size_t n)
{
	char t[32];

	if (c->step_ns > 0)
		snprintf(buf, n, "%s (+%.1f %%)", vc_ns_text((uint64_t)(ns + 0.5), t),
			 100 * ns / c->step_ns);
	else
		snprintf(buf, n, "%.0f %% of the layers", 100 * ns);
	return buf;
}

static const char *list_of(const struct vc_recompute *p)
{
	return p->change[0] ? strchr(p->change, ':') + 1 : "nothing";
}

static void say_time(struct vc_emit *e, const struct vc_layer_costs *c, double ns)
{
	bool known = c->step_ns > 0;

	vc_emit_ns(vc_emit_known(e, known), "extra_ns", NULL, (uint64_t)(ns + 0.5));
	vc_emit_real(e, "extra_share", NULL, known ? round(1e5 * ns / c->step_ns) / 1e5 : NAN);
	if (!known)
		vc_emit_real(e, "layers_share", NULL, round(1e5 * ns) / 1e5);
}

static void say_point(struct vc_emit *e, const char *key, const struct vc_recompute_search *q,
		      size_t i)
{
	const struct vc_recompute *p = i == SIZE_MAX ? NULL : &q->at[i];

	if (!p) {
		vc_emit_null(e, key, NULL);
		return;
	}
	vc_emit_object(e, key, NULL);
	vc_emit_text(e, "change", NULL, p->change);
	vc_emit_uint(e, "layers", NULL, p->layers);
	vc_emit_text(e, "kind", NULL, p->kind == VC_RECOMPUTE_UNIFORM ? "uniform" :
		     p->kind == VC_RECOMPUTE_SOLVED ? "solved" : "none");
	say_time(e, &q->costs, p->ns);
	vc_emit_uint(e, "peak_reserved", NULL, p->reserved);
	vc_emit_uint(e, "used", NULL, p->used);
	if (p->open) {
		vc_emit_uint(e, "used_low", NULL, p->low);
		vc_emit_uint(e, "used_high", NULL, p->high);
	}
	vc_emit_text(e, "verdict", NULL, vc_verdict_name(p->verdict));
	vc_emit_bool(e, "front", NULL, p->front);
	vc_emit_end(e);
}

/* ---- for people ---- */

static void say_layers(struct vc_emit *e, const struct vc_recompute_search *q,
		       const struct vc_meta *m)
{
	const struct vc_layer_costs *c = &q->costs;
	char site[160] = "", kept[32], t[80];
	double ns = 0;

	for (size_t i = 0; i < c->n; i++)
		ns += c->at[i].ns;
	if (c->n && c->at[0].frame)
		vc_site_text(m, c->at[0].frame, site, sizeof(site));
	vc_emit_line(e, "%zu layers%s%s keep %s for their backward passes", c->n,
		     site[0] ? " at " : "", site, vc_bytes_text(c->total, kept));
	if (c->step_ns > 0)
		vc_emit_line(e, "  to compute all of them twice takes %s of a step",
			     time_text(c, ns, t, sizeof(t)));
	else
		vc_emit_line(e, "  times are not known (%s): they are shares of the layers' "
			     "forward passes, by the bytes that they ask for",
			     c->why[0] ? c->why : "no kernels were recorded");
	vc_emit_uint(e, "layers", NULL, c->n);
	vc_emit_uint(e, "kept", NULL, c->total);
	vc_emit_ns(vc_emit_known(e, c->step_ns > 0), "step_ns", NULL, (uint64_t)(c->step_ns + 0.5));
	vc_emit_uint(e, "replays", NULL, q->replays);
}

static void say_front(struct vc_emit *e, const struct vc_recompute_search *q)
{
	size_t front = 0, shown = 0;
	char r[32], u[32], t[80];

	for (size_t i = 0; i < q->n; i++)
		front += q->at[i].front;
	vc_emit_line(e, " ");
	vc_emit_line(e, "Less memory for more time:");
	vc_emit_line(e, "  %12s %12s  %-22s %-8s %s", "reserved", "used", "time", "", "computed "
		     "twice");
	for (size_t i = 0, k = 0; i < q->n; i++) {
		const struct vc_recompute *p = &q->at[i];

		if (!p->front)
			continue;
		k++;
		if (k > 1 && i != q->best && i != q->sure && front > ROWS &&
		    k * ROWS / front == shown && k != front)
			continue;
		shown = k * ROWS / front;
		const char *mark = i == q->sure ? "  <- surely" :
				   i == q->best ? "  <- best estimate" : "";
		vc_emit_line(e, "  %12s %12s  %-22s %-8s %s%s", vc_bytes_text(p->reserved, r),
			     vc_bytes_text(p->used, u),
			     p->layers ? time_text(&q->costs, p->ns, t, sizeof(t)) : "-",
			     vc_verdict_name(p->verdict), list_of(p), mark);
	}
	vc_emit_array(e, "front", NULL);
	for (size_t i = 0; i < q->n; i++)
		if (q->at[i].front)
			say_point(e, NULL, q, i);
	vc_emit_end(e);
}

static void say_one(struct vc_emit *e, const char *what, const struct vc_recompute_search *q,
		    size_t i)
{
	const struct vc_recompute *p = &q->at[i];
	char u[32], low[32], high[32], of[32], t[80];

	if (!p->layers) {
		vc_emit_line(e, "  it fits as it is: %s of %s used", vc_bytes_text(p->used, u),
			     vc_bytes_text(q->plan.capacity, of));
		return;
	}
	vc_emit_line(e, "  %-14s %s: %zu of %zu layers, %s, %s of %s used%s%s%s%s%s", what,
		     list_of(p), p->layers, q->costs.n,
		     time_text(&q->costs, p->ns, t, sizeof(t)),
		     vc_bytes_text(p->used, u), vc_bytes_text(q->plan.capacity, of),
		     p->open ? " (" : "", p->open ? vc_bytes_text(p->low, low) : "",
		     p->open ? " .. " : "", p->open ? vc_bytes_text(p->high, high) : "",
		     p->open ? ")" : "");
}

static void say_choices(struct vc_emit *e, const struct vc_recompute_search *q)
{
	char u[32];

	if (q->best == SIZE_MAX && q->least != SIZE_MAX)
		vc_emit_line(e, "  nothing fits: %s still needs %s",
			     q->at[q->least].change[0] ? list_of(&q->at[q->least]) :
							 "no choice saves anything, and it",
			     vc_bytes_text(q->at[q->least].used, u));
	if (q->best != SIZE_MAX)
		say_one(e, "best estimate", q, q->best);
	if (q->sure != SIZE_MAX && q->sure != q->best)
		say_one(e, "surely", q, q->sure);
	if (q->best != SIZE_MAX && q->sure == SIZE_MAX)
		vc_emit_line(e, "  no choice fits with the upper end of its interval");
	if (q->uniform != SIZE_MAX && q->uniform != q->best)
		say_one(e, "best uniform", q, q->uniform);
	if (q->uniform == SIZE_MAX && q->best != SIZE_MAX)
		vc_emit_line(e, "  no uniform choice (every or each n-th layer) fits");
	say_point(e, "best", q, q->best);
	say_point(e, "sure", q, q->sure);
	say_point(e, "uniform", q, q->uniform);
	say_point(e, "least", q, q->least);
}

/* ---- to paste ---- */

/* Share of what layers keep that stays with this choice: what the partitioner of torch.compile is
 * told as its budget. */
static double budget_of(const struct vc_layer_costs *c, const struct vc_recompute *p)
{
	uint64_t gone = 0;

	for (size_t i = 0; i < c->n; i++)
		gone += p->take[i] ? c->at[i].kept : 0;
	return c->total ? 1 - (double)gone / (double)c->total : 1;
}

static void set_text(const struct vc_layer_costs *c, const struct vc_recompute *p, char *buf,
		     size_t n)
{
	size_t at = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < c->n && at < n; i++) {
		size_t to = i;

		while (p->take[i] && to + 1 < c->n && p->take[to + 1])
			to++;
		if (p->take[i] && to > i + 1)
			at += (size_t)snprintf(buf + at, n - at, "%s*range(%zu, %zu)",
					       at ? ", " : "", i, to + 1);
		else if (p->take[i])
			at += (size_t)snprintf(buf + at, n - at, to > i ? "%s%zu, %zu" : "%s%zu",
					       at ? ", " : "", i, to);
		i = to;
	}
}

char *vc_recompute_code(const struct vc_recompute_search *q, const struct vc_meta *m, size_t i,
			char *code, size_t n)
{
	const struct vc_recompute *p = &q->at[i];
	const uint32_t frame = q->costs.at[0].frame;
	const uint32_t caller = frame && frame < m->frames ? vc_site_shown(m,
							       m->frame[frame].parent) : 0;
	char set[1024], layer[160] = "", loop[160] = "";

	set_text(&q->costs, p, set, sizeof(set));
	if (frame)
		vc_site_text(m, frame, layer, sizeof(layer));
	if (caller)
		vc_site_text(m, caller, loop, sizeof(loop));
	snprintf(code, n,
		 "from torch.utils.checkpoint import checkpoint\n"
		 "TWICE = {%s}  # of %zu layers, in the order of the forward pass\n"
		 "for i, layer in enumerate(layers):  # %s%s\n"
		 "    x = checkpoint(layer, x, use_reentrant=False) if i in TWICE else layer(x)\n"
		 "# or from outside (FSDP, DDP); Layer: the class of %s\n"
		 "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import "
		 "apply_activation_checkpointing\n"
		 "twice = [m for i, m in enumerate(m for m in model.modules() if isinstance(m, "
		 "Layer)) if i in TWICE]\n"
		 "apply_activation_checkpointing(model, check_fn=lambda m: any(m is t for t in "
		 "twice))\n"
		 "# or, with torch.compile, which then chooses operations by itself\n"
		 "torch._functorch.config.activation_memory_budget = %.2f",
		 set, q->costs.n, loop[0] ? "the loop at " : "the loop over them", loop,
		 layer[0] ? layer : "the layers", budget_of(&q->costs, p));
	return code;
}

static void say_code(struct vc_emit *e, const struct vc_recompute_search *q,
		     const struct vc_meta *m, size_t i)
{
	char code[3072];

	vc_recompute_code(q, m, i, code, sizeof(code));
	vc_emit_text(e, "code", NULL, code);
	vc_emit_line(e, " ");
	vc_emit_line(e, "To paste, for %s:", list_of(&q->at[i]));
	for (const char *c = code; *c;) {
		size_t n = strcspn(c, "\n");
		vc_emit_line(e, "  %.*s", (int)n, c);
		c += n + (c[n] == '\n');
	}
}

static void say_proofs(struct vc_emit *e, const struct vc_recompute_search *q,
		       const struct vc_recompute_proof *proof, size_t n)
{
	char r[32];

	vc_emit_array(e, "proof", NULL);
	for (size_t i = 0; i < n; i++) {
		vc_emit_object(e, NULL, NULL);
		vc_emit_text(e, "change", NULL, q->at[proof[i].at].change);
		vc_emit_bool(e, "fits", NULL, proof[i].ran);
		vc_emit_uint(e, "peak_reserved", NULL, proof[i].reserved);
		vc_emit_bool(e, "inside", NULL, proof[i].inside);
		vc_emit_end(e);
	}
	vc_emit_end(e);
	for (size_t i = 0; i < n; i++)
		vc_emit_line(e, "  %s, really done in a dry run: %s, %s reserved%s",
			     list_of(&q->at[proof[i].at]), proof[i].ran ? "fits" :
			     "runs out of memory", vc_bytes_text(proof[i].reserved, r),
			     !proof[i].ran ? "" : proof[i].inside ? ", inside the interval" :
			     ", outside the interval");
}

size_t vc_recompute_advised(const struct vc_recompute_search *q,
			    const struct vc_recompute_proof *proof, size_t proofs)
{
	for (size_t i = 0; i < proofs; i++)
		if (proof[i].ran)
			return proof[i].at;
	return proofs ? SIZE_MAX : q->sure != SIZE_MAX ? q->sure : q->best;
}

void vc_recompute_say(struct vc_emit *e, const struct vc_recompute_search *q,
		      const struct vc_meta *m, const struct vc_recompute_proof *proof,
		      size_t proofs)
{
	size_t best = vc_recompute_advised(q, proof, proofs);

	vc_emit_text(e, "card", NULL, q->plan.device ? q->plan.device : "");
	vc_emit_line(e, "%s", q->plan.card ? q->plan.card->title : "the given capacity");
	say_layers(e, q, m);
	say_choices(e, q);
	say_proofs(e, q, proof, proofs);
	say_front(e, q);
	if (best != SIZE_MAX && q->at[best].layers)
		say_code(e, q, m, best);
	else
		vc_emit_null(e, "code", NULL);
}

/* ---- for the hook ---- */

static bool same_site(const struct vc_layer_cost *x, const struct vc_layer_cost *y,
		      const struct vc_meta *m)
{
	return x->low == y->low && x->high == y->high &&
	       m->frame[x->frame].file == m->frame[y->frame].file;
}

/* A site of many layers, which no layer before k has; the last iteration of a loop reaches beyond
 * it. */
static bool is_new_site(const struct vc_layer_costs *c, const struct vc_meta *m, size_t k)
{
	size_t alike = 0;

	for (size_t j = 0; j < c->n; j++) {
		bool same = same_site(&c->at[j], &c->at[k], m);

		if (same && j < k)
			return false;
		alike += same;
	}
	return 4 * alike >= c->n;
}

static void put_spec(struct vc_emit *e, const struct vc_layer_costs *c, const struct vc_meta *m,
		     const bool *take)
{
	vc_emit_object(e, NULL, NULL);
	vc_emit_array(e, "take", NULL);
	for (size_t k = 0; k < c->n; k++)
		if (take[k])
			vc_emit_uint(e, NULL, NULL, k);
	vc_emit_end(e);
	vc_emit_uint(e, "of", NULL, c->n);
	vc_emit_array(e, "sites", NULL);
	for (size_t k = 0; k < c->n; k++)
		if (is_new_site(c, m, k)) {
			vc_emit_array(e, NULL, NULL);
			vc_emit_text(e, NULL, NULL, m->string[m->frame[c->at[k].frame].file]);
			vc_emit_uint(e, NULL, NULL, c->at[k].low);
			vc_emit_uint(e, NULL, NULL, c->at[k].high);
			vc_emit_end(e);
		}
	vc_emit_end(e);
	vc_emit_end(e);
}

bool vc_recompute_spec_of(const struct vc_layer_costs *c, const struct vc_meta *m, const bool *take,
			  char *buf, size_t n)
{
	bool known = c->named;
	struct vc_emit *e = NULL;
	char *text = NULL;
	size_t length = n;

	for (size_t k = 0; k < c->n; k++)
		known = known && c->at[k].frame && c->at[k].frame < m->frames;
	if (known)
		e = vc_emit_file(NULL, VC_EMIT_JSONL, NULL);
	if (e) {
		put_spec(e, c, m, take);
		text = vc_emit_take(e, &length, NULL);
	}
	if (text && length < n)
		memcpy(buf, text, length + 1);
	free(text);
	return text && length < n;
}

bool vc_recompute_spec(const struct vc_recompute_search *q, const struct vc_meta *m, size_t i,
		       char *buf, size_t n)
{
	const struct vc_recompute *p = &q->at[i];

	return p->layers && p->alone && vc_recompute_spec_of(&q->costs, m, p->take, buf, n);
}
