/* SPDX-License-Identifier: Apache-2.0 */
/* single.c - one recording: what is never given back is constant, what is given back, divides by the
 * value and has not the size of something constant is proportional, the rest is open. The last is
 * no proof (a quarter of the varying bytes of one public pair had the size of a parameter): that is
 * why the answer is a pair of bounds. */
#include "simulator/single.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int by_size(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

/* Alive at the last allocation: what is freed behind it goes because the program ends. */
static bool lasts(const struct vc_member *m, size_t i)
{
	return m->take[i].life == UINT32_MAX || i + 1 + m->take[i].life >= m->n;
}

int vc_single_settle(const struct vc_member *m, double x, struct vc_law *law, uint8_t *settled,
		     struct vc_error *err)
{
	uint64_t *lasting = malloc((m->n + 1) * sizeof(*lasting));
	size_t n = 0;

	if (!lasting)
		return vc_nomem(err, "the sizes of a recording");
	for (size_t i = 0; i < m->n; i++)
		if (lasts(m, i))
			lasting[n++] = m->take[i].size;
	qsort(lasting, n, sizeof(*lasting), by_size);
	for (size_t i = 0; i < m->n; i++) {
		double size = (double)m->take[i].size;
		bool stays = lasts(m, i), divides = fmod(size, x) < 0.5;
		bool known = bsearch(&m->take[i].size, lasting, n, sizeof(*lasting), by_size) != NULL;

		settled[i] = stays || !divides || !known;
		law[i] = stays || !divides ? (struct vc_law){ .kind = VC_LAW_CONST, .a = size }
					   : (struct vc_law){ .kind = VC_LAW_LINEAR, .b = size / x };
	}
	free(lasting);
	return 0;
}
