/* SPDX-License-Identifier: Apache-2.0 */
/* ask_cudnn.h - asks the installed cuDNN which plans it would make, for predictions. */
#pragma once

#include "common/opt.h"
#include "simulator/session/named_plans.h"

/* The library is the one beside the PyTorch of python3 (VRAMCAST_NULL_CUDNN_LIBRARY names another;
 * empty: nobody is asked). It is loaded by a process of its own, once somebody asks; what it says
 * joins the table that dry runs keep. */
extern const struct vc_asker vc_installed_asker;

/* Where these are among a command's options, its runs ask the installed cuDNN. config: of the
 * command, which begins with its struct vc_run_options then. */
void vc_ask_cudnn(const struct vc_option *const *tables, void *config);
