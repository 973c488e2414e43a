/* SPDX-License-Identifier: Apache-2.0 */
/* test_torch_names.c - frames as PyTorch 2.9 and Transformers 4.57 have them, and look-alikes. */
#include "tests/support/test.h"

#include "common/torch_names.h"
#include "common/torch_sizes.h"

#define SITE "/usr/lib/python3/site-packages/"

static const struct { const char *file, *function; uint32_t roles; } frames[] = {
	{ SITE "torch/optim/adam.py", "_multi_tensor_adam",
	  VC_NAME_OPTIMIZER | VC_NAME_OPTIM | VC_NAME_HINT_OPTIMIZER },
	{ SITE "torch/amp/grad_scaler.py", "scale", VC_NAME_OPTIMIZER | VC_NAME_QUIET },
	{ SITE "torch/amp/grad_scaler.py", "_lazy_init_scale_growth_tracker",
	  VC_NAME_OPTIMIZER | VC_NAME_QUIET },
	{ SITE "keras/src/optimizers/base_optimizer.py", "apply",
	  VC_NAME_OPTIMIZER | VC_NAME_HINT_OPTIMIZER },
	{ SITE "deepspeed/runtime/base_optimizer.py", "scale_if_loss",
	  VC_NAME_HINT_OPTIMIZER },
	{ SITE "torch/autograd/graph.py", "_engine_run_backward",
	  VC_NAME_ENGINE | VC_NAME_HINT_BACKWARD },
	{ SITE "torch/_tensor.py", "backward",
	  VC_NAME_BACKWARD | VC_NAME_QUIET | VC_NAME_HINT_BACKWARD },
	{ SITE "torch/nn/modules/linear.py", "forward",
	  VC_NAME_LINEAR | VC_NAME_MODULE | VC_NAME_NN | VC_NAME_FORWARD | VC_NAME_HINT_FORWARD },
	{ SITE "torch/nn/modules/transformer.py", "forward",
	  VC_NAME_TRANSFORMER | VC_NAME_MODULE | VC_NAME_NN | VC_NAME_FORWARD |
		  VC_NAME_HINT_FORWARD },
	{ SITE "torch/nn/modules/conv.py", "_conv_forward",
	  VC_NAME_CONV | VC_NAME_MODULE | VC_NAME_NN },
	{ SITE "transformers/pytorch_utils.py", "forward",
	  VC_NAME_CONV1D | VC_NAME_FORWARD | VC_NAME_HINT_FORWARD },
	{ SITE "torch/nn/functional.py", "softmax",
	  VC_NAME_SOFTMAX | VC_NAME_KEEPS | VC_NAME_NN | VC_NAME_HINT_FORWARD },
	{ SITE "torch/nn/functional.py", "max_pool2d",
	  VC_NAME_POOL | VC_NAME_NN | VC_NAME_HINT_FORWARD },
	{ SITE "transformers/loss/loss_utils.py", "ForCausalLMLoss", VC_NAME_LOSS_UTILS },
	{ SITE "transformers/activations.py", "forward",
	  VC_NAME_ACTIVATIONS | VC_NAME_FORWARD | VC_NAME_HINT_FORWARD },
	{ SITE "transformers/models/llama/modeling_llama.py", "repeat_kv",
	  VC_NAME_MODELS | VC_NAME_REPEAT },
	{ "vramcast_null_values.py", "__torch_dispatch__", VC_NAME_DRY_RUN },
	{ SITE "torch/_ops.py", "__call__", VC_NAME_DRY_RUN },
	{ "/home/me/my_ops.py", "__call__", 0 },
	/* a user's own */
	{ "/home/me/linear.py", "train", 0 },
	{ "/home/me/conv.py", "scaled", 0 },
	{ "/home/me/pytorch_utils.py", "main", 0 },
	{ "/home/me/adam.pyx", "step", 0 },
	{ "", "", 0 },
};

static void frames_have_the_roles_of_their_rows(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < sizeof(frames) / sizeof(*frames); i++) {
		uint32_t found = vc_torch_roles(frames[i].file, frames[i].function, UINT32_MAX);

		if (found != frames[i].roles)
			fail_msg("%s %s: %#x, not %#x", frames[i].file, frames[i].function, found,
				 frames[i].roles);
		assert_int_equal(vc_torch_roles(frames[i].file, frames[i].function,
						VC_NAME_MODULE | VC_NAME_NN),
				 frames[i].roles & (VC_NAME_MODULE | VC_NAME_NN));
	}
}

static void workspaces_are_of_two_sizes(void **unused)
{
	(void)unused;
	assert_true(vc_is_torch_workspace(8519680) && vc_is_odd_torch_workspace(8519680));
	assert_true(vc_is_torch_workspace(33554432) && !vc_is_odd_torch_workspace(33554432));
	/* 1024 x 1024 floats are a weight, and what cuBLASLt borrows is given back at once */
	assert_false(vc_is_torch_workspace(4 << 20));
	assert_false(vc_is_torch_workspace(8519680 + 512) || vc_is_torch_workspace(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_have_the_roles_of_their_rows),
		cmocka_unit_test(workspaces_are_of_two_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
