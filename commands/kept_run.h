/* SPDX-License-Identifier: Apache-2.0 */
/* kept_run.h - dry runs that stay in the user's cache: what was run is not run again. Everything
 * that runs a program without a card for an answer does it here. */
#pragma once

#include "commands/made_changes.h"
#include "commands/progress.h"
#include "common/program.h"

struct vc_kept_wish {
	const struct vc_program *program;    /* its own files decide, too, but for what they say */
	const char *card, *conf;             /* conf: NULL: its own */
	const char *capacity;                /* of the card, where it is another one; or NULL */
	const struct vc_param_value *at; size_t n;
	const struct vc_texts *environment;  /* on top of its own; NULL: nothing */
	const struct vc_made_changes *made;  /* by the hook in front of it; NULL: nothing */
	const char *with;                    /* what is special about it, in words; NULL: nothing */
	unsigned seed;                       /* another run of the same */
	bool once;                           /* no run with more memory where that is too little */
	bool again;                          /* although it was run before */
};

/* What is known of such a run: FILE.run beside its recording FILE.vct says it. */
struct vc_kept {
	char path[VC_RERUN_PATH]; /* of the recording */
	char id[17];              /* it is known by */
	bool oom;                 /* it ended there */
	bool reused;              /* nothing was run now */
	char verdict[32];         /* on the memory that was asked for */
	uint64_t requested, allocated, reserved; /* peaks */
	uint64_t flushes;         /* of the cache */
	uint64_t workspace;       /* largest that a library took for one convolution */
	uint64_t used;            /* of the card, context included */
	char torch[24], card[40], with[240], line[400];
	int64_t when, last;       /* it was made and used, seconds since 1970 */
	uint64_t bytes;           /* of its files */
};

/* With the memory of the card; where that does not suffice, with more: what the program asks for is
 * wanted, not where it dies. con: people may watch, or NULL. *out says how it ended. Errors: VC_EIO
 * where it did not run. From several threads. */
int vc_kept_run(const struct vc_kept_wish *w, struct vc_kept *out, const struct vc_console *con,
		struct vc_error *err);

/* ---- kept_store.c: where they lie ---- */

#define VC_KEPT_FAILED ".failed" /* beside a recording: what did not run on top of it */

/* FILE.json (the report of dryrun) or FILE.run beside a recording FILE.vct. */
void vc_kept_beside(const char *path, const char *ending, char out[VC_RERUN_PATH]);
/* False: there is none, or (current) its files have changed since. Then it was used just now. */
bool vc_kept_read(const char *path, bool current, struct vc_kept *k);
/* What processes that were killed have left there. */
void vc_kept_clean(const char *folder);

/* All that there are, the newest first; the caller's to free. */
int vc_kept_list(struct vc_kept **out, size_t *n, struct vc_error *err);
/* Is `name` no file, but the beginning of one id? Then *path is its recording, else `name`.
 * Errors: VC_EUSAGE: of several. */
int vc_kept_find(const char *name, char path[VC_RERUN_PATH], struct vc_error *err);

/* How much they may take together; VC_KEPT_MOST until somebody says otherwise. */
#define VC_KEPT_MOST (UINT64_C(4) << 30)
int vc_kept_limit(uint64_t *most, struct vc_error *err);
int vc_kept_set_limit(uint64_t most, struct vc_error *err);
/* Those that were used least recently go until the rest take no more than that; none goes that was
 * used within the last `spare` seconds. */
int vc_kept_prune(int64_t spare, struct vc_error *err);
