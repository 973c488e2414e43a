/* SPDX-License-Identifier: Apache-2.0 */
/* plans_rows.c - see plans_rows.h. Numbers are those of cudnn_graph.h. */
#include "nullgpu/plans_rows.h"

enum { D_CONVOLUTION = 1, D_GRAPH = 15, D_TENSOR = 17 };
enum { T_DATA = 1, T_INT64 = 3, T_FLOAT = 4, T_DOUBLE = 5, T_CONV_MODE = 7 };
enum { FLOAT32 = 0, FLOAT64 = 1 }; /* cudnnDataType_t */

/* Descriptor types of the operations, and their attributes: the convolution, x, w, y (or their
 * gradients), alpha, beta. */
static const struct operation {
	int type, attribute[6];
} operations[] = {
	[VC_CONVOLUTION_FORWARD] = { 10, { 702, 704, 703, 705, 700, 701 } },
	[VC_CONVOLUTION_DATA] = { 12, { 708, 710, 709, 711, 706, 707 } },
	[VC_CONVOLUTION_FILTER] = { 11, { 714, 716, 715, 717, 712, 713 } },
};

/* ---- descriptors ---- */

static void put_attribute(struct vc_wire *w, int name, int type, uint32_t count, const void *value)
{
	vc_wire_put_u32(w, (uint32_t)name);
	vc_wire_put_u32(w, (uint32_t)type);
	vc_wire_put_u32(w, count);
	vc_wire_put(w, value, count * vc_plans_width(type));
}

static void put_descriptor(struct vc_wire *w, int type, uint32_t attributes)
{
	vc_wire_put_u32(w, (uint32_t)type);
	vc_wire_put_u32(w, attributes);
}

static void put_link(struct vc_wire *w, int name, uint64_t to)
{
	put_attribute(w, name, VC_CUDNN_DESCRIPTOR, 1, &to);
}

/* Dense, with the channels last where `last`. */
static void put_tensor(struct vc_wire *w, int64_t id, int type, bool last, const int64_t *size,
		       int n)
{
	int64_t stride[VC_CONVOLUTION_SIZES], step = 1;
	int64_t align = 32; /* PyTorch says no more than that */
	if (last) {
		stride[1] = 1;
		step = size[1];
	}
	for (int i = n - 1; i >= 0; i--) {
		if (last && i == 1)
			continue;
		stride[i] = step;
		step *= size[i];
	}
	put_descriptor(w, D_TENSOR, 5);
	put_attribute(w, 906, T_INT64, 1, &id);
	put_attribute(w, 901, T_DATA, 1, &type);
	put_attribute(w, 900, T_INT64, 1, &align);
	put_attribute(w, 902, T_INT64, (uint32_t)n, size);
	put_attribute(w, 903, T_INT64, (uint32_t)n, stride);
}

static void put_convolution(struct vc_wire *w, const struct vc_convolution *c)
{
	int mode = 1, compute = c->type == FLOAT64 ? FLOAT64 : FLOAT32; /* cross-correlation */
	int64_t spatial = c->n - 2;
	uint32_t n = (uint32_t)spatial;
	put_descriptor(w, D_CONVOLUTION, 7);
	put_attribute(w, 106, T_INT64, 1, &spatial);
	put_attribute(w, 100, T_DATA, 1, &compute);
	put_attribute(w, 101, T_CONV_MODE, 1, &mode);
	put_attribute(w, 105, T_INT64, n, c->pad); /* before, after */
	put_attribute(w, 104, T_INT64, n, c->pad);
	put_attribute(w, 102, T_INT64, n, c->dilation);
	put_attribute(w, 103, T_INT64, n, c->stride);
}

static void put_operation(struct vc_wire *w, const struct operation *op, int type)
{
	const double one = 1, none = 0;
	const float f_one = 1, f_none = 0;
	bool wide = type == FLOAT64;
	put_descriptor(w, op->type, 6);
	for (int i = 0; i < 4; i++)
		put_link(w, op->attribute[i], i == 0 ? 3 : (uint64_t)i - 1);
	put_attribute(w, op->attribute[4], wide ? T_DOUBLE : T_FLOAT, 1,
		      wide ? (const void *)&one : &f_one);
	put_attribute(w, op->attribute[5], wide ? T_DOUBLE : T_FLOAT, 1,
		      wide ? (const void *)&none : &f_none);
}

/* ---- a row ---- */

/* Takes the list of the heuristics out of the key: what stands behind the direction. */
static enum vc_plans_mode take_mode(char *key)
{
	size_t direction = strcspn(key, " /"), n = strcspn(key + direction, " ");
	for (enum vc_plans_mode m = VC_MODE_B; n && m <= VC_MODE_FALLBACK; m++) {
		const char *list = vc_plans_list(m);
		if (strlen(list) == n && !strncmp(key + direction, list, n)) {
			memmove(key + direction, key + direction + n,
				strlen(key + direction + n) + 1);
			return m;
		}
	}
	return VC_MODE_INSTANT;
}

bool vc_rows_graph(const char *key, struct vc_wire *w, enum vc_plans_mode *mode)
{
	char plain[VC_PLANS_KEY];
	struct vc_convolution c;
	snprintf(plain, sizeof plain, "%s", key);
	*mode = take_mode(plain);
	if (!vc_convolution_read(plain, &c))
		return false;
	const int64_t *const sizes[] = { c.x, c.w, c.y };
	vc_wire_put_u32(w, 6);
	for (int i = 0; i < 3; i++)
		put_tensor(w, "xwy"[i], c.type, c.channels_last, sizes[i], c.n);
	put_convolution(w, &c);
	put_operation(w, &operations[c.direction], c.type);
	put_descriptor(w, D_GRAPH, 1);
	put_link(w, 801, 4);
	return !w->bad;
}
