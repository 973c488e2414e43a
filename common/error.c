/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - see error.h */
#include "common/error.h"

#include <stdarg.h>

#include "common/utf8.h"

int vc_fail(struct vc_error *err, enum vc_status status, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return status;
	err->status = status;
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	vc_utf8_plain(err->message);
	return status;
}

int vc_wrap(struct vc_error *err, const char *fmt, ...)
{
	char old[sizeof(err->message)];
	size_t left;
	va_list ap;
	int n;

	if (!err)
		return VC_EINTERNAL;
	memcpy(old, err->message, sizeof(old));
	va_start(ap, fmt);
	n = vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	vc_utf8_plain(err->message);
	if (n < 0 || (size_t)n + 3 >= sizeof(err->message))
		return err->status;
	left = sizeof(err->message) - (size_t)n - 3; /* the old message is cut, never the context */
	snprintf(err->message + n, left + 3, ": %.*s", (int)left, old);
	return err->status;
}

int vc_nomem(struct vc_error *err, const char *what)
{
	return vc_fail(err, VC_ENOMEM, "this machine has no memory left for %s", what);
}
