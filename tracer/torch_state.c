/* SPDX-License-Identifier: Apache-2.0 */
/* torch_state.c - is PyTorch's CUDA allocator being recorded, and is this thread inside it? */
#include <stdatomic.h>

#include "tracer/torch.h"

static _Atomic bool watching;
static __thread __attribute__((tls_model("initial-exec"))) bool inside;

void vc_torch_watch(void)
{
	atomic_store_explicit(&watching, true, memory_order_release);
}

void vc_torch_unwatch(void)
{
	atomic_store_explicit(&watching, false, memory_order_release);
}

bool vc_torch_watching(void)
{
	return atomic_load_explicit(&watching, memory_order_relaxed);
}

bool vc_torch_enter(bool now)
{
	bool was = inside;

	inside = now;
	return was;
}

bool vc_torch_allocating(void)
{
	return inside;
}
