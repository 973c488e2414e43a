/* SPDX-License-Identifier: Apache-2.0 */
/* plans_rows.c - see plans_rows.h. Numbers are those of cudnn_graph.h. */
#include "nullgpu/plans_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 5, FIELDS = 9 }; /* dimensions; of a row */
enum { D_CONVOLUTION = 1, D_GRAPH = 15, D_TENSOR = 17 };
enum { T_DATA = 1, T_INT64 = 3, T_FLOAT = 4, T_DOUBLE = 5, T_CONV_MODE = 7 };
enum { FLOAT32 = 0, FLOAT64 = 1 }; /* cudnnDataType_t */

static const struct { const char *name; int number; } types[] = {
	{ "f32", FLOAT32 }, { "f64", FLOAT64 }, { "f16", 2 }, { "bf16", 9 },
};

/* Descriptor types of the operations, and their attributes: the convolution, x, w, y (or their
 * gradients), alpha, beta. */
static const struct operation {
	const char *name;
	int type, attribute[6];
} operations[] = {
	{ "forward", 10, { 702, 704, 703, 705, 700, 701 } },
	{ "data",    12, { 708, 710, 709, 711, 706, 707 } },
	{ "filter",  11, { 714, 716, 715, 717, 712, 713 } },
};

static const char *const modes[] = { "", "/b", "/fallback", "" };

const char *vc_rows_mode(enum vc_plans_mode mode)
{
	return modes[mode];
}

static int read_sizes(const char *s, int64_t *v)
{
	int n = 0;
	for (char *end; n < MOST; s = end + 1) {
		v[n++] = strtoll(s, &end, 10);
		if (end == s || v[n - 1] < 0)
			return -1;
		if (*end != 'x')
			return *end ? -1 : n;
	}
	return -1;
}

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
	int64_t stride[MOST], step = 1, align = 32; /* PyTorch says no more than that */
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

static void put_convolution(struct vc_wire *w, int type, int64_t spatial, int64_t row[][MOST])
{
	int mode = 1, compute = type == FLOAT64 ? FLOAT64 : FLOAT32; /* cross-correlation */
	uint32_t n = (uint32_t)spatial;
	put_descriptor(w, D_CONVOLUTION, 7);
	put_attribute(w, 106, T_INT64, 1, &spatial);
	put_attribute(w, 100, T_DATA, 1, &compute);
	put_attribute(w, 101, T_CONV_MODE, 1, &mode);
	put_attribute(w, 105, T_INT64, n, row[4]); /* before, after */
	put_attribute(w, 104, T_INT64, n, row[4]);
	put_attribute(w, 102, T_INT64, n, row[5]);
	put_attribute(w, 103, T_INT64, n, row[3]);
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

static int type_of(const char *name)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(name, types[i].name))
			return types[i].number;
	return -1;
}

static const struct operation *operation_of(char *name, enum vc_plans_mode *mode)
{
	char *slash = strchr(name, '/');
	*mode = VC_MODE_INSTANT;
	for (int m = VC_MODE_B; slash && m <= VC_MODE_FALLBACK; m++)
		if (!strcmp(slash, modes[m])) {
			*mode = (enum vc_plans_mode)m;
			*slash = 0;
			break;
		}
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if (!strcmp(name, operations[i].name))
			return &operations[i];
	return NULL;
}

bool vc_rows_graph(const char *key, struct vc_wire *w, enum vc_plans_mode *mode)
{
	char copy[VC_PLANS_KEY], *field[FIELDS + 1], *rest;
	int64_t row[6][MOST];
	int n = 0, dimensions[6];
	snprintf(copy, sizeof copy, "%s", key);
	for (char *f = strtok_r(copy, " ", &rest); f && n <= FIELDS; f = strtok_r(NULL, " ", &rest))
		field[n++] = f;
	if (n != FIELDS)
		return false;
	const struct operation *op = operation_of(field[0], mode);
	int type = type_of(field[1]);
	bool last = !strcmp(field[2], "nhwc"), ok = op && type >= 0;
	for (int i = 0; ok && i < 6; i++) {
		dimensions[i] = read_sizes(field[3 + i], row[i]);
		ok = dimensions[i] == dimensions[0] - (i < 3 ? 0 : 2) && dimensions[i] > 0;
	}
	if (!ok)
		return false;
	vc_wire_put_u32(w, 6);
	for (int i = 0; i < 3; i++)
		put_tensor(w, "xwy"[i], type, last, row[i], dimensions[0]);
	put_convolution(w, type, dimensions[3], row);
	put_operation(w, op, type);
	put_descriptor(w, D_GRAPH, 1);
	put_link(w, 801, 4);
	return !w->bad;
}
