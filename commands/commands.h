/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - every command of commands.def, for the front door. */
#pragma once

#include "common/opt.h"
#include "common/system.h"

#define VC_GROUP(title)
#define VC_COMMAND(id) extern const struct vc_command vc_command_##id;
#include "commands/commands.def"
#undef VC_COMMAND
#undef VC_GROUP
