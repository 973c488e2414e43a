/* SPDX-License-Identifier: Apache-2.0 */
/* keep_open.h - where one process runs many commands, as the page does, recordings stay open. */
#pragma once

#include "common/opt.h"

/* A command whose options are vc_run_options finds them there (simulator/session/shelf.h). */
void vc_keep_open(const struct vc_option *const *tables, void *config);
