/* SPDX-License-Identifier: Apache-2.0 */
/* plan_table.h - tables of workspaces: what cuDNN's plans take, a row for each convolution
 * (docs/reference/null-gpu.md). */
#pragma once

#include "common/convolution.h"
#include "common/map.h"

/* Rows of one card and one version of cuDNN. All zero: none. */
struct vc_plan_table {
	char *text; size_t n, cap;   /* "KEY\0PLANS\0" one after the other */
	struct vc_map at;            /* by hash of the key: place in text + 1 */
};

/* Add the rows of a file for that card ("8.0/108@1410,1593") and version ("9.19.0"), as far as
 * there is none with their key. A file that is not there has none. wrong: lines that are no rows
 * (its first number, 0: none), or NULL. False: no memory. */
bool vc_plan_table_read(struct vc_plan_table *t, const char *path, const char *card,
			const char *version, size_t *wrong);
bool vc_plan_table_add(struct vc_plan_table *t, const char *key, const char *plans);
bool vc_plan_table_find(const struct vc_plan_table *t, const char *key,
			struct vc_cudnn_plans *out);
void vc_plan_table_fini(struct vc_plan_table *t);
