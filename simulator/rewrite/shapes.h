/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h - shapes of tensors, which a recording does not have, from their sizes and neighbours.
 */
#pragma once

#include "simulator/rewrite/copies.h"
#include "simulator/anatomy/formulas.h"

/* Is the model mostly convolutions, by the call sites of its forward pass? */
bool vc_shapes_convolutional(const struct vc_clone *c, const struct vc_meta *m);

/* Shape of gradient i of n, whose bytes are in order of the backward pass. The vector beside a
 * matrix (bias, scale of the norm behind it) says how many outputs it has. convolutional: kernels
 * count as such, but for those of the last layers, which the backward pass has first. */
struct vc_tensor_shape vc_shapes_guess(const uint64_t *bytes, size_t n, size_t i, unsigned element,
				       bool convolutional);

/* Is block i the partial sums of the gradient asked for before it (Reduce.cuh: at least two
 * blocks of 32 sums for each value, simulator/anatomy/reduction.c), and the next block their
 * semaphores? Both go at once. */
bool vc_shapes_partial_sums(const struct vc_anatomy *a, size_t i);
