/* SPDX-License-Identifier: Apache-2.0 */
/* heapmap.h - the heap at one moment, with call sites: shared by the observers that look at it. */
#pragma once

#include "common/pages.h"
#include "simulator/replay/observer.h"
#include "simulator/replay/result.h"

/* Where each live block came from; kept beside the model, which knows sizes and places only. */
struct vc_origins { struct vc_pages at; }; /* starts zeroed */

/* For the row of an observer whose state begins with a struct vc_origins. */
int vc_origins_at_start(struct vc_observer *o, uint64_t id, uint32_t site, struct vc_error *err);
uint32_t vc_origins_site(const struct vc_origins *o, uint64_t id); /* 0: unknown */
int  vc_origins_step(struct vc_origins *o, const struct vc_step *s, struct vc_error *err);
void vc_origins_fini(struct vc_origins *o);

/* Fill *map (replacing what it held) from the model. */
int vc_heapmap_take(struct vc_heap_map *map, const struct vc_model *m, const struct vc_origins *o,
		    uint64_t event, struct vc_error *err);

/* What its unused bytes are, added to *f: the classes of docs/reference/models.md. */
void vc_heapmap_unused(const struct vc_heap_map *map, struct vc_fragmentation *f);
