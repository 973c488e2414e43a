/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_workspace.h - how much scratch memory cuDNN's plans ask for. */
#pragma once

#include "nullgpu/cudnn.h"
#include "nullgpu/plans.h"

/* cudnn_workspace.c: by rule, in the order in which the heuristics would name them, at least one;
 * the last is the least. Tells the report. */
void vc_cudnn_by_rule(const struct vc_convolution *c, struct vc_cudnn_plans *out);

/* ---- cudnn_table.c: rows of tables, and what was answered since ---- */
/* The key of a convolution: direction to dilation, one blank between fields. */
void vc_cudnn_key(const struct vc_convolution *c, enum vc_plans_mode mode,
		  char key[VC_PLANS_KEY]);
/* The first row with that key for this card and version. */
bool vc_cudnn_look_up(const char *key, struct vc_cudnn_plans *out);
/* A row for the rest of this process. */
void vc_cudnn_keep(const char *key, const struct vc_cudnn_plans *p);
/* Appends the row to the file of VRAMCAST_NULL_WORKSPACE_LOG, once. */
void vc_cudnn_log(const char *key, const struct vc_cudnn_plans *p);

/* ---- cudnn_ask.c: the process that has the real library ---- */
struct vc_cudnn_node;
/* Its plans for the graph; false: it cannot be asked, or has none. */
bool vc_cudnn_ask(const struct vc_cudnn_node *graph, enum vc_plans_mode mode, const char *key,
		  struct vc_cudnn_plans *out);
/* Why it was not asked or did not answer; "" where nobody could say. */
const char *vc_cudnn_silent(void);
