/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - one error, carried by the caller, filled by whoever fails first.
 *
 * A function that can fail returns 0 or a negative vc_status and takes the caller's
 * `struct vc_error *` last (NULL is fine). Nothing below the command layer prints or exits. */
#pragma once

#include "common/std.h"

enum vc_status {
	VC_OK        =  0,
	VC_EUSAGE    = -1, /* the user asked for something that cannot be */
	VC_EIO       = -2, /* the system refused: open, read, write, map */
	VC_EFORMAT   = -3, /* the input is not what it claims to be */
	VC_ENOMEM    = -4, /* this process is out of memory (not the simulated GPU) */
	VC_ENOSUP    = -5, /* known, but not built in or not handled */
	VC_EINTERNAL = -6, /* a broken invariant: our bug */
	VC_EPIPE     = -7, /* whoever read our standard output has gone: nothing to complain of */
	VC_ESTOPPED  = -8, /* by a signal (commands/stop.h) */
};

/* Not about what was tried: the next one would fare no better. */
static inline bool vc_is_final(int status)
{
	return status == VC_ENOMEM || status == VC_ESTOPPED;
}

struct vc_error {
	enum vc_status status;
	char message[1024]; /* one sentence, no full stop, no newline */
};

/* Fill `err` and return `status`, so that failing is one line. */
int vc_fail(struct vc_error *err, enum vc_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Put context in front of a failure on its way up: "fmt: old message". Returns err->status,
 * or VC_EINTERNAL when err is NULL. */
int vc_wrap(struct vc_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The usual sentence for a failed malloc of `what`. */
int vc_nomem(struct vc_error *err, const char *what);

/* Hand a failure on: return what `expr` returned when it is negative. Only where nothing has to be
 * given back first. */
#define VC_TRY(expr) \
	do { \
		int vc_try_ = (expr); \
		if (vc_try_ < 0) \
			return vc_try_; \
	} while (0)

/* Return the usual sentence about missing memory for `what` unless `ok`: something was allocated.
 * Also only where nothing has to be given back first. */
#define VC_HAVE(ok, what, err) \
	do { \
		if (!(ok)) \
			return vc_nomem(err, what); \
	} while (0)
