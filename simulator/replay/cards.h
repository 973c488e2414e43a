/* SPDX-License-Identifier: Apache-2.0 */
/* cards.h - profiles of real GPUs: what a process on them sees and how fast they are. */
#pragma once

#include "common/error.h"
#include "simulator/replay/device.h"

enum vc_card_rate {
	VC_RATE_FP32, VC_RATE_TF32, VC_RATE_FP16, VC_RATE_BF16, VC_RATE_FP8, VC_RATE_FP64
};

enum vc_card_sure {
	VC_CARD_SEEN,     /* the total was printed on a machine that named the card */
	VC_CARD_MESSAGE,  /* read out of an out-of-memory message or a test constant */
	VC_CARD_ESTIMATE, /* nobody printed it: from a card of the same size; up to 150 MiB off */
};

/* Memory that one process holds beside the allocator when the card is not known: an ordinary
 * single-GPU run with cuBLAS; seen between 107 and 555 MiB with the card named. */
#define VC_CARD_CONTEXT (450ull << 20)

/* The same for a card with no figure of its own. A context sets aside memory for each thread that
 * the card can hold, and about 2 KiB of it: bare contexts were seen at 107 MiB (RTX 4060 Ti, 34
 * SMs), 256 (RTX 3090, 82), 426 (RTX 6000 Ada, 142) and 555 (RTX PRO 6000, 188), all with 1,536
 * threads an SM (github.com ggml-org/llama.cpp 23604, invoke-ai/InvokeAI 9413,
 * unslothai/unsloth-zoo 1053). Kernels are loaded when first used since CUDA 11.7: 48 MiB of
 * them, between the 7 and 125 MiB by which contexts in messages of cards named in the table lie
 * above the bare one. */
#define VC_CARD_THREADS(major, minor) ((major) == 7 && (minor) == 5 ? 1024ull : \
	((major) == 8 && (minor) != 0) || (major) == 12 ? 1536ull : 2048ull)
#define VC_CARD_CONTEXT_OF(major, minor, sms) \
	((48ull << 20) + 2048ull * VC_CARD_THREADS(major, minor) * (sms))

struct vc_card {
	const char *name;      /* "rtx4090" */
	const char *title;     /* "GeForce RTX 4090" */
	uint64_t total;        /* bytes cudaMemGetInfo reports on Linux */
	uint64_t prop_total;   /* totalGlobalMem of the device properties */
	uint64_t context;      /* bytes outside the allocator, seen or by VC_CARD_CONTEXT_OF */
	uint32_t smi_mib;      /* total that nvidia-smi shows, MiB; 0 = not seen */
	int cc_major, cc_minor;
	uint32_t sms;
	double bandwidth_gbs;  /* memory, GB/s (1000^3) */
	double fp32_tflops;
	double half_tflops;    /* dense bf16 or fp16 on tensor cores; 0 = none */
	enum vc_card_sure sure;
	enum vc_device_kind kind;
	const char *source;    /* where the total comes from */
};

extern const struct vc_card vc_cards[];
extern const size_t vc_cards_n;

/* Parts of cards, cards with error correction the other way, laptops, and cards that are older,
 * smaller or rarer: found where they are named, never suggested. */
extern const struct vc_card vc_card_parts[];
extern const size_t vc_card_parts_n;

/* The card called `name`: its key, its title, the device name a recording carries, or the words of
 * it that people write ("RTX3080 Ti", "H100-SXM5-80GB", "tesla v100 32gb"); of cards whose memory
 * differs by less than 1 % (PCIe, SXM) the smallest. Behind it may stand how it is used: +windows,
 * +ecc, +noecc, a part (+1g.5gb). NULL: none or several. */
const struct vc_card *vc_card_by_name(const char *name);

/* The card that a user named; where there is none, or several fit, a sentence that names the
 * candidates: those that differ only in the way they are built in have other clocks and other
 * multiprocessors, too. */
int vc_card_find(const char *name, const struct vc_card **card, struct vc_error *err);

/* What whoever wrote `name` should know of the card: that its total was never printed, how Windows
 * lends memory; "" when there is nothing. */
const char *vc_card_remark(const char *name, char *buf, size_t size);

/* The most of `rate` that the card computes, 10^12 operations a second; NVIDIA's only. */
double vc_card_tflops(const struct vc_card *c, enum vc_card_rate rate);

/* Whose card that is: of a row, else by the maker's name in it; NULL: NVIDIA's. */
enum vc_device_kind vc_card_kind(const char *name);

/* Context of the card a recording names, 0 for one without a row; never more than what the
 * recording left of its card, for it was there. */
uint64_t vc_card_context(const char *name, uint64_t most);

/* The card on which so many bytes were all that an allocator held or could have had: of those that
 * have a little more, which goes to *beside, the one whose context that is most nearly. NULL: none
 * is like that, *beside is 0. */
const struct vc_card *vc_card_full(uint64_t bytes, uint64_t *beside);

/* Programs and libraries look at the compute capability and at the multiprocessors: cards that
 * agree in them make the same requests. */
bool vc_card_same_class(const struct vc_card *a, const struct vc_card *b);

/* The highest clocks of the multiprocessors and of the memory, MHz. Where nobody printed them they
 * follow from the vendor's fp32 rate, and the memory's is 0. */
void vc_card_clocks(const struct vc_card *c, int *sm_mhz, int *memory_mhz);

/* The card as a table of workspaces names it, "8.0/108@1410,1593" (docs/reference/null-gpu.md). */
void vc_card_in_table(const struct vc_card *c, char *buf, size_t n);

const char *vc_card_sure_name(enum vc_card_sure s); /* "seen" "message" "estimate" */
