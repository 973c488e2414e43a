/* SPDX-License-Identifier: Apache-2.0 */
/* cells.h - what a report (emit.h) collects before it can print it: columns are aligned, and a
 * table's heads are known, only when all of its cells are there. */
#pragma once

#include "common/io.h"

struct vc_cell { char *head, *value; bool number; size_t row; };

struct vc_cells {
	struct vc_output *out;
	bool csv, markdown;     /* else for a terminal */
	struct vc_cell *cell; size_t n, cap;
	size_t rows;            /* that are complete */
	bool nomem;
};

void vc_cells_add(struct vc_cells *t, const char *head, const char *value, bool number);
/* As lines of "label  value", or as a table with a line a row; then there are none. */
void vc_cells_group(struct vc_cells *t);
void vc_cells_table(struct vc_cells *t);
/* Words as Markdown shows them as they are: "<module>" is no tag, and "|" ends no cell. */
void vc_cells_marked(struct vc_cells *t, const char *v);
