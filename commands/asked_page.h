/* SPDX-License-Identifier: Apache-2.0 */
/* asked_page.h - report --ask: the page (page/) with recordings in it, which can be asked. */
#pragma once

#include "simulator/session/request.h"

/* Writes `to`; the page opens the recordings under the settings of `o`. */
int vc_asked_page(const struct vc_run_options *o, size_t n, char **paths, const char *to,
		 struct vc_error *err);
