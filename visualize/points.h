/* SPDX-License-Identifier: Apache-2.0 */
/* points.h - the usage curve as points in time, for trace viewers. */
#pragma once

#include "simulator/replay/result.h"

struct vc_point { uint64_t ns, allocated, reserved, stranded; };
enum { VC_POINTS = 3 };

/* The bucket as at most VC_POINTS points whose times grow; its minimum and maximum are among them.
 * Returns how many. */
size_t vc_points(const struct vc_result *r, size_t bucket, struct vc_point at[VC_POINTS]);
/* When something happened: its time, or a microsecond per event where the run has no times. */
uint64_t vc_point_ns(const struct vc_result *r, uint64_t event, uint64_t time_ns);
/* "train.vct: torch 2.9 expandable_segments:True" */
void vc_point_title(const struct vc_result *r, char *buf, size_t cap);
