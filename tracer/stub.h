/* SPDX-License-Identifier: Apache-2.0 */
/* stub.h - python/marks.py and python/attach.py, embedded at build time. */
#pragma once

#include "common/std.h"

extern const unsigned char vc_stub[];
extern const size_t vc_stub_size;
extern const unsigned char vc_attach_stub[];
extern const size_t vc_attach_stub_size;
