/* SPDX-License-Identifier: Apache-2.0 */
/* convolutions.h - which convolutions a recording computed, and what workspace they would borrow at
 * another value of the only parameter: their sizes follow laws, and cuDNN says which plan it would
 * make for those. */
#pragma once

#include "common/convolution.h"
#include "simulator/predict/allocations.h"
#include "simulator/predict/family.h"

/* One time that a convolution was computed. */
struct vc_conv_call {
	uint32_t event;   /* PLAN of the trace */
	uint32_t block;   /* allocation of its workspace; VC_UNMATCHED: it borrowed none */
	uint32_t key;
	bool tried;       /* several of its plans were, to measure which is the fastest
			   * (torch.backends.cudnn.benchmark), in the room of the largest */
};

/* All times that one of the same sizes was. */
struct vc_conv_key {
	struct vc_convolution c;
	char version[16];  /* of cuDNN */
	uint64_t bytes;    /* that it borrowed; UINT64_MAX: it was only tried */
	uint64_t most;     /* that it borrowed while its plans were tried; UINT64_MAX: never */
	uint64_t group;    /* the same for all that may be this one at another value */
	bool mixed;        /* not as many each time */
};

struct vc_convolutions {
	struct vc_conv_call *call; size_t n;
	struct vc_conv_key *key; size_t keys;
	uint32_t *nameless; size_t others; /* blocks that graphs without a key borrowed */
};

/* Errors: VC_ENOMEM. After a failure, too, vc_convolutions_fini. */
int vc_convolutions_read(struct vc_convolutions *c, const struct vc_allocations *m,
			 struct vc_error *err);
void vc_convolutions_fini(struct vc_convolutions *c);

/* Which plans a program passes over (ATen/native/cudnn/Conv_v8.cpp, filterEngineConfigs). */
enum { VC_CONV_NO_TF32 = 1, VC_CONV_DETERMINISTIC = 2, VC_CONV_WAYS = 4 };

/* What cuDNN says of a program's convolutions. */
struct vc_conv_answers {
	const struct vc_answers *from;
	unsigned way;      /* plans passed over: the one that explains most */
	uint64_t known;    /* convolutions of all recordings whose plans it names, ... */
	uint64_t agreed;   /* ... and for which it names what they borrowed */
};

/* Bytes that the plan of c borrows, or that trying all of them does; false: nobody says. */
bool vc_convolutions_plan(const struct vc_conv_answers *a, const struct vc_conv_key *like,
			  const struct vc_convolution *c, bool tried, uint64_t *bytes);

/* Do they name what was borrowed for that key? False: they do not know it either; *known says. */
bool vc_convolutions_agree(const struct vc_conv_answers *a, const struct vc_conv_key *k,
			   bool *known);

/* How well answers explain n recordings, with the best way. */
struct vc_conv_answers vc_convolutions_hold(const struct vc_answers *from,
					    const struct vc_convolutions *c, size_t n);

/* The key in *other of the same convolution, or VC_UNMATCHED: as many are like it in both, and it
 * comes as the same of them. */
uint32_t vc_convolutions_match(const struct vc_convolutions *c, size_t key,
			       const struct vc_convolutions *other);

enum { VC_CONV_SEEN = 64 }; /* recordings, at most */

/* Sizes at value `at` of a convolution that n recordings at x[] computed as seen[]; seen[0] is the
 * one whose kind it is. False: they follow no line that gives whole numbers there. */
bool vc_convolutions_at(const struct vc_convolution *const *seen, const double *x, size_t n,
			double at, struct vc_convolution *out);
