/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - arithmetic on arrays of NCCL's data types. */
#include "nullgpu/reduce.h"

/* ncclRedOp_t; operations that the program made multiply by a scalar first and are taken as sums */
enum { SUM, PRODUCT, MAXIMUM, MINIMUM, AVERAGE };
/* ncclDataType_t */
enum { INT8, UINT8, INT32, UINT32, INT64, UINT64, HALF, FLOAT, DOUBLE, BFLOAT16 };

size_t vc_reduce_width(int type)
{
	static const unsigned char widths[] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };
	return type >= 0 && type < (int)sizeof widths ? widths[type] : 4;
}

bool vc_reduce_is_float(int type)
{
	return type >= HALF;
}

static double from_half(uint16_t h)
{
	int e = h >> 10 & 31;
	double m = h & 1023, v;
	if (e == 31)
		v = m ? 0.0 : 65504.0; /* nothing here must become NaN */
	else if (e)
		v = (1024 + m) / 1024 * (e > 15 ? (double)(1 << (e - 15)) : 1.0 / (1 << (15 - e)));
	else
		v = m / 16777216;
	return h >> 15 ? -v : v;
}

/* Rounds towards zero: precision is nobody's business here. */
static uint16_t to_half(double v)
{
	uint16_t sign = v < 0 ? 0x8000 : 0;
	int e = 15;
	v = v < 0 ? -v : v;
	if (v >= 65504)
		return sign | 0x7bff;
	if (v < 1.0 / 16384)
		return (uint16_t)(sign | (uint16_t)(v * 16777216));
	for (; v >= 2; e++)
		v /= 2;
	for (; v < 1; e--)
		v *= 2;
	return (uint16_t)(sign | e << 10 | (int)((v - 1) * 1024));
}

static double load(const char *p, int type)
{
	union {
		uint16_t h;
		uint32_t bits;
		float s;
		double t;
	} u = { 0 };
	memcpy(&u, p, vc_reduce_width(type));
	switch (type) {
	case HALF: return from_half(u.h);
	case FLOAT: return (double)u.s;
	case DOUBLE: return u.t;
	case BFLOAT16: u.bits <<= 16; return (double)u.s;
	}
	return 0; /* the 8-bit floats stay what they are */
}

static void store(char *p, int type, double v)
{
	union {
		uint16_t h;
		uint32_t bits;
		float s;
		double t;
	} u = { 0 };
	switch (type) {
	case HALF: u.h = to_half(v); break;
	case FLOAT: u.s = (float)v; break;
	case DOUBLE: u.t = v; break;
	case BFLOAT16: u.s = (float)v; u.bits >>= 16; break;
	default: return;
	}
	memcpy(p, &u, vc_reduce_width(type));
}

static double real(int op, double a, double b)
{
	switch (op) {
	case PRODUCT: return a * b;
	case MAXIMUM: return a > b ? a : b;
	case MINIMUM: return a < b ? a : b;
	}
	return a + b;
}

/* Numbers with and without a sign differ in what is larger, and in a quotient. */
static bool has_sign(int type)
{
	return type == INT8 || type == INT32 || type == INT64;
}

static uint64_t load_whole(const char *p, int type)
{
	int above = 64 - 8 * (int)vc_reduce_width(type);
	uint64_t u = 0;
	memcpy(&u, p, vc_reduce_width(type));
	return has_sign(type) ? (uint64_t)((int64_t)(u << above) >> above) : u;
}

static uint64_t whole(int op, uint64_t a, uint64_t b, bool sign)
{
	bool less = sign ? (int64_t)a < (int64_t)b : a < b;
	switch (op) {
	case PRODUCT: return a * b;
	case MAXIMUM: return less ? b : a;
	case MINIMUM: return less ? a : b;
	}
	return a + b;
}

void vc_reduce_add(void *to, const void *from, size_t n, int type, int op)
{
	size_t width = vc_reduce_width(type);
	for (size_t i = 0; i < n; i++) {
		char *a = (char *)to + i * width;
		const char *b = (const char *)from + i * width;
		if (vc_reduce_is_float(type)) {
			store(a, type, real(op, load(a, type), load(b, type)));
		} else {
			uint64_t x = whole(op, load_whole(a, type), load_whole(b, type),
					   has_sign(type));
			memcpy(a, &x, width);
		}
	}
}

void vc_reduce_finish(void *to, size_t n, int type, int op, int ranks)
{
	size_t width = vc_reduce_width(type);
	for (size_t i = 0; op == AVERAGE && i < n; i++) {
		char *a = (char *)to + i * width;
		uint64_t x;
		if (vc_reduce_is_float(type)) {
			store(a, type, load(a, type) / ranks);
		} else {
			x = load_whole(a, type);
			x = has_sign(type) ? (uint64_t)((int64_t)x / ranks) : x / (uint64_t)ranks;
			memcpy(a, &x, width);
		}
	}
}
