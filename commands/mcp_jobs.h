/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_jobs.h - calls of tools that are under way: each is a process of its own, so that nothing
 * which goes wrong in it, or does not end, can end the conversation. */
#pragma once

#include "commands/mcp_tools.h"

struct vc_mcp_jobs { struct vc_mcp_job *at; size_t n, cap; };

/* Takes the call over, and starts it as soon as few enough are running. `id`, `progress`: JSON, the
 * latter NULL where nobody wants to hear of it. */
int vc_mcp_jobs_add(struct vc_mcp_jobs *jobs, struct vc_mcp_call *call, const char *id,
		    const char *progress, struct vc_error *err);

/* Ends the call of that id; it is not answered any more. */
void vc_mcp_jobs_cancel(struct vc_mcp_jobs *jobs, const char *id);

/* Starts what waits, ends what takes too long, and writes the answers of what is over to `out`. */
int vc_mcp_jobs_look(struct vc_mcp_jobs *jobs, struct vc_output *out, struct vc_error *err);

/* Milliseconds until something is to be looked at again; -1: nothing is under way. */
int vc_mcp_jobs_wait(const struct vc_mcp_jobs *jobs);

/* Ends all of them. */
void vc_mcp_jobs_fini(struct vc_mcp_jobs *jobs);
