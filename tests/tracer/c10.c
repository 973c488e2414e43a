/* SPDX-License-Identifier: Apache-2.0 */
/* c10.c - a stand-in for libc10.so: the two functions of the CPU allocator under their real
 * names. */
#include <stdlib.h>

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);

void *_ZN3c109alloc_cpuEm(size_t n)
{
	return n ? aligned_alloc(64, (n + 63) / 64 * 64) : NULL;
}

void _ZN3c108free_cpuEPv(void *p)
{
	free(p);
}
