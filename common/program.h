/* SPDX-License-Identifier: Apache-2.0 */
/* program.h - the program behind a recording: what was run, where, with which files. Nothing here
 * runs it. */
#pragma once

#include "common/error.h"
#include "common/io.h"
#include "common/json.h"

struct vc_named_text { char *name, *text; };
struct vc_texts { struct vc_named_text *at; size_t n; };

struct vc_program {
	char *folder;       /* in which it was started */
	char *interpreter;  /* the file that was executed */
	char *revision;     /* of git in that folder, or NULL */
	struct vc_texts argument;    /* (names are NULL); "{batch}" where the value stands */
	struct vc_texts option;      /* of the dry run that shape it: --steps, 3 (no names) */
	struct vc_texts file;        /* the user's: path, hash */
	struct vc_texts package;     /* name, version */
	struct vc_texts environment; /* of an allow-list (docs/reference/recording.md) */
};

struct vc_program *vc_program_new(struct vc_error *err);
struct vc_program *vc_program_copy(const struct vc_program *p, struct vc_error *err);
void vc_program_free(struct vc_program *p); /* NULL is fine */
/* Adds or, where that name is there, replaces; name NULL: always adds. */
int vc_texts_add(struct vc_texts *t, const char *name, const char *text, struct vc_error *err);
const char *vc_texts_find(const struct vc_texts *t, const char *name); /* or NULL */

/* One JSON object. `run`: only what is run (arguments, options, folder, interpreter, environment),
 * which is the same text for the same thing. */
void vc_program_write(struct vc_output *o, const struct vc_program *p, bool run);
/* The object whose first token was just read. Unknown keys are skipped. */
int vc_program_read(struct vc_program *p, struct vc_json *j, struct vc_error *err);
/* A file that holds one such object. VC_EIO: there is none. */
int vc_program_load(struct vc_program *p, const char *path, struct vc_error *err);

/* What the program itself told while it ran: lines "file PATH" and "package NAME VERSION". */
int vc_program_told(struct vc_program *p, const char *path, struct vc_error *err);

/* A hash of the file's content as 16 digits; false: it cannot be read, or is larger than 64 MiB. */
bool vc_program_hash(const char *path, char out[17]);
uint64_t vc_program_hash_bytes(const void *bytes, size_t n, uint64_t h); /* h: 0 to begin */

/* `text` with every {NAME} replaced by its value; on the heap, NULL: no memory. */
char *vc_program_fill(const char *text, const char *name, double value);
char *vc_program_put(const char *text, const char *name, const char *value);
/* Does {NAME} stand in one of its arguments? */
bool vc_program_takes(const struct vc_program *p, const char *name);
