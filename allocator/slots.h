/* SPDX-License-Identifier: Apache-2.0 */
/* slots.h - where the functions of PyTorch's CUDA allocator stand in its vtable. */
#pragma once

struct vc_slots {
	int first, last; /* minor versions of PyTorch 2 */
	int deleter, raw_alloc, raw_alloc_with_stream, raw_delete;
	int stats, reset_accumulated, reset_peaks;
	int use, trim, pool_begin, pool_end;
	int size; /* entries to copy, where so many can be read */
};

/* Of the minor version; NULL: not known. */
const struct vc_slots *vc_slots(int minor);
