/* SPDX-License-Identifier: Apache-2.0 */
/* largest.h - the largest value that fits, where fitting need not be monotone. */
#pragma once

#include "common/error.h"

struct vc_search {
	uint64_t start;       /* first value tried, in units */
	uint64_t most;        /* never beyond, in units */
	void *arg;
	/* Does this many units fit? Errors end the search. */
	int (*probe)(void *arg, uint64_t units, bool *fits, struct vc_error *err);
	/* (opt) All of these will be asked for; or, unless `surely`, these one after the other if
	 * each turns out as `expect` says. It may get them ready. */
	int (*ahead)(void *arg, const uint64_t *units, size_t n, bool surely, struct vc_error *err);
	bool (*expect)(void *arg, uint64_t units); /* with `ahead`: will it fit? */
	bool only_largest;    /* nobody reads `failing` and `holes`: no probe is made for them */
};

struct vc_found {
	uint64_t largest;     /* that fits; 0: not even one unit does */
	uint64_t failing;     /* the smallest seen that does not; 0: none up to `most` */
	bool holes;           /* failing < largest: fitting is not monotone */
};

/* Doubling, bisection, then the next values and the round ones above the first failure, and some
 * values below what was found. */
int vc_search_run(const struct vc_search *s, struct vc_found *out, struct vc_error *err);
