/* SPDX-License-Identifier: Apache-2.0 */
/* io.h - bytes in (files, pipes, gzip and zstd recognised by content) and bytes out (atomic). */
#pragma once

#include "common/error.h"

struct vc_input;

/* Open a file or "-" (standard input). Directories are refused. gzip (several members) and zstd
 * (several frames) are recognised by the first bytes and undone; a .vct stays as it is, its reader
 * needs the frames. vc_input_raw gives any file as it is. Unpacking is done piece by piece, and
 * refused beyond 256 times the packed size (the first 4 MiB are free). */
struct vc_input *vc_input_open(const char *path, struct vc_error *err);
struct vc_input *vc_input_raw(const char *path, struct vc_error *err);   /* no decompression */
struct vc_input *vc_input_memory(const void *data, size_t n, struct vc_error *err); /* lent bytes */
/* What was found in another one, whose name it has: bytes on the heap, owned from now on, also when
 * this fails. */
struct vc_input *vc_input_inside(const struct vc_input *of, char *data, size_t n,
				 struct vc_error *err);
void vc_input_close(struct vc_input *in); /* NULL is fine */
/* Standard input, a pipe, what stands behind <(...): it can be opened and read but once. */
bool vc_input_is_stream(const char *path);

/* At least `want` bytes from the current position without consuming them, fewer only at the end
 * of the input; *got says how many lie at the returned address (valid until the next call). NULL
 * and an error only when reading or decompressing failed. */
const uint8_t *vc_input_peek(struct vc_input *in, size_t want, size_t *got, struct vc_error *err);
void vc_input_skip(struct vc_input *in, size_t n); /* n <= what the last peek got */
uint64_t vc_input_offset(const struct vc_input *in); /* consumed so far, after decompression */
const char *vc_input_name(const struct vc_input *in);
bool vc_input_truncated(const struct vc_input *in); /* compressed data ended too early */

/* The next line without its end, NUL-terminated, in *line, which has room for *cap bytes and is the
 * caller's to free; its length in *n. 1; 0: there is none; < 0, also where it is longer than `most`
 * bytes. */
int vc_input_line(struct vc_input *in, size_t most, char **line, size_t *cap, size_t *n,
		  struct vc_error *err);
/* All that is left, NUL-terminated, on the heap; *n may be NULL. */
char *vc_input_all(struct vc_input *in, size_t *n, struct vc_error *err);

/* Output to a file without a name (where the file system knows none: to a temporary one beside
 * `path`), put in place by commit; "-" is standard output. Failures are sticky: write freely,
 * commit tells. Without commit nothing stays. */
struct vc_output;
struct vc_output *vc_output_open(const char *path, struct vc_error *err);
/* Could it be opened for writing, as far as can be seen without making anything? */
int vc_output_possible(const char *path, struct vc_error *err);
struct vc_output *vc_output_memory(struct vc_error *err); /* collects in memory */
void vc_output_write(struct vc_output *o, const void *data, size_t n);
void vc_output_text(struct vc_output *o, const char *text);
/* As a field of CSV: in quotes where it must. */
void vc_output_csv(struct vc_output *o, const char *text);
void vc_output_printf(struct vc_output *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
int  vc_output_commit(struct vc_output *o, struct vc_error *err);
char *vc_output_take(struct vc_output *o, size_t *n); /* memory: the bytes, NUL-terminated, now
						       * yours; NULL: no memory */
void vc_output_close(struct vc_output *o); /* NULL is fine */
