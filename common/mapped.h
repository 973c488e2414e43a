/* SPDX-License-Identifier: Apache-2.0 */
/* mapped.h - arrays of many megabytes, which grow without being copied.
 *
 * No wish for large pages: a virtual machine pays for each that its host has not given it yet, and
 * small ones come from what was used before. */
#pragma once

#include "common/std.h"

/* As vc_vec_grow, for an array that is grown by this function only: its pages are moved, not its
 * bytes, and new room holds zeroes. What is not touched takes no memory. */
bool vc_mapped_grow(void *array, size_t *cap, size_t n, size_t each);
void vc_mapped_free(void *at, size_t cap, size_t each); /* NULL is fine */

/* Whether the array `at` with room for `cap` elements (a size_t) now has room for `n`. */
#define vc_mapped_room(at, cap, n) \
	((n) <= (cap) || vc_mapped_grow(&(at), &(cap), (n), sizeof(*(at))))
