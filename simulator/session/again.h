/* SPDX-License-Identifier: Apache-2.0 */
/* again.h - the command behind a run once more, with something changed: a line to paste into a
 * shell. */
#pragma once

#include "simulator/session/request.h"

/* "vramcast sim a.vct@batch=8 -g a100-40g-sxm --torch 2.9 -x checkpoint": the traces, the options
 * that this plan came from and the options in `how`, which take the place of earlier ones of
 * their kind (-g of -g and --capacity, --set NAME of the same NAME, -x comes on top). Words are
 * quoted for a shell where they need it. At most n bytes with the 0; returns buf. */
char *vc_again(const struct vc_run_options *opt, size_t traces, char *const *trace,
	       const struct vc_plan *plan, const char *how, char *buf, size_t n);
