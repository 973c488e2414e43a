/* SPDX-License-Identifier: Apache-2.0 */
/* budget_added.c - see budget_added.h */
#include "simulator/search/budget_added.h"

#include <math.h>

#include "common/hash.h"
#include "common/vec.h"
#include "simulator/search/budget_times.h"
#include "simulator/time/time.h"
#include "simulator/time/time_speeds.h"

#define BUSY 0.95 /* share of a step; below, the card waits for the program */

/* Kernels that are off by the same share: of one work, or, as they only move bytes, of one kind. */
struct sort { uint64_t key; double ns, doubt; const char *unknown; };

VC_COMPARE(by_key, struct sort, VC_ORDER(x->key, y->key))

/* salt: so that equal texts of two kinds differ. */
static uint64_t key_of(const char *text, uint64_t salt)
{
	return vc_hash_bytes(text, strlen(text)) + salt;
}

static struct sort sort_of(const struct vc_profile *p, const struct vc_beat *b, double sign)
{
	struct sort s = { .ns = sign * b->ns, .doubt = 0.5 };
	struct vc_kernel_work w;

	if (b->kind != VC_OP_KERNEL || !vc_kernel_work_parse(b->work, &w)) {
		s.key = key_of(b->name, b->kind + 1u);
		s.unknown = b->kind == VC_OP_KERNEL ? b->name : NULL;
		return s;
	}
	bool whole = w.flops > 0 || w.kind == VC_WORK_COLLECTIVE || w.kind == VC_WORK_GRAPH;
	struct vc_costs c = vc_speeds_cost(p->speeds, p->card, &w, b->name);

	s.key = whole ? key_of(b->work, 0) : key_of(w.type, w.kind);
	s.doubt = c.ns > 0 ? c.doubt : 0.5;
	if (!vc_kernel_work_is_known(&w) && !vc_speeds_have(p->speeds, p->card, &w, b->name)) {
		s.key = key_of(b->name, 0);
		s.unknown = b->name;
	}
	return s;
}

static void kernels_of(const struct vc_profile *p, double sign, struct sort *at)
{
	for (size_t i = 0; i < p->beats; i++)
		at[i] = sort_of(p, &p->beat[i], sign);
}

/* The sums of each sort, from least to most; what nobody knows of. */
static void add_up(struct sort *at, size_t n, struct vc_budget_added *a)
{
	double unknown = 0, all = 0, most = 0;

	vc_sort(at, n, sizeof(*at), by_key);
	for (size_t i = 0, k; i < n; i = k) {
		double ns = 0;

		for (k = i; k < n && at[k].key == at[i].key; k++)
			ns += at[k].ns;
		double less = ns / (1 + at[i].doubt), more = ns * (1 + at[i].doubt);

		a->ns += ns;
		a->low += fmin(less, more);
		a->high += fmax(less, more);
		all += fabs(ns);
		unknown += at[i].unknown ? fabs(ns) : 0;
		if (at[i].unknown && fabs(ns) > most) {
			most = fabs(ns);
			snprintf(a->unknown, sizeof(a->unknown), "%s", at[i].unknown);
		}
	}
	if (unknown <= VC_TIME_UNKNOWN * all)
		a->unknown[0] = '\0';
}

static int compare(const struct vc_profile *plain, const struct vc_profile *chosen,
		   struct vc_budget_added *a, struct vc_error *err)
{
	size_t n = plain->beats + chosen->beats;
	struct sort *at = calloc(n + 1, sizeof(*at));

	VC_HAVE(at, "the kernels of two runs", err);
	kernels_of(plain, -1, at);
	kernels_of(chosen, 1, at + plain->beats);
	add_up(at, n, a);
	free(at);
	a->step = (double)plain->step_ns;
	a->by = VC_BUDGET_BY_KERNELS;
	if (plain->busy >= BUSY && chosen->busy >= BUSY) {
		double ns = (double)chosen->step_ns - a->step, off = ns - a->ns;

		a->by = VC_BUDGET_BY_STEPS;
		a->ns = ns;
		a->low += fmin(0, off);
		a->high += fmax(0, off);
	}
	return VC_OK;
}

int vc_budget_added(const struct vc_profile *plain, const struct vc_recording *chosen,
		    struct vc_budget_added *out, struct vc_error *err)
{
	struct vc_profile p = { .speeds = plain ? plain->speeds : NULL };
	int r = VC_OK;

	*out = (struct vc_budget_added){ .by = VC_BUDGET_BY_NOTHING };
	if (plain && plain->steps && plain->card)
		r = vc_budget_profile(&p, chosen, err);
	if (r == VC_OK && p.steps && p.card)
		r = compare(plain, &p, out, err);
	vc_profile_fini(&p);
	return r;
}
