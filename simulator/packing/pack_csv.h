/* SPDX-License-Identifier: Apache-2.0 */
/* pack_csv.h - packing problems as files: the columns of MiniMalloc (id,lower,upper,size, and
 * offset in solutions; half-open times), in any order, others are passed over. */
#pragma once

#include "common/io.h"
#include "simulator/packing/packing.h"

struct vc_problem {
	struct vc_packing packing;    /* its blocks are owned by the problem */
	char **id; size_t ids;        /* as written, into `text` */
	char *text;                   /* the file */
	bool placed;                  /* there was a column `offset` */
};

/* Does it begin like such a file? Nothing is consumed. */
bool vc_problem_probe(struct vc_input *in);
int vc_problem_read(struct vc_problem *p, struct vc_input *in, struct vc_error *err);
void vc_problem_write(const struct vc_problem *p, struct vc_output *out);
void vc_problem_fini(struct vc_problem *p);
