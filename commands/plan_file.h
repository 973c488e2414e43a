/* SPDX-License-Identifier: Apache-2.0 */
/* plan_file.h - plans of memory as files, for the commands that write them. */
#pragma once

#include "common/memory_plan.h"

/* The file appears whole or not at all. */
int vc_plan_file_write(const struct vc_memory_plan *p, const char *path, struct vc_error *err);
