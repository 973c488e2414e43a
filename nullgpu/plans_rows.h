/* SPDX-License-Identifier: Apache-2.0 */
/* plans_rows.h - rows of a table of shapes become the graphs that PyTorch builds of them. */
#pragma once

#include "nullgpu/plans.h"

/* Writes the graph of one row (its key: direction type layout x w y stride pad dilation) and says
 * which mode of the heuristics is meant; false: it is no such row. */
bool vc_rows_graph(const char *key, struct vc_wire *w, enum vc_plans_mode *mode);
