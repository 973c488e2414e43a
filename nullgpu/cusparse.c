/* SPDX-License-Identifier: Apache-2.0 */
/* cusparse.c - libcusparse: the one function that does not return a status. */
#include "nullgpu/null.h"

VC_API(const char *, cusparseGetErrorString, int e)
{
	return e ? "cuSPARSE error" : "success";
}
