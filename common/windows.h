/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h - where NVIDIA's driver on Linux puts fresh device memory. The caching allocator takes
 * the lower of two equally large free blocks, so the peak can hang on it.
 *
 * Fresh addresses come in windows of a multiple of VC_WINDOW, each below the ones before; what a
 * window leaves over serves later requests, the smallest range that suits (public recordings).
 * Before the first segment something is already left over: on an H100 under driver 580.159.04,
 * PyTorch 2.11.0+cu130, 168 recordings of 49 programs agree in these ranges
 * (docs/measurements/gpu.md). */
#pragma once

#define VC_WINDOW (32ull << 20)

/* MiB above the highest fresh window, and MiB of it: the rest of what cuBLAS and cuDNN load their
 * kernels into, and of the first window of the context. */
#define VC_LEFT_OVERS(range) range(0, 416) range(490, 24)
#define VC_LEFT_OVER_SPAN (544ull << 20) /* room for them; a multiple of VC_WINDOW */
