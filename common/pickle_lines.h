/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_lines.h - what protocol 0 writes as lines, and what is refused. A part of pickle.c. */
#ifndef VC_PICKLE_LINES_H
#define VC_PICKLE_LINES_H

#include "common/pickle_machine.h"

/* Any operation that pickle.c does not know. */
int pickle_line_operation(struct pickle_machine *m, uint8_t op);

#endif
