/* SPDX-License-Identifier: Apache-2.0 */
/* codec_parts.h - what the encoder and the decoder of .vct share. docs/reference/trace-format.md is
 * the text to this; keep them together. */
#pragma once

#include "common/error.h"
#include "common/event.h"
#include "common/io.h"
#include "common/meta.h"

#define VCT_MAGIC      0x184D2A51u /* a zstd skippable frame, number 1 */
#define VCT_SEEK_MAGIC 0x184D2A5Eu /* zstd's seekable format: table in a skippable frame */
#define VCT_SEEK_END   0x8F92EAB1u
#define VCT_HEAD       56          /* bytes of the skippable frame's content */
#define VCT_FRAME      (8 + VCT_HEAD)
#define VCT_RAW_MAX    ((size_t)1 << 28)
#define VCT_VERSION    1

enum vct_block { VCT_HEADER = 'H', VCT_EVENTS = 'E' };

struct vct_head {
	uint8_t type;            /* enum vct_block */
	uint8_t version;
	uint16_t flags;          /* 0 */
	uint32_t sequence, events, raw, packed; /* sizes: block before and after zstd */
	uint64_t first_ns, last_ns, id_base;
	uint32_t lane;           /* 0: reserved for writers in parallel */
};

void vct_head_put(const struct vct_head *h, uint8_t to[VCT_FRAME]);
/* 0, or -1 when these VCT_FRAME bytes are no intact head. */
int vct_head_get(struct vct_head *h, const uint8_t from[VCT_FRAME]);

/* The JSON header; redact: without command line and host. */
char *vct_meta_text(const struct vc_meta *m, bool complete, bool redact, size_t *n,
		    struct vc_error *err);
int vct_meta_parse(struct vc_meta *m, const char *text, size_t n, struct vc_error *err);

/* Which columns an event has values in; part of its shape. */
enum vct_field {
	VCT_F_TIME = 1, VCT_F_ID = 2, VCT_F_SIZE = 4, VCT_F_ADDR = 8, VCT_F_SITE = 16,
	VCT_F_LABEL = 32, VCT_F_SAME_SIZE = 64,  /* size is that of the block's allocation */
	VCT_F_SAME_ADDR = 128, /* addr is that of the block's allocation; on ALLOC: as predicted */
};

enum vct_column { VCT_SHAPE, VCT_TIME, VCT_ID, VCT_SIZE, VCT_ADDR, VCT_SITE, VCT_LABEL,
	VCT_COLUMNS };

/* Events that speak of one block: their ids count back from the newest allocation. */
static inline int vct_refers(uint8_t kind)
{
	return kind == VC_EV_FREE || kind == VC_EV_FREE_DONE || kind == VC_EV_USE;
}

/* Sizes that repeat are indices into the block's table; these kinds carry numbers of their own. */
static inline int vct_loose_size(uint8_t kind)
{
	return kind == VC_EV_OTHERS || kind == VC_EV_FRACTION ||
	       (kind >= VC_EV_OOM && kind < VC_EV_HEAP_SEGMENT);
}

static inline uint64_t vct_zigzag(uint64_t delta)
{
	return delta << 1 ^ (delta >> 63 ? UINT64_MAX : 0);
}

static inline uint64_t vct_unzigzag(uint64_t v)
{
	return v >> 1 ^ (v & 1 ? UINT64_MAX : 0);
}
