/* SPDX-License-Identifier: Apache-2.0 */
/* null_libraries.h - where the stand-ins of the null GPU are. */
#pragma once

#include "common/error.h"

/* The stand-ins lie in nullgpu/ beside this program (a build tree), in the library folder beside
 * its own, or where the tracer was found. */
int vc_null_libraries(char *out, size_t n, struct vc_error *err);
