/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_dryrun_program.c - what a dry run is a run of. */
#include "commands/cmd_dryrun_run.h"
#include "commands/own_program.h"
#include "nullgpu/python.h"

/* What shapes the run besides the program itself. */
static int add_options(const struct vc_dryrun_config *c, struct vc_program *p,
		       struct vc_error *err)
{
	const struct { const char *name; uint64_t value; } number[] = {
		{ "--steps", c->steps }, { "--devices", c->devices }, { "--ranks", c->ranks },
		{ "--world", c->world }, { "--rank", c->rank ? c->rank : VC_NOT_GIVEN },
		{ "--context", c->context } };
	const struct { const char *name, *value, *plain; } text[] = {
		{ "--torch", c->torch, "" }, { "--values", c->values, "on" },
		{ "--host-weights", c->host_weights, "real" },
		{ "--addresses", c->addresses, "both" }, { "--card", c->card, "" } };
	char value[24];

	if (c->expert_skew > 1 || c->expert_skew == 0) {
		snprintf(value, sizeof(value), "%g", c->expert_skew);
		VC_TRY(vc_texts_add(&p->option, NULL, "--expert-skew", err));
		VC_TRY(vc_texts_add(&p->option, NULL, value, err));
	}
	for (size_t i = 0; i < sizeof(number) / sizeof(*number); i++) {
		if (number[i].value == VC_NOT_GIVEN)
			continue;
		snprintf(value, sizeof(value), "%llu", (unsigned long long)number[i].value);
		VC_TRY(vc_texts_add(&p->option, NULL, number[i].name, err));
		VC_TRY(vc_texts_add(&p->option, NULL, value, err));
	}
	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++) {
		if (!text[i].value || !strcmp(text[i].value, text[i].plain))
			continue;
		VC_TRY(vc_texts_add(&p->option, NULL, text[i].name, err));
		VC_TRY(vc_texts_add(&p->option, NULL, text[i].value, err));
	}
	for (size_t i = 0; i < c->used.n; i++) {
		VC_TRY(vc_texts_add(&p->option, NULL, "--used", err));
		VC_TRY(vc_texts_add(&p->option, NULL, c->used.at[i], err));
	}
	return VC_OK;
}

int vc_dryrun_program(const struct vc_dryrun_config *c, size_t argc, char **argv,
		      struct vc_program **out, struct vc_error *err)
{
	int r = vc_own_describe(argc, argv, &c->params, out, err);

	if (r == VC_OK && add_options(c, *out, err) < 0) {
		vc_program_free(*out);
		r = VC_ENOMEM;
	}
	return r;
}

uint64_t vc_dryrun_launched(size_t argc, char **argv)
{
	static const char *const names[] = { "--nproc-per-node", "--nproc_per_node",
					     "--num_processes", "--num-processes", "--num_gpus" };

	/* behind the script stand the script's own */
	for (size_t i = 0; i < argc && !vc_python_is_script(argv[i]); i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++) {
			size_t n = strlen(names[k]);
			const char *count = strncmp(argv[i], names[k], n) ? "" :
					    argv[i][n] == '=' ? argv[i] + n + 1 :
					    !argv[i][n] && i + 1 < argc ? argv[i + 1] : "";

			if (*count && strspn(count, "0123456789") == strlen(count) &&
			    strlen(count) < 3 && strtoull(count, NULL, 10) - 1 < 16)
				return strtoull(count, NULL, 10);
		}
	return VC_NOT_GIVEN;
}
