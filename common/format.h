/* SPDX-License-Identifier: Apache-2.0 */
/* format.h - numbers as people read them, with integers only: the same on every machine. */
#pragma once

#include "common/std.h"

#define VC_GIB (1ull << 30)
#define VC_MIB (1ull << 20)
enum { VC_FORMAT = 40 }; /* bytes every buffer below must hold; all return it */

/* Bytes a * b / c without overflow, rounded to nearest, down and up; c > 0. */
uint64_t vc_muldiv(uint64_t a, uint64_t b, uint64_t c);
uint64_t vc_muldiv_down(uint64_t a, uint64_t b, uint64_t c);
uint64_t vc_muldiv_up(uint64_t a, uint64_t b, uint64_t c);

char *vc_format_bytes(uint64_t bytes, char *buf);               /* "79.1 GiB" "0.53 GiB" "24 MiB" */
/* In the unit of `all`, so that all numbers of a picture have one: "0.16 GiB"; what is less than a
 * tenth of that unit in its own. all 0: its own. */
char *vc_format_in(uint64_t bytes, uint64_t all, char *buf);
/* "38.6 of 39.4 GiB": both in one unit; buf holds 2 * VC_FORMAT. */
char *vc_format_of(uint64_t bytes, uint64_t all, char *buf);
/* "21.0 to 25.3 GiB", the same way. */
char *vc_format_band(uint64_t low, uint64_t high, char *buf);
char *vc_format_ns(uint64_t ns, char *buf);                     /* "11.32 s" "534 ms" "2 min 5 s" */
char *vc_format_count(uint64_t n, char *buf);                   /* "11,193" */
char *vc_format_percent(uint64_t part, uint64_t whole, char *buf); /* "95.6 %" */

/* An axis from 0: the step between ticks, and the unit its numbers are printed in. */
struct vc_axis { uint64_t top, step, unit; const char *name; };
struct vc_axis vc_axis_bytes(uint64_t most, unsigned ticks); /* top is just above `most` */
struct vc_axis vc_axis_ns(uint64_t span, unsigned ticks);    /* top = span */
struct vc_axis vc_axis_count(uint64_t span, unsigned ticks); /* top = span */
/* The next tick; false behind the last one. for (at = 0, more = true; more; more =
 * vc_axis_next(&a, &at)) */
bool vc_axis_next(const struct vc_axis *a, uint64_t *at);
char *vc_axis_text(const struct vc_axis *a, uint64_t at, char *buf);
