/* SPDX-License-Identifier: Apache-2.0 */
/* torch_scope.h - private pools: which allocations of a scope really go to the pool. */
#pragma once

#include "common/std.h"

struct vc_scope {
	uint16_t device;
	uint64_t first, second; /* c10::MempoolId_t */
	uint64_t key;           /* versions whose end does not name the pool: stream or graph */
	uint64_t stream;        /* UINT64_MAX: all that the filter lets through */
	const void *filter;     /* std::function<bool(cudaStream_t)>, or NULL */
};

void vc_scope_begin(const struct vc_scope *s);
/* By pool, or by key when `by_key`. false: its begin was not seen. */
bool vc_scope_end(const struct vc_scope *s, bool by_key);
/* Around the record of an allocation: scopes whose filter refuses it are left and entered again. */
uint32_t vc_scope_before(uint16_t device, uint64_t stream);
void vc_scope_after(uint32_t left);
void vc_scope_put(uint8_t kind, uint8_t flags, const struct vc_scope *s);
void vc_scope_clear(void);  /* none is open */
void vc_scope_forget(void); /* in a forked child */
