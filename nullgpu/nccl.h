/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.h - what the files of the stand-in libnccl share. */
#pragma once

#include "nullgpu/exchange.h"

#define NCCL_CUDA_ERROR 1
#define NCCL_SYSTEM_ERROR 2
#define NCCL_INVALID_ARGUMENT 4

struct vc_nccl_id {
	char bytes[128];
};

struct vc_nccl {
	int ranks, rank, device;
	const int *job;            /* each one's rank in the job; NULL: not known */
	unsigned number;          /* of the process's communicators, from 1 */
	uint64_t calls;           /* collectives that exchanged data */
	uint64_t splits;
	uint64_t *sent, *received; /* messages to and from each rank */
	uint64_t *met;             /* 1: point-to-point operations with that rank were seen */
	struct vc_exchange x;
};

/* All ranks' `size` bytes in order of rank into `all`; false when the others do not answer. */
bool vc_nccl_gather(struct vc_nccl *c, const void *mine, size_t size, void *all);
/* The buffers of a new communicator: a result of NCCL's. */
int vc_nccl_charge(int device, int ranks);
/* A point-to-point operation with that rank: its connections are named in the report. */
void vc_nccl_meet(struct vc_nccl *c, int peer);
/* Drops what the communicator has not received yet. */
void vc_nccl_forget(const struct vc_nccl *c);
