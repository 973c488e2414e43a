/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.h - writes protocol buffer messages by field number; no library, no schema. */
#pragma once

#include "common/std.h"

/* A message being written; start with { 0 }. Lack of memory is sticky in nomem. */
struct vc_proto { uint8_t *at; size_t n, cap; bool nomem; };

void vc_proto_uint(struct vc_proto *p, uint32_t field, uint64_t v);  /* also int64, enum, bool */
void vc_proto_bytes(struct vc_proto *p, uint32_t field, const void *data, size_t n);
void vc_proto_text(struct vc_proto *p, uint32_t field, const char *text); /* NULL: "" */
/* Puts `sub` in as field and empties it for the next one. */
void vc_proto_message(struct vc_proto *p, uint32_t field, struct vc_proto *sub);
/* Fields of `more` behind those of p: parts of one message written apart. */
void vc_proto_append(struct vc_proto *p, const struct vc_proto *more);
void vc_proto_value(struct vc_proto *p, uint64_t v); /* a bare varint, for packed fields */
void vc_proto_fini(struct vc_proto *p);
