/* SPDX-License-Identifier: Apache-2.0 */
/* time_names.c - what the name of a kernel says: which kernels serve one purpose, what limits them,
 * which phase of a training step they belong to. */
#include <ctype.h>

#include "simulator/time/time_profile.h"

static const char *const products[] = { "gemm",  "cublas", "xmma",  "cutlass", "wgmma",
				       "nvjet", "matmul", "Cijk_", NULL };
static const char *const convolutions[] = { "conv", "wgrad", "dgrad", "cudnn", "winograd", NULL };
static const char *const attentions[] = { "fmha", "flash", "sdpa", NULL };

static bool has(const char *name, const char *const *words)
{
	for (; *words; words++)
		if (strstr(name, *words))
			return true;
	return false;
}

static uint64_t mix(uint64_t h, unsigned char c)
{
	return (h ^ c) * 0x100000001b3ull; /* FNV-1a */
}

uint64_t vc_kernel_exact(const char *name)
{
	uint64_t h = 0xcbf29ce484222325ull;

	for (; *name; name++)
		h = mix(h, (unsigned char)*name);
	return h;
}

static bool backward_word(const char *name)
{
	static const char *const words[] = {
		"backward",   "Backward",  "_bwd",        "bwd_",          "Bwd", "BackProp",
		"grad_input", "GradInput", "grad_weight", "fmha_cutlassB", NULL };

	return has(name, words);
}

/* Libraries choose among kernels of one purpose by size: one token for all of them. Elsewhere the
 * numbers in a name are tile sizes and vector widths. */
uint64_t vc_kernel_token(const char *name)
{
	bool back = backward_word(name), wide = has(name, products) || has(name, convolutions);
	uint64_t h = 0xcbf29ce484222325ull;

	if (strstr(name, "splitK") || strstr(name, "splitk_reduce") || strstr(name, "split_k"))
		return VC_TOKEN_PARTS;
	if (has(name, attentions))
		return back ? VC_TOKEN_ATTENTION_BACKWARD : VC_TOKEN_ATTENTION;
	if (wide && !strstr(name, "at::native") && !strstr(name, "N2at6native"))
		return has(name, convolutions) && !has(name, products) ?
			VC_TOKEN_CONVOLUTION : VC_TOKEN_PRODUCT;
	for (; *name; name++)
		if (!isdigit((unsigned char)*name))
			h = mix(h, (unsigned char)*name);
	return h | 1;
}

enum vc_kernel_call vc_kernel_call(const char *name)
{
	if (has(name, attentions))
		return VC_CALL_ATTENTION;
	if (strstr(name, "at::native") || strstr(name, "N2at6native") || strstr(name, "convert"))
		return VC_CALL_OTHER;
	if (has(name, convolutions) && !has(name, products))
		return VC_CALL_CONVOLUTION;
	return has(name, products) ? VC_CALL_PRODUCT : VC_CALL_OTHER;
}

enum vc_kernel_bound vc_kernel_bound(const char *name)
{
	static const char *const half[] = { "f16",  "h16",  "h1688",    "hmma",   "half", "Half",
					   "fp16", "bf16", "BFloat16", "s16816", "h884",
					   "fp8",  NULL };
	bool product = has(name, products) || has(name, convolutions) || has(name, attentions);

	if (!product || strstr(name, "at::native::elementwise") || strstr(name, "convert"))
		return VC_BOUND_BYTES;
	return has(name, half) ? VC_BOUND_HALF : strstr(name, "tf32") ? VC_BOUND_TF32 :
								      VC_BOUND_FP32;
}

static bool optimizer_word(const char *name)
{
	static const char *const words[] = {
		"multi_tensor_apply", "multi_tensor", "Adam", "adam", "Lamb", "lamb_", "Lion",
		"Optimizer",          "optimizer",    NULL };

	return has(name, words);
}

/* The step may begin anywhere in the cycle; it is taken to begin behind the optimizer where that
 * can be seen, else where the cycle begins. */
bool vc_profile_phases(const struct vc_profile *p, uint8_t *phase)
{
	size_t n = p->beats, last_optimizer = n, start = 0, backward = n, optimizer = n;

	for (size_t i = 0; i < n; i++)
		if (optimizer_word(p->beat[i].name))
			last_optimizer = i;
	if (last_optimizer < n)
		start = last_optimizer + 1;
	for (size_t k = 0; k < n; k++) {
		const char *name = p->beat[(start + k) % n].name;

		if (backward == n && backward_word(name))
			backward = k;
		if (backward < n && optimizer == n && optimizer_word(name))
			optimizer = k;
	}
	for (size_t k = 0; k < n; k++)
		phase[(start + k) % n] = k >= optimizer ? VC_KERNEL_OPTIMIZER :
			k >= backward ? VC_KERNEL_BACKWARD : VC_KERNEL_FORWARD;
	return backward < n;
}
