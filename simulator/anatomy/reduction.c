/* SPDX-License-Identifier: Apache-2.0 */
/* reduction.c - launch arithmetic of PyTorch's gpu_reduce_kernel for a sum over the outer
 * dimension.
 *
 * Source: aten/src/ATen/native/cuda/Reduce.cuh (setReduceConfig, ReduceConfig::global_memory_size
 * and semaphore_size), unchanged in these parts from 2.0 to 2.15. Checked against every bias
 * gradient of the ladder recordings (docs/rooms/predict.md). */
#include "simulator/anatomy/reduction.h"

#include "common/vec.h"

enum {
	WARP = 32,
	THREADS = 512,   /* max_reduce_threads of all types but complex double */
	LEAST = 16,      /* min_values_per_thread */
	MOST = 256,      /* max_values_per_thread */
	ACC = 4,         /* sums of half and float are kept in float */
};

struct shape {
	uint64_t vec, width, height; /* output_vec_size, block.x, block.y */
	uint64_t grid;               /* blocks over the outputs */
};

static uint64_t pow2_below(uint64_t n) /* last_pow2 */
{
	uint64_t p = 1;

	while (2 * p <= n)
		p *= 2;
	return p;
}

static struct shape shape_of(uint64_t n, uint64_t rows)
{
	struct shape s = { .vec = n % 4 ? (n % 2 ? 1 : 2) : 4 };
	uint64_t limit = THREADS / s.vec, d0 = n / s.vec;
	uint64_t p0 = d0 < limit ? pow2_below(d0) : limit;
	uint64_t p1 = rows < limit ? pow2_below(rows) : limit;

	s.width = vc_least(p0, WARP);
	s.height = vc_least(p1, limit / s.width);
	s.width = vc_least(p0, limit / s.height);
	s.grid = vc_per(n / s.vec, s.width);
	return s;
}

static uint64_t blocks_per_output(const struct shape *s, uint64_t rows,
				  const struct vc_reduction_card *card)
{
	uint64_t values = rows, target;

	if (values < vc_least(s->height * 16, MOST))
		return 1;
	values = vc_per(rows, s->height);
	target = (uint64_t)card->sms * (card->threads_per_sm / (s->width * s->height));
	if (values < MOST || s->grid > target)
		return 1;
	uint64_t fill = vc_per(target, s->grid), by_work = vc_per(values, LEAST),
		 must = vc_per(values, MOST);
	fill = vc_least(fill, by_work);
	return fill > must ? fill : must;
}

static uint64_t partial_bytes(uint64_t n, const struct shape *s, uint64_t blocks)
{
	return ACC * n * blocks * s->width * s->vec;
}

bool vc_reduction(uint64_t n, uint64_t rows, const struct vc_reduction_card *card,
		  uint64_t *partial, uint64_t *semaphores)
{
	if (!n || !rows)
		return false;
	struct shape s = shape_of(n, rows);
	uint64_t blocks = blocks_per_output(&s, rows, card);

	if (blocks <= 1)
		return false;
	*partial = partial_bytes(n, &s, blocks);
	*semaphores = 4 * s.grid;
	return true;
}

bool vc_reduction_rows(uint64_t n, uint64_t partial, uint64_t semaphores,
		       const struct vc_reduction_card *card, uint64_t *lo, uint64_t *hi,
		       enum vc_limit *limit)
{
	struct shape s = shape_of(n ? n : 1, 1u << 20);
	uint64_t unit = partial_bytes(n, &s, 1);

	if (!n || semaphores != 4 * s.grid || !partial || partial % unit || partial == unit)
		return false;
	uint64_t blocks = partial / unit;
	uint64_t fill =
		vc_per((uint64_t)card->sms * (card->threads_per_sm / (s.width * s.height)), s.grid);
	*lo = ((blocks - 1) * LEAST) * s.height + 1;
	*hi = blocks * LEAST * s.height;
	*limit = blocks < fill ? VC_LIMIT_ROWS : blocks == fill ? VC_LIMIT_CARD : VC_LIMIT_THREAD;
	if (blocks == fill)
		*hi = UINT64_MAX;
	else if (blocks > fill) { /* so many rows that each thread has its most */
		*lo = ((blocks - 1) * MOST) * s.height + 1;
		*hi = blocks * MOST * s.height;
	}
	return true;
}

/* flexible_launch_configs in aten/src/ATen/native/cuda/Normalization.cuh (channels-last kernels,
 * which also serve two-dimensional inputs): OPTIMAL_TILE_W 32, MAX_BLOCK_SIZE 512,
 * ELEMENTS_PER_THREAD 16, MAX_H_BLOCK 128, and no cooperation below 8 blocks. */
bool vc_norm_scratch(uint64_t n, uint64_t rows, unsigned copies, uint64_t *partial,
		     uint64_t *semaphores)
{
	if (!n || !rows)
		return false;
	uint64_t x = vc_least(pow2_below(n), 32);
	uint64_t y = vc_least(pow2_below(vc_per(rows, 16)), 512 / x);

	if (x * y != 512)
		x = vc_least(pow2_below(n), 512 / y);
	uint64_t blocks = vc_least(vc_per(rows, y * 16), 128);
	if (blocks < 8)
		return false;
	*partial = (uint64_t)copies * n * blocks * ACC;
	*semaphores = 4 * vc_per(n, x);
	return true;
}

uint32_t vc_threads_per_sm(int major, int minor)
{
	if (major == 7 && minor == 5)
		return 1024;
	if ((major == 8 && minor >= 6) || major == 12)
		return 1536;
	return 2048;
}
