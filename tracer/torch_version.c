/* SPDX-License-Identifier: Apache-2.0 */
/* torch_version.c - which PyTorch is loaded. */
#include "tracer/recorder.h"
#include "tracer/torch.h"

static bool read_version(char *out, size_t n)
{
	return vc_torch_version(vc_torch_symbol("libc10.so", "_ZN3c108free_cpuEPv"), out, n);
}

int vc_torch_minor(void)
{
	char text[64];

	if (*vc_recorder_option("torch", text, sizeof(text))) /* what a test wants it to be */
		return (int)strtol(text, NULL, 10);
	return read_version(text, sizeof(text)) ? vc_torch_minor_of(text) : -1;
}

void vc_torch_describe(void)
{
	char text[64];

	if (read_version(text, sizeof(text)))
		vc_recorder_fact("torch", text);
}
