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
		int8_t a;
		uint8_t b;
		int32_t c;
		uint32_t d;
		int64_t e;
		uint64_t f;
		uint16_t h;
		float s;
		double t;
	} u = { 0 };
	memcpy(&u, p, vc_reduce_width(type));
	switch (type) {
	case INT8: return u.a;
	case UINT8: return u.b;
	case INT32: return u.c;
	case UINT32: return u.d;
	case HALF: return from_half(u.h);
	case FLOAT: return (double)u.s;
	case DOUBLE: return u.t;
	case BFLOAT16: {
		uint32_t bits = (uint32_t)u.h << 16;
		float f;
		memcpy(&f, &bits, sizeof f);
		return (double)f;
	}
	}
	return 0; /* the 8-bit floats stay what they are */
}

static void store(char *p, int type, double v)
{
	union {
		int8_t a;
		uint8_t b;
		int32_t c;
		uint32_t d;
		uint16_t h;
		float s;
		double t;
	} u = { 0 };
	switch (type) {
	case INT8: u.a = (int8_t)(int64_t)v; break;
	case UINT8: u.b = (uint8_t)(int64_t)v; break;
	case INT32: u.c = (int32_t)(int64_t)v; break;
	case UINT32: u.d = (uint32_t)(int64_t)v; break;
	case HALF: u.h = to_half(v); break;
	case FLOAT: u.s = (float)v; break;
	case DOUBLE: u.t = v; break;
	case BFLOAT16: {
		float f = (float)v;
		uint32_t bits;
		memcpy(&bits, &f, sizeof bits);
		u.h = (uint16_t)(bits >> 16);
		break;
	}
	default: return;
	}
	memcpy(p, &u, vc_reduce_width(type));
}

static int64_t whole(int op, int64_t a, int64_t b)
{
	switch (op) {
	case PRODUCT: return (int64_t)((uint64_t)a * (uint64_t)b);
	case MAXIMUM: return a > b ? a : b;
	case MINIMUM: return a < b ? a : b;
	}
	return (int64_t)((uint64_t)a + (uint64_t)b);
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

void vc_reduce_add(void *to, const void *from, size_t n, int type, int op)
{
	size_t width = vc_reduce_width(type);
	for (size_t i = 0; i < n; i++) {
		char *a = (char *)to + i * width;
		const char *b = (const char *)from + i * width;
		if (type == INT64 || type == UINT64) {
			int64_t x, y;
			memcpy(&x, a, sizeof x);
			memcpy(&y, b, sizeof y);
			x = whole(op, x, y);
			memcpy(a, &x, sizeof x);
		} else {
			store(a, type, real(op, load(a, type), load(b, type)));
		}
	}
}

void vc_reduce_finish(void *to, size_t n, int type, int op, int ranks)
{
	size_t width = vc_reduce_width(type);
	for (size_t i = 0; op == AVERAGE && i < n; i++) {
		char *a = (char *)to + i * width;
		int64_t x;
		if (type == INT64 || type == UINT64) {
			memcpy(&x, a, sizeof x);
			x /= ranks;
			memcpy(a, &x, sizeof x);
		} else {
			store(a, type, load(a, type) / ranks);
		}
	}
}
