/* SPDX-License-Identifier: Apache-2.0 */
/* cupti_standin.h - what the stand-in for CUPTI (cupti.c) is told to have seen. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void standin_kernel(const char *name, uint64_t start, uint64_t end, uint32_t stream);
void standin_graph(uint64_t start, uint64_t end, uint32_t stream);
void standin_copy(uint64_t bytes, uint64_t start, uint64_t end);
void standin_fill(uint64_t bytes, uint64_t start, uint64_t end);
void standin_memory(uint32_t op, uint32_t where, uint64_t at, uint64_t bytes, uint32_t context);
void standin_call(uint32_t id, const void *params, int result);
void standin_piece(uint32_t id, const void *params, uint32_t op, uint64_t at, uint64_t bytes);
void standin_pool(uint32_t op, uint64_t at, uint64_t size, uint64_t used, uint64_t keep);
void standin_async(uint64_t at, uint64_t bytes, uint64_t pool, uint64_t size, uint64_t used);
void standin_overhead(uint32_t what, uint64_t start, uint64_t end);
void standin_launch(uint32_t correlation, uint64_t start, uint64_t end);
void standin_stream(void *handle);
void standin_lose(size_t n);
void standin_hoard(bool on);
void standin_busy(bool on);
