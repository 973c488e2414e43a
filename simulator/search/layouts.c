/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.c - what those that were played say about others. */
#include <math.h>

#include "simulator/search/layouts.h"

uint64_t vc_layout_share(const struct vc_layout *l)
{
	return l->at[VC_TP] * l->at[VC_CP] * l->at[VC_PP];
}

bool vc_layout_holds(const struct vc_layout *l, const struct vc_layout *p)
{
	bool all = l->with == p->with;

	for (int i = 0; i < VC_DP; i++)
		all = all && l->at[i] <= p->at[i];
	return all;
}

/* Every sample is spread over at least as many cards, in every way. Experts over more ranks make
 * products larger, so these have to be the same. */
static bool is_spread_more(const struct vc_layout *l, const struct vc_layout *p)
{
	return l->with == p->with && l->at[VC_TP] >= p->at[VC_TP] &&
	       l->at[VC_CP] >= p->at[VC_CP] && l->at[VC_PP] >= p->at[VC_PP] &&
	       l->at[VC_EP] == p->at[VC_EP];
}

/* A pipeline of n stages waits for n - 1 of its micro-batches, of which there are the more, the
 * fewer samples are worked on beside each other. */
static double waits_of(const struct vc_layout *l, const struct vc_layout *p)
{
	double stages = p->at[VC_PP] > 1 ?
			(double)(l->at[VC_PP] - 1) / (double)(p->at[VC_PP] - 1) : 0;

	return p->waits * stages * (double)l->at[VC_DP] / (double)p->at[VC_DP];
}

double vc_layout_least(const struct vc_layout *l, const struct vc_layout *const *played, size_t n)
{
	double least = 0;

	for (size_t i = 0; i < n; i++)
		if (played[i]->own > 0 && is_spread_more(l, played[i]))
			least = fmax(least, played[i]->own * (1 + waits_of(l, played[i])));
	return least;
}
