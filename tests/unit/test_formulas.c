/* SPDX-License-Identifier: Apache-2.0 */
/* test_formulas.c - published figures: ZeRO, DeepSpeed, optimizers, LoRA, QLoRA, layers. */
#include "tests/support/test.h"

#include <math.h>

#include "simulator/transforms/formulas.h"

#define GIB (1024.0 * 1024 * 1024)

static void near(double got, double want, double slack)
{
	if (fabs(got - want) > slack)
		fail_msg("got %.6f, want %.6f", got, want);
}

static void the_zero_paper(void **unused)
{
	(void)unused;
	near(vc_zero_states(7.5e9, 0, 64) / 1e9, 120, 0.001);
	near(vc_zero_states(7.5e9, 1, 64) / 1e9, 31.406, 0.001);
	near(vc_zero_states(7.5e9, 2, 64) / 1e9, 16.641, 0.001);
	near(vc_zero_states(7.5e9, 3, 64) / 1e9, 1.875, 0.001);
}

static void deepspeed_on_t5_3b_with_eight_cards(void **unused)
{
	(void)unused;
	near(vc_deepspeed_gpu(2851e6, 32e6, 2, 8, 0) / GIB, 15.93, 0.005);
	near(vc_deepspeed_gpu(2851e6, 32e6, 2, 8, 1) / GIB, 5.31, 0.005);
	near(vc_deepspeed_gpu(2851e6, 32e6, 3, 8, 0) / GIB, 6.09, 0.01);
	near(vc_deepspeed_gpu(2851e6, 32e6, 3, 8, 1) / GIB, 0.78, 0.005);
	near(vc_deepspeed_gpu(2851e6, 32e6, 3, 8, 2) / GIB, 0.12, 0.005);
}

static void optimizer_states_byte_by_byte(void **unused)
{
	struct vc_tensor_shape m = { 4096, 14336 }, v = { 1000000, 1 }, small = { 4095, 1 };

	(void)unused;
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAM8BIT, v, 4, 256), 2031256);
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAM8BIT, small, 4, 256), 32760);
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAFACTOR, m, 4, 0), 73728);
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAM, m, 4, 0), 469762048);
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAMW, v, 2, 0), 4000000);
	assert_int_equal(vc_optimizer_state(VC_OPT_SGD, v, 4, 0), 0);
	assert_int_equal(vc_optimizer_state(VC_OPT_MOMENTUM, v, 4, 0), 4000000);
	assert_int_equal(vc_optimizer_state(VC_OPT_AMSGRAD, v, 4, 0), 12000000);
}

static void lora_and_qlora(void **unused)
{
	(void)unused;
	assert_int_equal(vc_lora_values(4096, 4096, 8), 65536);
	near(vc_nf4_bits(false), 4.5, 1e-9);
	near(vc_nf4_bits(true), 4.127, 0.0005);
}

static void transformer_layers(void **unused)
{
	(void)unused;
	near(vc_llama_layer(4096, 14336, 0.25), 167936, 0.5);
	near(vc_gpt_layer(4096, 32, 2048, 1, VC_RECOMPUTE_SELECTIVE), 34 * 4096, 0.5);
	near(vc_gpt_layer(12288, 96, 2048, 1, VC_RECOMPUTE_NONE) / 12288, 34 + 80, 0.01); /* GPT-3: 80 */
	near(vc_logits(2048, 50257), 2048.0 * 50257 * 16, 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_zero_paper),
		cmocka_unit_test(deepspeed_on_t5_3b_with_eight_cards),
		cmocka_unit_test(optimizer_states_byte_by_byte),
		cmocka_unit_test(lora_and_qlora),
		cmocka_unit_test(transformer_layers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
