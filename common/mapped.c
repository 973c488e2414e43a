/* SPDX-License-Identifier: Apache-2.0 */
/* mapped.c - see mapped.h */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mremap, in system.h */
#endif

#include "common/mapped.h"

#include "common/system.h"

#define FIRST ((size_t)1 << 20) /* bytes; most recordings need no more */
#define MAPPED_MAX (SIZE_MAX / 4)

/* Bytes of the mapping with room for `cap` elements; mremap wants to hear them again. */
static size_t bytes_of(size_t cap, size_t each)
{
	return (cap * each + 4095) / 4096 * 4096;
}

bool vc_mapped_grow(void *array, size_t *cap, size_t n, size_t each)
{
	size_t more = *cap ? *cap : FIRST / each;
	void *at;

	while (more < n && more <= SIZE_MAX / 2)
		more *= 2;
	if (more < n || more > MAPPED_MAX / each)
		return false;
	memcpy(&at, array, sizeof(at));
	if (*cap)
		at = vc_remap(at, bytes_of(*cap, each), bytes_of(more, each));
	else
		at = mmap(NULL, bytes_of(more, each), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return false;
	memcpy(array, &at, sizeof(at));
	*cap = more;
	return true;
}

void vc_mapped_free(void *at, size_t cap, size_t each)
{
	if (at)
		munmap(at, bytes_of(cap, each));
}
