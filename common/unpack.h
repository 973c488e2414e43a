/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.h - gzip, zstd and zip undone piece by piece, those of large files on a thread of
 * their own. A part of io.c. */
#pragma once

#include "common/error.h"

#define VC_RAW_SIZE ((size_t)1 << 18) /* packed bytes fetched at a time */

/* Whatever read(2) gives, 0 at the end. */
int vc_read_some(int fd, const char *name, uint8_t *to, size_t cap, size_t *got,
		 struct vc_error *err);

/* Packed bytes: those at raw[0..n), a buffer of VC_RAW_SIZE that becomes the unpacker's, then what
 * comes from fd. fd and name are lent. *out is NULL, and raw the caller's, where they are plain. */
struct vc_unpack;
int vc_unpack_open(int fd, const char *name, uint8_t *raw, size_t n, struct vc_unpack **out,
		   struct vc_error *err);
int vc_unpack_read(struct vc_unpack *u, uint8_t *to, size_t cap, size_t *got,
		   struct vc_error *err); /* *got 0: the end */
bool vc_unpack_truncated(const struct vc_unpack *u); /* at the end: it came too early */
void vc_unpack_close(struct vc_unpack *u); /* NULL is fine */
