/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h - the same job for many indices on several threads, results taken in order. */
#pragma once

#include "common/error.h"

struct vc_work {
	size_t n;          /* indices 0..n-1 */
	size_t threads;    /* 0: as many as there are processors */
	void *arg;
	int (*job)(void *arg, size_t i, struct vc_error *err);  /* on any thread, in any order */
	int (*done)(void *arg, size_t i,
		    struct vc_error *err); /* on the caller's, in order; may be NULL */
};

/* As many as there are processors, but no more than `most`. */
size_t vc_workers_most(size_t most);

/* Runs all; the first failure (by index) ends it and is returned. */
int vc_workers_run(const struct vc_work *w, struct vc_error *err);
