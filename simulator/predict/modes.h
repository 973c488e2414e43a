/* SPDX-License-Identifier: Apache-2.0 */
/* modes.h - training and evaluation apart: which parameter acts in which, and which allocation
 * belongs to which. */
#ifndef VC_MODES_H
#define VC_MODES_H

#include "simulator/predict/allocations.h"

enum vc_part { VC_PART_ALL /* both, or unknown */, VC_PART_TRAIN, VC_PART_EVAL };

/* The part that a parameter's name confines it to ("train_batch", "eval_batch", "val_batch");
 * *rest (opt) is the name without that word ("batch"), which points into name. */
enum vc_part vc_part_of_name(const char *name, const char **rest);

/* Fill part[m->n] (enum vc_part) by the phases that the recording shows. *found: phases are known
 * well enough and there is an evaluation among them; else part is all VC_PART_ALL. Errors:
 * VC_ENOMEM. */
int vc_parts_read(const struct vc_member *m, uint8_t *part, bool *found, struct vc_error *err);

#endif
