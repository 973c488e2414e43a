/* SPDX-License-Identifier: Apache-2.0 */
/* torch_symbol.c - functions of PyTorch's libraries by name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>

#include "tracer/torch.h"

/* PyTorch is usually opened RTLD_LOCAL, where RTLD_NEXT finds nothing. */
void *vc_torch_symbol(const char *library, const char *name)
{
	void *h = dlopen(library, RTLD_NOLOAD | RTLD_NOW);
	void *p = h ? dlsym(h, name) : NULL;

	return p ? p : dlsym(RTLD_NEXT, name);
}

void *vc_torch_symbol_once(_Atomic(void *) *slot, const char *library, const char *name)
{
	void *p = atomic_load_explicit(slot, memory_order_acquire);

	if (!p) {
		p = vc_torch_symbol(library, name);
		atomic_store_explicit(slot, p, memory_order_release);
	}
	return p;
}
