/* SPDX-License-Identifier: Apache-2.0 */
/* trace_file.h - records of a journal become a .vct: FILE.part until it is whole, then FILE. */
#pragma once

#include "common/codec.h"
#include "common/error.h"
#include "common/journal.h"

struct vc_trace_file {
	char *path, *part;
	struct vc_meta *meta;
	struct vc_journal_decoder *decoder;
	struct vc_output *out;       /* what the encoder wrote since the last store */
	struct vc_encoder *encoder;  /* NULL: not begun */
	uint64_t bytes, events;
	const char *stopped;         /* why it ended early, or NULL */
};

int vc_trace_file_init(struct vc_trace_file *f, struct vc_error *err);
/* Takes over the name (malloc'ed); the file is begun under another one. */
int vc_trace_file_begin(struct vc_trace_file *f, char *path, const char *suffix,
			struct vc_error *err);
void vc_trace_file_put(struct vc_trace_file *f, struct vc_journal_reader *r,
		       const struct vc_record *rec, size_t n);
/* What is ready goes to the disk; `flush`: all that was put. */
void vc_trace_file_store(struct vc_trace_file *f, bool flush);
/* The end; `hole`: something is missing in it. false: not all that was put became part of it. */
bool vc_trace_file_finish(struct vc_trace_file *f, bool hole);
void vc_trace_file_stop(struct vc_trace_file *f, const char *why);
void vc_trace_file_release(struct vc_trace_file *f); /* all but names and meta */
void vc_trace_file_fini(struct vc_trace_file *f);
/* What the journal says of the process, and what lies beside it says of the program. */
#define VC_PROGRAM_FILE ".program" /* beside the journals; that of a process has its number */
void vc_trace_file_describe(struct vc_trace_file *f, struct vc_journal_reader *r,
			    const char *journal);

char *vc_text(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* malloc'ed */
/* The name with something before its extension: ("run.vct", ".oom") is run.oom.vct. */
char *vc_name_with(const char *path, const char *word);
