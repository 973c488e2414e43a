/* SPDX-License-Identifier: Apache-2.0 */
/* budget_say.h - what fit --find budget found, and how it says so. */
#pragma once

#include "commands/budget_share.h"
#include "commands/fit_find.h"
#include "simulator/search/budget_times.h"

enum { VC_BUDGET_TRIED = 32 };

struct vc_budget_find {
	struct vc_fit_on on;
	struct vc_budget b;
	uint64_t peak;            /* that is asked for, context included */
	/* With all of it done in each way: */
	struct vc_kept ran[VC_BUDGET_WAYS];
	struct vc_recording rec[VC_BUDGET_WAYS];
	struct vc_budget_run run[VC_BUDGET_WAYS];
	uint64_t beside, beside_least; /* what is used beyond what the allocator reserves */
	double host_share;        /* bytes of the host's memory for each that is sent there */
	uint8_t *how, *best;
	char grown[256];          /* settings of the allocator with segments that grow; "": as is */
	bool grows, expandable;   /* these are tried; they were chosen */
	bool limited;             /* choices are looked for whose cache is emptied to stay below */
	double emptying;          /* what that adds to a step, in the last replay */
	uint64_t driver;          /* ns in driver calls, of the run in which all is kept */
	bool found;               /* a choice that was played */
	uint64_t used, predicted, host, limit, flushes; /* by it; limit: of its allocator, or 0 */
	double cost, empties;     /* of it; part of it: emptying its cache */
	struct vc_budget_added added; /* by it to a step */
	bool bounded; double bound; /* no choice of these units costs less */
	bool even; double uniform; /* the fewest modules computed twice, evenly spread */
	uint64_t least;           /* that any choice took */
	uint64_t floor;           /* that each needs */
	char floor_in[200];       /* where */
	bool coarse;              /* the units are modules that hold those that were tried first */
	struct vc_budget_try tried[VC_BUDGET_TRIED]; size_t runs; /* dry runs */
	uint64_t share, twice;    /* percent that torch.compile keeps; of layers computed twice */
	size_t replays, enough;
	char command[400];
};

void vc_budget_say(const void *find, size_t card, struct vc_emit *e);
