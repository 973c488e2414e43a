/* SPDX-License-Identifier: Apache-2.0 */
/* site.h - call sites as a person would name them. */
#pragma once

#include "common/meta.h"

/* The frame a person would look for: the innermost outside the framework, else the innermost in
 * Python, else `site` itself. */
uint32_t vc_site_shown(const struct vc_meta *m, uint32_t site);
/* The innermost frame that is not of what recorded the stack (PyTorch's unwinder): there the memory
 * was asked for. */
uint32_t vc_site_asking(const struct vc_meta *m, uint32_t site);
/* "train.py:140 step" of the frame vc_site_shown; "" when the site is unknown. */
void vc_site_text(const struct vc_meta *m, uint32_t site, char *buf, size_t cap);
/* The part of a file name that gives nobody away: inside a package from the package's folder on,
 * else the last part. Points into path. */
const char *vc_site_public(const char *path);
const char *vc_label_text(const struct vc_meta *m, uint32_t label); /* "" when unknown */
