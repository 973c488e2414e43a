/* SPDX-License-Identifier: Apache-2.0 */
/* journal_facts.c - the one thing both sides of a journal write; no libc allocation. */

#include "common/journal.h"

void vc_journal_put_fact(struct vc_journal *j, const char *key, const char *value)
{
	size_t k = strlen(key), v = strcspn(value, "\n");
	uint32_t at = atomic_load(&j->facts_used);

	do {
		if (at + k + v + 2 > VC_JOURNAL_FACTS)
			return;
	} while (!atomic_compare_exchange_weak(&j->facts_used, &at, (uint32_t)(at + k + v + 2)));
	memcpy(j->facts + at, key, k);
	j->facts[at + k] = ' ';
	memcpy(j->facts + at + k + 1, value, v);
	atomic_thread_fence(memory_order_release);
	j->facts[at + k + 1 + v] = '\n'; /* last: a line without its end is not read */
}
