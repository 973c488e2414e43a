/* SPDX-License-Identifier: Apache-2.0 */
/* card_rates.c - what a card computes at best, by what it computes in.
 *
 * Sources: NVIDIA's data sheets of the V100, T4, A100, L4, L40S, H100 and B200, its papers on
 * Ampere (GA102), Ada and Blackwell, and the table of arithmetic throughput in the CUDA C++
 * Programming Guide. Dense rates, sums in float. The two published columns of cards.def give the
 * others: every maker's table since Ampere has TF32 at half of 16 bit (A100: 156 and 312, H100: 495
 * and 989, RTX 4090: 82.6 and 165), and 8-bit floats at twice since 8.9. */
#include "simulator/replay/cards.h"

/* Of the float rate, what doubles reach: tensor cores take them on 8.0 and 9.0. */
static double of_doubles(int cc)
{
	switch (cc) {
	case 80: case 90: return 1;
	case 60: case 70: case 100: return 1 / 2.0;
	case 61: case 75: return 1 / 32.0;
	}
	return 1 / 64.0;
}

double vc_card_tflops(const struct vc_card *c, enum vc_card_rate rate)
{
	int cc = c->cc_major * 10 + c->cc_minor;
	double single = c->fp32_tflops, half = c->half_tflops > 0 ? c->half_tflops : single;

	switch (rate) {
	case VC_RATE_TF32: return cc >= 80 && half / 2 > single ? half / 2 : single;
	case VC_RATE_FP16: return cc == 60 ? 2 * single : half;
	case VC_RATE_BF16: return cc >= 80 ? half : single; /* before, converted to float */
	case VC_RATE_FP8: return cc >= 89 ? 2 * half : half;
	case VC_RATE_FP64: return single * of_doubles(cc);
	case VC_RATE_FP32: break;
	}
	return single;
}
