/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel_name.c - names of kernels, as recordings of an H100 hold them. */
#include "tests/support/test.h"

#include "common/kernel_name.h"

static const char *const names[][2] = {
	{ "_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb",
	  "at::native::vectorized_gather_kernel" },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_13AUnaryFunctorIlllNS0_15binary_"
	  "internal10MulFunctorIlEEEESt5arrayIPcLm2EEEEviT0_T1_",
	  "at::native::vectorized_elementwise_kernel<AUnaryFunctor, binary_internal, MulFunctor, "
	  "array>" },
	{ "_ZN2at6native54_GLOBAL__N__f8a10d72_21_ForeachPointwiseOp_cu_ef478fac25multi_tensor_"
	  "apply_kernelINS1_18TensorListMetadataILi3EEENS1_24PointwiseOpScalarFunctorIfLi3ELi3ELi0"
	  "EEEJSt10multipliesIfEfEEEvT_T0_DpT1_",
	  "at::native::multi_tensor_apply_kernel<TensorListMetadata, PointwiseOpScalarFunctor, "
	  "multiplies>" },
	{ "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastIZZZNS0_23"
	  "direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_clEvENKUlvE5_clEvEUlfE_EE"
	  "vS4_RKT_EUliE_EEviT1_",
	  "at::native::elementwise_kernel<gpu_kernel_impl_nocast, direct_copy_kernel_cuda, "
	  "TensorIteratorBase>" },
	{ "_Z15elemWiseRNNcellIfffL14cudnnRNNMode_t2EL18cudnnRNNBiasMode_t2EEviiiiibPKT_S4_",
	  "elemWiseRNNcell" },
	{ "_ZN7cutlass7Kernel2I50cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4EEvNT_6ParamsE",
	  "cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4, Params>" },
	{ "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n", "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n" },
	{ "Memcpy HtoD", "Memcpy HtoD" },
	{ "", "" }, { "_Z", "_Z" }, { "_ZN", "_ZN" }, { "_Z9", "_Z9" },
	{ "_ZN99999a", "_ZN99999a" },
	{ "_ZN2at", "_ZN2at" },
};

static void names_are_read_as_people_read_them(void **unused)
{
	char buf[VC_KERNEL_NAME];

	(void)unused;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_string_equal(vc_kernel_name(names[i][0], buf), names[i][1]);
}

static void what_is_too_long_is_cut(void **unused)
{
	char name[2000] = "_ZN2at1500", buf[VC_KERNEL_NAME];

	(void)unused;
	memset(name + 10, 'x', 1500);
	assert_int_equal(strlen(vc_kernel_name(name, buf)), VC_KERNEL_NAME - 1);
	for (size_t i = 0; i < 1510; i++) { /* however it is cut off */
		name[1510 - i] = '\0';
		vc_kernel_name(name, buf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_read_as_people_read_them),
		cmocka_unit_test(what_is_too_long_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
