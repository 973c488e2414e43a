/* SPDX-License-Identifier: Apache-2.0 */
/* time_speeds.h - what kernels took on one card, measured, against what time_cost.c computes for
 * them: the file of `vramcast probe` and of --speed. */
#pragma once

#include "common/io.h"
#include "simulator/time/time_cost.h"
#include "simulator/time/time_profile.h"

/* Launches of one kernel, or of every kernel of one kind, that take about as long. */
struct vc_speed_row {
	uint64_t name; /* vc_kernel_token(); 0: every kernel of that kind */
	enum vc_work_kind kind;
	char type[VC_WORK_TYPE];
	int size;      /* power of two of the computed ns */
	double ratio;  /* measured by computed */
	double doubt;  /* share by which single ones differ from that */
	unsigned launches;
};

struct vc_speeds {
	const struct vc_card *card; /* NULL: nothing was measured */
	struct vc_speed_row *row;
	size_t n;
};

/* What a kernel takes: as measured on that card, else as computed. s may be NULL. */
struct vc_costs vc_speeds_cost(const struct vc_speeds *s, const struct vc_card *c,
			      const struct vc_kernel_work *w, const char *name);
/* Whether that kernel, or one like it, was measured. */
bool vc_speeds_have(const struct vc_speeds *s, const struct vc_card *c,
		    const struct vc_kernel_work *w, const char *name);

/* One step of a program on a card, and the same step on the null GPU. *matched: share of the card's
 * kernel time that matches. Errors: VC_ENOMEM. */
int vc_speeds_learn(struct vc_speeds *s, const struct vc_profile *real,
		    const struct vc_profile *dry, double *matched, struct vc_error *err);

int vc_speeds_write(const struct vc_speeds *s, const char *path, struct vc_error *err);
int vc_speeds_read(struct vc_speeds *s, const char *path, struct vc_error *err);
void vc_speeds_fini(struct vc_speeds *s);
