/* SPDX-License-Identifier: Apache-2.0 */
/* foreach.c - see foreach.h. Layout of the lists: aten/src/ATen/native/cuda/MultiTensorApply.cuh,
 * the same in PyTorch 2.6 and 2.11. */
#include "nullgpu/foreach.h"
#include "common/std.h"

enum { CHUNK = 65536, BLOCKS = 320, DEPTHS = 5 };

/* Lists by their mangled name; behind it a type where there are scalars, and Li<depth>E. */
static const struct kind {
	const char *name;
	uint32_t most[DEPTHS]; /* tensors, by depth */
	bool scalars, steps;   /* a number, a pointer for each tensor before the blocks */
} kinds[] = {
	{ "TensorListScalarListMetadataI", { 96, 64, 48, 36, 30 }, true, false },
	{ "FusedOptimizerTensorListMetadataI", { 110, 64, 48, 36, 30 }, false, true },
	{ "TensorListMetadataI", { 110, 64, 48, 36, 30 }, false, false },
};

/* Bytes of a scalar type by the letter it is mangled to; PyTorch's own 16-bit ones begin with N. */
static unsigned width_of(char letter)
{
	switch (letter) {
	case 'd': case 'l': case 'm': return 8;
	case 'N': case 's': return 2;
	case 'h': case 'a': case 'b': return 1;
	}
	return 4;
}

/* The number of the next Li<number>E, and where it ends; 0: there is none. */
static unsigned number(const char **at)
{
	const char *found = *at ? strstr(*at, "Li") : NULL;
	char *end = NULL;
	unsigned long n = found ? strtoul(found + 2, &end, 10) : 0;

	*at = end && *end == 'E' ? end : NULL;
	return *at ? (unsigned)n : 0;
}

/* Values that the blocks of the launch work on; 0: the list makes no sense. */
static double values_of(const struct kind *k, unsigned depth, unsigned scalar, const char *list,
			unsigned blocks)
{
	size_t most = k->most[depth - 1], at = 8 * depth * most;
	const unsigned char *tensor;
	double sum = 0;
	int64_t numel[110];

	memcpy(numel, list + at, 8 * most);
	at += 8 * most + (k->scalars ? scalar * most : 0) + (k->steps ? 8 * most : 0);
	tensor = (const unsigned char *)list + at;
	at += BLOCKS;
	for (unsigned b = 0; b < blocks && b < BLOCKS; b++) {
		int32_t chunk;

		memcpy(&chunk, list + at + 4 * (size_t)b, 4);
		if (tensor[b] >= most || chunk < 0 || numel[tensor[b]] <= (int64_t)chunk * CHUNK)
			return 0;
		int64_t left = numel[tensor[b]] - (int64_t)chunk * CHUNK;
		sum += (double)(left < CHUNK ? left : CHUNK);
	}
	return sum;
}

double vc_null_foreach_bytes(const char *name, const void *list, unsigned blocks)
{
	const char *at = NULL, *functor;
	const struct kind *k = kinds;
	unsigned depth, read, scalar, width;

	if (!name || !list || !strstr(name, "multi_tensor_apply_kernel"))
		return 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !at; i++) {
		k = &kinds[i];
		at = strstr(name, k->name);
	}
	if (!at)
		return 0;
	at += strlen(k->name);
	scalar = width_of(*at);
	depth = number(&at);
	functor = at ? strstr(at, "FunctorI") : NULL;
	if (!depth || depth > DEPTHS)
		return 0;
	width = functor ? width_of(functor[strlen("FunctorI")]) : 4;
	/* ...Functor<type, depth, lists that are read, ...>, and one that is written; else all
	 * are both */
	read = functor && number(&functor) == depth ? number(&functor) : 0;
	return values_of(k, depth, scalar, list, blocks) * width *
	       (read && read <= depth ? read + 1 : 2 * depth - 1);
}
