/* SPDX-License-Identifier: Apache-2.0 */
/* reduction.h - the workspace memory that PyTorch's sum over rows asks for, as a formula. */
#pragma once

#include "common/std.h"

struct vc_reduction_card { uint32_t sms, threads_per_sm; };

/* Scratch of summing `rows` rows of `n` contiguous values into n sums (a bias gradient): bytes of
 * the partial sums and of the semaphores. False: the sum needs none, being small. */
bool vc_reduction(uint64_t n, uint64_t rows, const struct vc_reduction_card *card,
		  uint64_t *partial, uint64_t *semaphores);

/* What decides how many blocks share a sum: its rows, what fills the card, or how many values one
 * thread may add. */
enum vc_limit { VC_LIMIT_ROWS, VC_LIMIT_CARD, VC_LIMIT_THREAD };

/* Are these two the workspace of such a sum over some number of rows? Gives the range of rows
 * (least..most, most = UINT64_MAX when the card's size and not the rows set the limit). */
bool vc_reduction_rows(uint64_t n, uint64_t partial, uint64_t semaphores,
		       const struct vc_reduction_card *card, uint64_t *least, uint64_t *most,
		       enum vc_limit *limit);

/* Scratch of batch normalisation over a [rows, n] input: `copies` arrays of n floats per block (4
 * forward, 2 backward). False: none, the input being short. */
bool vc_norm_scratch(uint64_t n, uint64_t rows, unsigned copies, uint64_t *partial,
		     uint64_t *semaphores);

/* Resident threads of one multiprocessor by compute capability (CUDA programming guide). */
uint32_t vc_threads_per_sm(int cc_major, int cc_minor);
