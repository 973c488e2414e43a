/* SPDX-License-Identifier: Apache-2.0 */
/* c10_null.c - a stand-in libc10.so whose allocator does nothing: measures calls alone. */
#include <stdlib.h>

void *_ZN3c109alloc_cpuEm(size_t n);
void _ZN3c108free_cpuEPv(void *p);

static char block[64];

void *_ZN3c109alloc_cpuEm(size_t n)
{
	return n ? block : NULL;
}

void _ZN3c108free_cpuEPv(void *p)
{
	(void)p;
}
