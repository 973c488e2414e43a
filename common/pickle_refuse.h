/* SPDX-License-Identifier: Apache-2.0 */
/* pickle_refuse.h - what a pickle may not hold. A part of pickle.c. */
#pragma once

#include "common/pickle_machine.h"

/* Any operation that pickle.c does not know: never 0. */
int pickle_refuse(struct pickle_machine *m, uint8_t op);
