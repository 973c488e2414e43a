/* SPDX-License-Identifier: Apache-2.0 */
/* rmm_text.c - see rmm_text.h
 *
 * The places in its source that stand in RMM's sentences are left out. */
#include "simulator/models/rmm_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "simulator/models/chunks.h"

#define EXCEEDED "std::bad_alloc: out_of_memory: RMM failure: Maximum pool size exceeded"

struct rmm_bytes rmm_format_bytes(uint64_t n)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double size = (double)n;
	struct rmm_bytes o;
	int i = 0;

	for (; size > 1024; i++) /* 1,024 bytes are not 1 KiB there */
		size /= 1024;
	snprintf(o.s, sizeof(o.s), "%f %s", size, unit[i]);
	return o;
}

void rmm_text_malloc(char *to, size_t room, uint64_t size, uint64_t release)
{
	char bytes[64] = "";

	if (release != RMM_24_12)
		snprintf(bytes, sizeof(bytes), " (failed to allocate %" PRIu64 " bytes)", size);
	snprintf(to, room, "std::bad_alloc: out_of_memory: CUDA error%s: cudaErrorMemoryAllocation "
		 "out of memory", bytes);
}

void rmm_text_small_arena(char *to, size_t room)
{
	snprintf(to, room, "RMM failure: Arena size smaller than minimum superblock size.");
}

int rmm_refuse(struct vc_model *m, const struct vc_request *rq, uint64_t size, const char *reason,
	       uint64_t release)
{
	if (release == RMM_24_12)
		snprintf(m->note, sizeof(m->note), EXCEEDED);
	else
		snprintf(m->note, sizeof(m->note), EXCEEDED " (failed to allocate %s): %s",
			 rmm_format_bytes(size).s, reason);
	return vc_model_refuse(m, rq, size, m->refusal.alloc_size);
}

int rmm_initial_size(const struct vc_model *m, const char *name, const char *text, uint64_t *size,
		     struct vc_error *err)
{
	if (!strcmp(text, "half"))
		*size = vc_device_config(m->device)->total >= VC_DEVICE_UNLIMITED ?
				0 : vc_device_available(m->device) / 2 / 256 * 256;
	else if (vc_parse_size(text, size, err) < 0)
		return vc_wrap(err, "%s", name);
	return VC_OK;
}
