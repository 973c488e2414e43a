/* SPDX-License-Identifier: Apache-2.0 */
/* emit.h - a report is walked once; the same calls print a table for people, JSON or CSV, so they
 * cannot disagree.
 *
 * Every value has a key (JSON, CSV) and a label (people); a NULL label hides it from people, a NULL
 * key from programs. Inside an array of objects people see one line per object, labels as heads. */
#pragma once

#include "common/error.h"
#include "common/io.h"

enum vc_emit_mode { VC_EMIT_TEXT, VC_EMIT_JSON, VC_EMIT_JSONL, VC_EMIT_CSV };

struct vc_emit;
struct vc_emit *vc_emit_new(struct vc_output *out, enum vc_emit_mode mode, struct vc_error *err);
/* VC_EMIT_TEXT as Markdown: tables, lists and paragraphs. Before the first value. */
void vc_emit_markdown(struct vc_emit *e);
int  vc_emit_finish(struct vc_emit *e, struct vc_error *err); /* ends the document; frees e */

/* A whole report: into a file ("-" is standard output), or with NULL for `path` collected in
 * memory. NULL on failure. vc_emit_done ends, writes and frees it, vc_emit_take ends and frees what
 * was collected and gives its text (the caller's; `n` may be NULL), vc_emit_drop writes nothing. */
struct vc_emit *vc_emit_file(const char *path, enum vc_emit_mode mode, struct vc_error *err);
struct vc_emit *vc_emit_stdout(bool json, struct vc_error *err);
int vc_emit_done(struct vc_emit *e, struct vc_error *err);
char *vc_emit_take(struct vc_emit *e, size_t *n, struct vc_error *err);
void vc_emit_drop(struct vc_emit *e);

void vc_emit_object(struct vc_emit *e, const char *key, const char *label);
void vc_emit_array(struct vc_emit *e, const char *key, const char *label);
void vc_emit_end(struct vc_emit *e);

void vc_emit_uint(struct vc_emit *e, const char *key, const char *label, uint64_t v);
/* An interval and the best guess: members KEY_low, KEY, KEY_high; one number where they are one. */
void vc_emit_between(struct vc_emit *e, const char *key, const char *label, const uint64_t v[3]);
void vc_emit_int(struct vc_emit *e, const char *key, const char *label, int64_t v);
void vc_emit_bytes(struct vc_emit *e, const char *key, const char *label,
		   uint64_t v); /* people: 1.25 GiB */
void vc_emit_ns(struct vc_emit *e, const char *key, const char *label,
		uint64_t v); /* people: 1.25 s */
void vc_emit_real(struct vc_emit *e, const char *key, const char *label, double v);
void vc_emit_bool(struct vc_emit *e, const char *key, const char *label,
		  bool v); /* people: yes/no */
void vc_emit_text(struct vc_emit *e, const char *key, const char *label,
		  const char *v); /* NULL: null */
void vc_emit_null(struct vc_emit *e, const char *key, const char *label);
/* The next value is null unless it is known. Returns e. */
struct vc_emit *vc_emit_known(struct vc_emit *e, bool known);
void vc_emit_line(struct vc_emit *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))); /* people only */
/* The next line in that colour, an SGR parameter such as "32"; "" for none. */
void vc_emit_color(struct vc_emit *e, const char *color);

/* "1.25 GiB" into buf (at least 32 bytes); exact bytes below 1 KiB. Returns buf. */
char *vc_bytes_text(uint64_t bytes, char *buf);
char *vc_ns_text(uint64_t ns, char *buf);
