/* SPDX-License-Identifier: Apache-2.0 */
/* rmm_text.h - what RMM throws when memory runs out, as its what() says it. */
#ifndef VC_RMM_TEXT_H
#define VC_RMM_TEXT_H

#include "simulator/replay/model.h"

struct rmm_bytes { char s[40]; };
struct rmm_bytes rmm_format_bytes(uint64_t n); /* rmm::detail::format_bytes */

/* From which release on: to 25.2 the words are shorter; to 25.10 what is asked from the device is a
 * multiple of 16; to 26.8 a pool keeps all that it has. */
enum { RMM_26_10, RMM_25_12, RMM_25_4, RMM_24_12 };
#define RMM_RELEASE(config) \
	{ "release", VC_P_ENUM, offsetof(config, release), "26.10", \
	  "whose rules and words: those of RMM from this release on (24.12: as far back as read)", \
	  "26.10,25.12,25.4,24.12" }

/* The reason for which a pool of RMM cannot serve `size` bytes, and the refusal itself. */
int rmm_refuse(struct vc_model *m, const struct vc_request *rq, uint64_t size, const char *reason,
	       uint64_t release);
/* rmm::out_of_memory of cuda_memory_resource, whose cudaMalloc of `size` bytes failed. */
void rmm_text_malloc(char *to, size_t room, uint64_t size, uint64_t release);
/* The precondition of global_arena. */
void rmm_text_small_arena(char *to, size_t room);

/* What cuda_memory_resource asks cudaMalloc for when a pool asks it for `size` bytes:
 * device_memory_resource::allocate rounds to alignof(std::max_align_t). */
static inline uint64_t rmm_malloc_size(uint64_t size, uint64_t release)
{
	return release <= RMM_25_12 ? size : (size + 15) / 16 * 16;
}

/* What a pool takes at its start: `text` as the parameter has it, "half" of the free bytes of the
 * device (rmm::percent_of_free_device_memory(50), Python's default) or a number of bytes; 0 where
 * half of a device without a size would say nothing. */
int rmm_initial_size(const struct vc_model *m, const char *name, const char *text, uint64_t *size,
		     struct vc_error *err);

#endif
