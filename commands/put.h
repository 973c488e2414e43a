/* SPDX-License-Identifier: Apache-2.0 */
/* put.h - variables for the programs that we start, in our own environment. */
#pragma once

#include "common/error.h"

static inline int vc_put(const char *name, const char *value, struct vc_error *err)
{
	return setenv(name, value, 1) < 0 ? vc_nomem(err, "the environment") : VC_OK;
}

static inline int vc_put_number(const char *name, uint64_t v, struct vc_error *err)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	return vc_put(name, text, err);
}
