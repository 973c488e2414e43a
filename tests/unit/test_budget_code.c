/* SPDX-License-Identifier: Apache-2.0 */
/* test_budget_code.c - the code to paste for each thing that is done with a module, run by
 * tests/python/budget_code.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "commands/budget_code.h"

static void pasted_code_runs(void **state)
{
	struct vc_budget_unit unit[] = { { .name = (char[]){ "Net/kept" } },
					 { .name = (char[]){ "Net/twice" } },
					 { .name = (char[]){ "Net/products" } },
					 { .name = (char[]){ "Net/sent" } },
					 { .name = (char[]){ "Net/from_host" } } };
	const uint8_t how[] = { VC_BUDGET_KEEP, VC_BUDGET_RECOMPUTE, VC_BUDGET_PRODUCTS,
				VC_BUDGET_OFFLOAD, VC_BUDGET_RECOMPUTE_OFFLOAD };
	const struct vc_budget b = { .at = unit, .n = 5 };
	struct vc_error err = { 0 };
	struct vc_emit *e = vc_emit_file(NULL, VC_EMIT_TEXT, &err);
	char command[400];
	FILE *f;

	(void)state;
	if (system("command -v python3 > /dev/null"))
		skip();
	assert_non_null(e);
	vc_emit_object(e, NULL, "");
	vc_budget_paste(e, &b, how, 1 << 30);
	vc_emit_end(e);
	char *text = vc_emit_take(e, NULL, &err);
	assert_non_null(text);
	snprintf(command, sizeof(command), "%s tests/python/budget_code.py", getenv("PYTHON") ?
		 getenv("PYTHON") : "python3");
	f = popen(command, "w");
	assert_non_null(f);
	fputs(text, f);
	free(text);
	assert_int_equal(pclose(f), 0);
}

/* A module alone with each: what is computed twice sees each batch twice, what is sent or kept in
 * fewer bits does not. */
static void what_sees_a_batch_twice_is_said(void **state)
{
	struct vc_budget_unit unit[] = { { .name = (char[]){ "Net/one" } } };
	const struct vc_budget b = { .at = unit, .n = 1 };

	(void)state;
	for (uint8_t way = VC_BUDGET_KEEP; way < VC_BUDGET_WAYS; way++) {
		struct vc_error err = { 0 };
		struct vc_emit *e = vc_emit_file(NULL, VC_EMIT_TEXT, &err);

		assert_non_null(e);
		vc_emit_object(e, NULL, "");
		vc_budget_paste(e, &b, &way, 0);
		vc_emit_end(e);
		char *text = vc_emit_take(e, NULL, &err);
		assert_non_null(text);
		assert_int_equal(strstr(text, "see each batch twice") != NULL,
				 way != VC_BUDGET_KEEP && way != VC_BUDGET_OFFLOAD &&
				 way != VC_BUDGET_LOWER);
		assert_null(strstr(text, "set_per_process_memory_fraction"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(pasted_code_runs),
					    cmocka_unit_test(what_sees_a_batch_twice_is_said) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
