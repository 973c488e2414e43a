/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_text.h - the texts of python/mcp_server.py, env.py, probe.py and
 * probe_workspaces.py, which the build puts in. */
#pragma once

extern const char vc_mcp_text[], vc_env_text[], vc_probe_text[],
	vc_probe_workspaces_text[];
