/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_grid.h - dryrun with several versions, settings or values: a table, and what grew. */
#pragma once

#include "commands/cmd_dryrun_run.h"

bool vc_dryrun_is_grid(const struct vc_dryrun_config *c);
int vc_dryrun_grid(const struct vc_dryrun_config *c, size_t argc, char **argv,
		   struct vc_console *con);
