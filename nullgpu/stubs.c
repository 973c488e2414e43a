/* SPDX-License-Identifier: Apache-2.0 */
/* stubs.c - a function for every name in a list; built once per library.
 *
 * What has real behaviour elsewhere in the library needs no row. All are weak, for functions that
 * only one version of a library defines. These answer "success" (or "not supported"), note that
 * they were called, and fill the outputs that a caller would otherwise read undefined. The rows,
 * which names/stubs.awk makes, are described in names/stubs.txt. */
#include "nullgpu/null.h"

#ifndef VC_NOSUP_CODE
#define VC_NOSUP_CODE VC_NULL_NOSUP
#endif

#define WEAK __attribute__((weak, visibility("default")))
#define BOUND(name) static unsigned char seen; vc_null_bound(#name, &seen)
#define TOUCH(name) static unsigned char seen; vc_null_touch(#name, &seen)
#define ARGS long a0, long a1, long a2, long a3, long a4, long a5, long a6, long a7, long a8, \
	long a9, long a10, long a11, long a12, long a13, long a14, long a15, long a16, long a17, \
	long a18, long a19
#define CLEAR(i, type) if (a##i) { *(type *)a##i = 0; }

#define STUB_SUCCESS(name) WEAK int name(void); \
	WEAK int name(void) { TOUCH(name); return 0; }
#define STUB_UNSUPPORTED(name) WEAK int name(void); \
	WEAK int name(void) { TOUCH(name); return VC_NOSUP_CODE; }
#define STUB_HANDLE(name, i) WEAK int name(ARGS); \
	WEAK int name(ARGS) { static long object[32]; TOUCH(name); \
		if (a##i) { *(long **)a##i = object; } return 0; }
#define STUB_ZERO(name, i, type) WEAK int name(ARGS); \
	WEAK int name(ARGS) { BOUND(name); CLEAR(i, type) return 0; }
#define STUB_ZERO2(name, i, t, j, u) WEAK int name(ARGS); \
	WEAK int name(ARGS) { BOUND(name); CLEAR(i, t) CLEAR(j, u) return 0; }

#define STUB_DONE(name, i) WEAK int name(ARGS); \
	WEAK int name(ARGS) { TOUCH(name); CLEAR(i, int) return 0; }

/* cuSOLVER says nothing of what its scratch is made of. LAPACK's own for the same problems is at
 * most 4 n^2 + 7 n elements (dgesdd; dsyevd 2 n^2 + 6 n + 1, dgeqrf 64 n): assumed here too, of
 * the widest type that a name leaves open. */
#define MATRIX(name, r, c, b) do { \
		const long a_one = 1; \
		uint64_t rows = (uint32_t)a##r, columns = (uint32_t)a##c, many = (uint32_t)a##b; \
		(void)a_one; \
		vc_null_range(#name, &(struct vc_null_range){ \
			.most = 16 * many * (4 * rows * columns + 64 * (rows + columns)) }); \
	} while (0)
#define STUB_MATRIX(name, i, r, c, b) WEAK int name(ARGS); \
	WEAK int name(ARGS) { MATRIX(name, r, c, b); CLEAR(i, int) return 0; }
#define STUB_MATRIX2(name, i, j, r, c, b) WEAK int name(ARGS); \
	WEAK int name(ARGS) { MATRIX(name, r, c, b); CLEAR(i, long) CLEAR(j, long) return 0; }
#define STUB_SPARSE(name, i) WEAK int name(ARGS); \
	WEAK int name(ARGS) { vc_cusparse_scratch(#name); CLEAR(i, long) return 0; }

#include VC_TABLE
