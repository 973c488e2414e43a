/* SPDX-License-Identifier: Apache-2.0 */
/* test_formulas.c - published figures: optimizers, LoRA, QLoRA, layers. */
#include "tests/support/test.h"

#include <math.h>

#include "simulator/anatomy/formulas.h"


static void near(double got, double want, double slack)
{
	if (fabs(got - want) > slack)
		fail_msg("got %.6f, want %.6f", got, want);
}

static void optimizer_states_byte_by_byte(void **unused)
{
	struct vc_tensor_shape m = { 4096, 14336, 0 }, v = { 1000000, 1, 0 };
	struct vc_tensor_shape small = { 4095, 1, 0 };

	(void)unused;
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAM8BIT, v, 4, 256), 2031256);
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAM8BIT, small, 4, 256), 32760);
	assert_int_equal(vc_optimizer_state(VC_OPT_LION8BIT, v, 4, 256), 2031256 / 2);
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
	near(vc_gpt_layer(12288, 96, 2048, 1, VC_RECOMPUTE_NONE) / 12288, 34 + 80,
	     0.01); /* GPT-3: 80 */
	near(vc_logits(2048, 50257), 2048.0 * 50257 * 16, 0.5);
}

/* What HF's, EleutherAI's and PyTorch's documents say each optimizer keeps, per value. */
static void every_optimizer_per_value(void **unused)
{
	static const struct { enum vc_optimizer o; unsigned fp32, bf16;
	} per[] = {
		{ VC_OPT_SGD, 0, 0 },     { VC_OPT_MOMENTUM, 4, 2 }, { VC_OPT_LION, 4, 2 },
		{ VC_OPT_ADAGRAD, 4, 2 }, { VC_OPT_RMSPROP, 4, 2 },  { VC_OPT_ADAM, 8, 4 },
		{ VC_OPT_ADAMW, 8, 4 },   { VC_OPT_LAMB, 8, 4 },     { VC_OPT_AMSGRAD, 12, 6 },
		{ VC_OPT_MUON, 4, 2 },
	};
	struct vc_tensor_shape m = { 4096, 1024, 0 }, v = { 4096, 1, 0 };
	uint64_t n = 4096u * 1024;

	(void)unused;
	for (size_t i = 0; i < sizeof(per) / sizeof(*per); i++) {
		assert_int_equal(vc_optimizer_state(per[i].o, m, 4, 256), n * per[i].fp32);
		assert_int_equal(vc_optimizer_state(per[i].o, m, 2, 256), n * per[i].bf16);
	}
	assert_int_equal(vc_optimizer_state(VC_OPT_MUON, v, 4, 256),
			 8 * 4096); /* AdamW for vectors */
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAFACTOR, v, 2, 0),
			 4 * 4096); /* float, not factored */
	assert_int_equal(vc_optimizer_state(VC_OPT_ADAM8BIT, m, 4, 2048),
			 2 * n + 2 * 4 * (n / 2048));
	/* full AMP, 16-bit, LoRA and 4-bit bytes per value (LLaMA-Factory): 18, 8, 2, 0.5 */
	assert_int_equal(4 + 4 + 2 + vc_optimizer_state(VC_OPT_ADAMW, m, 4, 0) / n, 18);
	assert_int_equal(2 + 2 + vc_optimizer_state(VC_OPT_ADAMW, m, 2, 0) / n, 8);
}

static void korthikanti_s_table(void **unused)
{
	const double h = 20480, a = 128, s = 2048, t = 8, q = 5 * a * s / h;

	(void)unused;
	near(q, 64, 1e-9); /* MT-NLG */
	near(vc_gpt_layer(h, a, s, 1, VC_RECOMPUTE_NONE), h * (34 + q), 0.5);
	near(vc_gpt_layer(h, a, s, t, VC_RECOMPUTE_NONE), h * (10 + 24 / t + q / t), 0.5);
	near(vc_gpt_layer(h, a, s, 1, VC_RECOMPUTE_FULL), 2 * h, 0.5);
	/* attention 11sbh + 5as2b, MLP 19sbh, two norms 4sbh */
	near(vc_gpt_layer(h, a, s, 1, VC_RECOMPUTE_NONE), 11 * h + 5 * a * s + 19 * h + 4 * h, 0.5);
}

static void what_flash_attention_adds_to_a_llama_layer(void **unused)
{
	(void)unused;
	near(vc_llama_rest(32), 136,
	     1e-9); /* 4 bytes of log-sum-exp per head, 8 of norm statistics */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(optimizer_states_byte_by_byte),
		cmocka_unit_test(lora_and_qlora),
		cmocka_unit_test(transformer_layers),
		cmocka_unit_test(every_optimizer_per_value),
		cmocka_unit_test(korthikanti_s_table),
		cmocka_unit_test(what_flash_attention_adds_to_a_llama_layer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
