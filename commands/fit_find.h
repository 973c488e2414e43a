/* SPDX-License-Identifier: Apache-2.0 */
/* fit_find.h - what `fit --find` looks for besides parameters that recordings differ in. */
#ifndef VC_FIT_FIND_H
#define VC_FIT_FIND_H

#include "common/opt.h"
#include "simulator/session/session.h"

struct vc_fit_ask {
	const struct vc_run_options *run;
	bool json;
	uint64_t most; /* combinations at most */
};

struct vc_fit_find {
	const char *name; /* --find NAME */
	int (*run)(const struct vc_fit_ask *ask, size_t argc, char **argv,
		   struct vc_console *con);
};

extern const struct vc_fit_find vc_fit_checkpoint, vc_fit_anything;

/* The row of that name, or NULL: a parameter. */
const struct vc_fit_find *vc_fit_find(const char *name);

#endif
