/* SPDX-License-Identifier: Apache-2.0 */
/* widths.c - see widths.h
 *
 * A score is by how much a truth lay outside the interval, in units of what the recordings missed
 * of each other. A row holds the largest score of nearly all predictions of each ladder (split
 * conformal prediction in groups: Vovk, Gammerman and Shafer, "Algorithmic learning in a random
 * world", 2005; ladders, not predictions, are exchangeable: Dunn, Wasserman and Ramdas,
 * "Distribution-free prediction sets for two-layer hierarchical models", JASA 118, 2023).
 *
 * Made by: build/tests/calibration -o scores.tsv DIR...; tests/ladders/widths.py scores.tsv */
#include "simulator/predict/widths.h"

enum { PLAIN, ROUNDED, DRAWN, LENGTHS, ONE, KINDS };

static const struct vc_width width[][KINDS] = {
	{ /* from two */
		[PLAIN] = { "two", 0.85, 2.00, 0, 0, 0, 0 },
		[ROUNDED] = { "two, rounded", 1.25, 2.00, 0.025, 0.05, 0, 0 },
		[DRAWN] = { "two, drawn", 0.25, 0.25, 0.1, 0.12, 0.75, 0.5 },
		[LENGTHS] = { "two, lengths", 0.25, 0.25, 0, 0, 0.5, 0.25 },
		[ONE] = { "two, at one", 0.85, 2.00, 0.01, 0.01, 0, 0 },
	},
	{ /* from three and more */
		[PLAIN] = { "three", 0.25, 1.75, 0, 0, 0, 0 },
		[ROUNDED] = { "three, rounded", 0.25, 0.50, 0, 0, 0, 0 },
		[DRAWN] = { "three, drawn", 0.25, 0.25, 0.1, 0.12, 0.75, 0.5 },
		[LENGTHS] = { "three, lengths", 0.25, 0.25, 0, 0, 0.5, 0.25 },
		[ONE] = { "three, at one", 0.25, 1.75, 0.01, 0.01, 0, 0 },
	},
};

bool vc_width_by_data(const struct vc_family_report *r)
{
	return r->drawn || r->lengths || r->noise > 0;
}

const struct vc_width *vc_width_of(const struct vc_family_report *r, bool at_one)
{
	return &width[r->recordings > 2][r->drawn				? DRAWN :
					 r->lengths				? LENGTHS :
					 r->noise > 0				? DRAWN :
					 r->tells > 0 || r->kind[VC_LAW_PADDED] ? ROUNDED :
					 at_one			? ONE : PLAIN];
}
