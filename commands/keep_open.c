/* SPDX-License-Identifier: Apache-2.0 */
/* keep_open.c - see keep_open.h */
#include "commands/keep_open.h"

#include "simulator/session/request.h"
#include "simulator/session/shelf.h"

void vc_keep_open(const struct vc_option *const *tables, void *config)
{
	static struct vc_shelf *shelf; /* until the process ends; NULL: no memory, and no harm */

	if (!shelf)
		shelf = vc_shelf_new();
	for (; tables && *tables; tables++)
		if (*tables == vc_run_options)
			((struct vc_run_options *)config)->shelf = shelf;
}
