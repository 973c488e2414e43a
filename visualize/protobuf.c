/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf.c - see protobuf.h. Wire format: https://protobuf.dev/programming-guides/encoding/ */
#include "visualize/protobuf.h"

#include "common/vec.h"

enum wire { VARINT = 0, LENGTH = 2 };

static void put(struct vc_proto *p, const void *data, size_t n)
{
	if (!vc_vec_room(p->at, p->cap, p->n + n)) {
		p->nomem = true;
		return;
	}
	if (n)
		memcpy(p->at + p->n, data, n);
	p->n += n;
}

void vc_proto_value(struct vc_proto *p, uint64_t v)
{
	uint8_t b[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		b[n++] = (uint8_t)(v | 0x80);
	b[n++] = (uint8_t)v;
	put(p, b, n);
}

void vc_proto_uint(struct vc_proto *p, uint32_t field, uint64_t v)
{
	vc_proto_value(p, (uint64_t)field << 3 | VARINT);
	vc_proto_value(p, v);
}

void vc_proto_bytes(struct vc_proto *p, uint32_t field, const void *data, size_t n)
{
	vc_proto_value(p, (uint64_t)field << 3 | LENGTH);
	vc_proto_value(p, n);
	put(p, data, n);
}

void vc_proto_text(struct vc_proto *p, uint32_t field, const char *text)
{
	vc_proto_bytes(p, field, text ? text : "", text ? strlen(text) : 0);
}

void vc_proto_message(struct vc_proto *p, uint32_t field, struct vc_proto *sub)
{
	vc_proto_bytes(p, field, sub->at, sub->n);
	p->nomem |= sub->nomem;
	sub->n = 0;
}

void vc_proto_append(struct vc_proto *p, const struct vc_proto *more)
{
	put(p, more->at, more->n);
	p->nomem |= more->nomem;
}

void vc_proto_fini(struct vc_proto *p)
{
	free(p->at);
	*p = (struct vc_proto){ 0 };
}
