/* SPDX-License-Identifier: Apache-2.0 */
/* plans_products.c - what the stand-in libcublasLt needs where there is no null device: in the
 * process that asks cuDNN.
 *
 * cuDNN serves 1 x 1 convolutions by cuBLASLt where that knows an algorithm for the product.
 * cuBLASLt itself cannot be asked without a GPU, so cuDNN would leave those plans out; on an H100
 * it prefers them (docs/measurements/null-gpu.md). The stand-in knows one for every product,
 * without workspace: on that card it was 0 to 464 bytes with channels first. */
#include "nullgpu/null.h"

int vc_null_product(const char *const names[VC_NULL_RATES], void *stream,
		    const struct vc_null_product *product)
{
	(void)names;
	(void)stream;
	(void)product;
	return 0;
}

void vc_null_touch(const char *name, unsigned char *seen)
{
	(void)name;
	*seen = 1;
}

void vc_null_bound(const char *name, unsigned char *seen)
{
	vc_null_touch(name, seen);
}
