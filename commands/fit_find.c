/* SPDX-License-Identifier: Apache-2.0 */
/* fit_find.c - see fit_find.h */
#include "commands/fit_find.h"

const struct vc_fit_find *vc_fit_find(const char *name)
{
	static const struct vc_fit_find *const rows[] = { &vc_fit_checkpoint, &vc_fit_anything,
						     &vc_fit_plan, &vc_fit_budget };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (!strcmp(rows[i]->name, name))
			return rows[i];
	return NULL;
}
