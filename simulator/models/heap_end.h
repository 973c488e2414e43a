/* SPDX-License-Identifier: Apache-2.0 */
/* heap_end.h - one space of addresses whose mapped part grows at its end: the textbook's heap, as
 * first_fit and best_fit have it. */
#ifndef VC_HEAP_END_H
#define VC_HEAP_END_H

#include "simulator/models/chunks.h"

struct heap_end_config { uint64_t round, grow; };

struct heap_end {
	struct vc_chunks k;  /* one region, which begins at base */
	uint64_t base, room; /* the reserved range, none of it before the first request */
	uint32_t last;       /* the chunk at the end of what is mapped, 0: none */
};

typedef uint32_t heap_end_find(const struct vc_chunks *k, uint32_t list, uint64_t size);

extern const struct vc_param heap_end_params[];
int heap_end_init(struct vc_model *m, struct vc_error *err);
int heap_end_alloc(struct vc_model *m, const struct vc_request *rq, struct vc_block *out,
		   heap_end_find *find, struct vc_error *err);
int heap_end_free(struct vc_model *m, struct vc_block *b);
int heap_end_trim(struct vc_model *m, uint64_t pool, struct vc_error *err);
int heap_end_check(const struct vc_model *m, struct vc_error *err);

#endif
