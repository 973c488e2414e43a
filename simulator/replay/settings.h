/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - allocator settings that a program changes at run time, in a run that began with
 * others than the recorded one. */
#pragma once

#include "common/error.h"

/* The program made `text` of `was`; what it would have made of `is`, into buf, for n bytes at most.
 * vLLM writes the whole string anew, with one option more, and later the old string again. */
const char *vc_settings_over(const char *text, const char *was, const char *is, char *buf,
			     size_t n);
