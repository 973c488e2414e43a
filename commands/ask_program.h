/* SPDX-License-Identifier: Apache-2.0 */
/* ask_program.h - the program behind a recording, run again without a card for other values. */
#pragma once

#include "common/opt.h"

/* A command whose options are vc_run_options may ask it (simulator/session/rerun.h). */
void vc_ask_program(const struct vc_option *const *tables, void *config,
		    const struct vc_console *con);
