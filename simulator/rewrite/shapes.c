/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c - see shapes.h */
#include "simulator/rewrite/shapes.h"
#include "common/torch_names.h"

enum { NEAR = 4, SMALLEST_MATRIX = 1024, LONGEST = 4096 }; /* LONGEST: times as long as wide */

bool vc_shapes_convolutional(const struct vc_clone *c, const struct vc_meta *m)
{
	size_t convolutions = 0, linear = 0;
	uint32_t last = UINT32_MAX, name = 0;

	for (size_t i = 0; m && i < c->a.n; i++) {
		uint32_t site = c->w->in[c->a.block[i].event].site;

		if (site != last) /* blocks of one call follow each other */
			name = vc_frame_roles(m, vc_frame_caller(m, site), VC_NAME_PRODUCT);
		last = site;

		convolutions += (name & VC_NAME_CONV) != 0;
		linear += (name & VC_NAME_LINEAR) != 0;
	}
	return convolutions > linear;
}

static size_t times_there(const uint64_t *bytes, size_t n, uint64_t size)
{
	size_t times = 0;

	for (size_t i = 0; i < n; i++)
		times += bytes[i] == size;
	return times;
}

/* Outputs of matrix i: the nearest vector that divides it, of those the backward pass makes
 * around it. The bias of a linear layer comes behind its weight, the norm of a convolution before
 * it. Of a table that is much longer than wide the width is what most of its neighbours have. */
static uint64_t outputs(const uint64_t *bytes, size_t n, size_t i, unsigned element,
			bool convolutional)
{
	uint64_t values = bytes[i] / element, found = 0;
	size_t most = 0;

	for (size_t d = 1; d <= NEAR; d++)
		for (int side = 0; side < 2; side++) {
			bool behind = (side == 0) != convolutional;
			size_t j = behind ? i + d : i - d, times;
			uint64_t v = (behind ? j < n : d <= i) ? bytes[j] / element : 0;

			if (v <= 1 || v * v > values * 64 || v >= values || values % v ||
			    v > 65536 || values / v <= 1 || values / v > v * LONGEST)
				continue;
			if (convolutional || values / v < 8 * v)
				return found ? found : v;
			times = times_there(bytes, n, bytes[j]);
			if (times > most) {
				most = times;
				found = v;
			}
		}
	return found;
}

static bool is_width(const uint64_t *bytes, size_t n, uint64_t values, unsigned element)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] / element == values)
			return true;
	return values == 1 || values == 3;
}

/* Side of the kernel of a convolution with so many values for each output. */
static uint64_t kernel(const uint64_t *bytes, size_t n, uint64_t per_output, unsigned element)
{
	static const uint64_t side[] = { 3, 5, 7 };

	if (is_width(bytes, n, per_output, element) && per_output > 3)
		return 1;
	for (size_t k = 0; k < 3; k++)
		if (per_output % (side[k] * side[k]) == 0 &&
		    is_width(bytes, n, per_output / (side[k] * side[k]), element))
			return side[k];
	return 1;
}

static struct vc_tensor_shape near_square(uint64_t values)
{
	uint64_t side = (uint64_t)sqrt((double)values);

	while (side > 1 && values % side)
		side--;
	return (struct vc_tensor_shape){ .rows = values / side, .cols = side };
}

struct vc_tensor_shape vc_shapes_guess(const uint64_t *bytes, size_t n, size_t i, unsigned element,
				       bool convolutional)
{
	uint64_t values = bytes[i] / element, out;

	if (values < SMALLEST_MATRIX)
		return (struct vc_tensor_shape){ .rows = values, .cols = 1 };
	out = outputs(bytes, n, i, element, convolutional);
	if (!out)
		return values < 65536 ? (struct vc_tensor_shape){ .rows = values, .cols = 1 } :
					near_square(values);
	if (convolutional && i >= NEAR / 2) {
		uint64_t k = kernel(bytes, n, values / out, element);
		return (struct vc_tensor_shape){ .rows = k, .cols = k, .times = values / (k * k) };
	}
	return (struct vc_tensor_shape){ .rows = out, .cols = values / out };
}

bool vc_shapes_partial_sums(const struct vc_anatomy *a, size_t i)
{
	const struct vc_block_life *b = &a->block[i], *s = b + 1;

	for (size_t d = 1; i + 1 < a->n && d <= 3 && d <= i; d++) {
		uint64_t sums = a->block[i - d].size;

		if (sums && b->size % sums == 0 && b->size / sums >= 64 && s->size % 4 == 0 &&
		    s->size <= sums && s->died == s->born + 1 && b->died == s->died)
			return true;
	}
	return false;
}
