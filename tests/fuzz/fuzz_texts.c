/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_texts.c - any text given as results of sweep and sim, as a pasted message, as a list of
 * parameters, or as allocator settings is read or refused with a sentence: no crash, no leak, no
 * hang (make fuzz). */
#define _GNU_SOURCE /* memfd_create */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/param.h"
#include "simulator/advise/explain.h"
#include "simulator/models/torch.h"
#include "commands/cmd_plot_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int r, const struct vc_error *err)
{
	if (r < 0 && !err->message[0])
		abort(); /* refused without a sentence */
}

static void as_results(const uint8_t *data, size_t size)
{
	struct vc_error err = { 0 };
	struct vc_result *result = NULL;
	int fd = memfd_create("results", 0);
	char path[64];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	vc_lines_probe(path);
	check(vc_lines_read(path, &result, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		vc_result_fini(&result[i]);
	free(result);
	close(fd);
}

static void as_message(const char *text, size_t size)
{
	struct vc_error err = { 0 };
	struct vc_oom_text read;
	struct vc_diagnosis d;
	int r = vc_explain_read(text, size, &read, &err);

	check(r, &err);
	if (r == VC_OK)
		vc_explain_diagnose(&read, &d);
}

static void as_parameters(const char *text)
{
	struct config {
		uint64_t whole, bytes, choice;
		double real;
		bool flag;
		char text[VC_PARAM_TEXT];
	} c;
	const struct vc_param table[] = {
		{ "whole", VC_P_UINT, offsetof(struct config, whole), "0", "", NULL },
		{ "bytes", VC_P_SIZE, offsetof(struct config, bytes), "0", "", NULL },
		{ "choice", VC_P_ENUM, offsetof(struct config, choice), "a", "", "a,b,cc" },
		{ "real", VC_P_REAL, offsetof(struct config, real), "0", "", NULL },
		{ "flag", VC_P_BOOL, offsetof(struct config, flag), "false", "", NULL },
		{ "text", VC_P_TEXT, offsetof(struct config, text), "", "", NULL },
		{ NULL, VC_P_BOOL, 0, NULL, NULL, NULL },
	};
	struct vc_error err = { 0 };

	check(vc_params_parse(table, &c, text, &err), &err);
}

/* By both grammars: PyTorch 2.0's, and the one that came later. */
static void as_settings(const char *text)
{
	static const char *const version[] = { "2.0", "2.15" };
	static const struct torch_config k = { .segment = 20 << 20 };
	char note[4096] = "";

	for (size_t i = 0; i < 2; i++) {
		struct torch_rules rules;
		struct torch *t = calloc(1, sizeof(*t));

		if (!t || torch_rules_for(version[i], TORCH_CUDA, &rules))
			abort();
		t->k = &k;
		t->r = &rules;
		torch_conf_init(t);
		if (torch_conf_parse(t, text, note, sizeof(note)) == VC_RAISED && !note[0])
			abort();
		free(t->conf.klass);
		free(t);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	as_results(data, size);
	as_message(text, size);
	as_parameters(text);
	as_settings(text);
	free(text);
	return 0;
}
