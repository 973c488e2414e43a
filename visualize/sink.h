/* SPDX-License-Identifier: Apache-2.0 */
/* sink.h - a way to write results down. One file + one row in sinks.def. */
#pragma once

#include "common/error.h"
#include "common/param.h"
#include "simulator/replay/result.h"

struct vc_output; /* common/io.h: atomic output */

#define VC_READS(...) (const char *const[]){ __VA_ARGS__, NULL }

struct vc_sink_type {
	const char *name;      /* also the picture's name for plot -t: timeline, blocks, ... */
	const char
		*extension; /* "svg"; several sinks may share one, the first row is its default */
	const char *summary;
	const struct vc_param *params; /* NULL: none */
	size_t config_size;
	const char *const *observers;  /* VC_READS(names of the chapters that it reads) */
	bool side_by_side; /* several traces are runs of their own, not recordings of a family */
	bool advised;      /* it shows what would help: words and tries */
	uint64_t lives_limit; /* of longer traces (events) it does without "lives"; 0: never */
	/* n results, so that comparing is not a special case. `config` was parsed from params. */
	int (*write)(const struct vc_result *runs, size_t n, const void *config,
		     struct vc_output *out, struct vc_error *err);
};

extern const struct vc_sink_type *const vc_sinks[]; /* NULL-terminated */
const struct vc_sink_type *vc_sink_by_name(const char *name);
const char *vc_sink_instead(const char *name); /* of a name from before; NULL: it is none */
const struct vc_sink_type *vc_sink_by_extension(const char *path); /* from "x.svg" */
