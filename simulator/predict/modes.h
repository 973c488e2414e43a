/* SPDX-License-Identifier: Apache-2.0 */
/* modes.h - training and evaluation apart: which parameter acts in which, and which allocation
 * belongs to which. */
#ifndef VC_MODES_H
#define VC_MODES_H

#include "simulator/predict/allocations.h"

enum vc_mode { VC_MODE_ALL /* both, or unknown */, VC_MODE_TRAIN, VC_MODE_EVAL };

/* The part that a parameter's name confines it to ("train_batch", "eval_batch", "val_batch");
 * *rest (opt) is the name without that word ("batch"), which points into name. */
enum vc_mode vc_mode_of_name(const char *name, const char **rest);

/* Fill part[m->n] (enum vc_mode) by the phases that the recording shows. *found: phases are known
 * well enough and there is an evaluation among them; else part is all VC_MODE_ALL. Errors:
 * VC_ENOMEM. */
int vc_modes_read(const struct vc_allocations *m, uint8_t *part, bool *found, struct vc_error *err);

#endif
