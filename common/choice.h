/* SPDX-License-Identifier: Apache-2.0 */
/* choice.h - which of n things in a row are chosen, and which neighbours go together: of layers,
 * those that are computed again. */
#pragma once

#include "common/param.h"

/* Either by a list ("0/2..5/8-11/12..30+2": these one by one, 8 to 11 together, every second one
 * from 12 on), or by the numbers: behind the `first` so many, of these `count` (0: all), each
 * `stride`-th, `every` of them together. */
struct vc_choice {
	uint64_t every, stride, first, count;
	bool last;                /* the last stretch too; of the numbers alone */
	char list[VC_PARAM_TEXT]; /* "": by the numbers */
};

struct vc_chosen { size_t from, to; }; /* [from, to) */

/* Errors: VC_EUSAGE, with what is wrong with the list or the numbers. */
int vc_choice_check(const struct vc_choice *c, struct vc_error *err);

/* Of n things those that a checked choice takes, ascending and disjoint, into out (n of them).
 * Returns how many stretches they are. */
size_t vc_choice_of(const struct vc_choice *c, size_t n, struct vc_chosen *out);

/* The number that a list reaches up to; 0 where there is none. */
size_t vc_choice_reach(const struct vc_choice *c);

/* The list that takes exactly those i of n with take[i], each for itself, as short as ranges make
 * it. False: it is longer than `cap`. */
bool vc_choice_write(const bool *take, size_t n, char *out, size_t cap);
