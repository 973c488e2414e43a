/* SPDX-License-Identifier: Apache-2.0 */
/* run_fit.h - run --fit: change a program from outside so that it fits, then run it. */
#pragma once

#include "common/opt.h"

struct vc_run_fit_ask {
	const char *gpu;
	uint64_t capacity; /* VC_NOT_GIVEN: the card's */
	uint64_t steps;    /* of the optimizer, in trial runs */
	bool keep;         /* start it as it is where nothing helps */
};

/* The program's exit code, or less than 0 with the reason in con->err. */
int vc_run_fit(const struct vc_run_fit_ask *ask, size_t argc, char **argv,
	       struct vc_console *con);
