/* SPDX-License-Identifier: Apache-2.0 */
/* plans.h - what the stand-in libcudnn and the process that asks the real one say to each other.
 *
 * The stand-in lives in the recorded program, under the real library's soname; so the real one is
 * loaded by a process of its own (plans_main.c), which the stand-in reaches over a socket. A
 * question is a graph as the program built it: descriptors with their attributes, those that others
 * refer to first, the graph last. The answer is the list of plans of one mode of the heuristics.
 *
 * Both ends are of one build and on one machine: numbers are in its own order of bytes. A message
 * is its length (uint32_t) and as many bytes. */
#pragma once

#include "common/convolution.h"

/* The first that can be asked without a GPU: CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR came with 9.8. */
#define VC_PLANS_OLDEST 90800
#define VC_PLANS_MESSAGE (1u << 20)

/* cudnnBackendHeurMode_t */
enum vc_plans_mode { VC_MODE_INSTANT, VC_MODE_B, VC_MODE_FALLBACK, VC_MODE_A };

/* What stands behind a direction in the key of a row. Instant and A are one. */
static inline const char *vc_plans_list(enum vc_plans_mode mode)
{
	static const char *const lists[] = { "", "/b", "/fallback", "" };
	return lists[mode];
}

/* cudnnBackendAttributeType_t, as far as it matters here */
enum { VC_CUDNN_HANDLE = 0, VC_CUDNN_POINTER = 6, VC_CUDNN_DESCRIPTOR = 15 };

/* A message as it is written or read. `bad`: more was read than there is, or no memory. */
struct vc_wire {
	unsigned char *at;
	size_t n, cap, read;
	bool bad;
};

void vc_wire_put(struct vc_wire *w, const void *from, size_t n);
void vc_wire_put_u32(struct vc_wire *w, uint32_t v);
void vc_wire_put_text(struct vc_wire *w, const char *text);
/* The next `n` bytes, zeros where there are none left. */
void vc_wire_get(struct vc_wire *w, void *to, size_t n);
uint32_t vc_wire_get_u32(struct vc_wire *w);
/* Cut off where it does not fit. */
void vc_wire_get_text(struct vc_wire *w, char *to, size_t n);
/* Whole messages; receive replaces what was in *w. False: the other end is gone or is not one of
 * us. */
bool vc_wire_send(int fd, const struct vc_wire *w);
bool vc_wire_receive(int fd, struct vc_wire *w);

/* The table that answers are kept in, in the user's cache folder. */
void vc_plans_path(char *out, size_t n);

/* Bytes of one value by cudnnBackendAttributeType_t. */
size_t vc_plans_width(int type);
