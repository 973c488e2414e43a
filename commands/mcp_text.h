/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_text.h - the text of python/mcp_server.py, which the build puts into the program. */
#pragma once

extern const char vc_mcp_text[];
