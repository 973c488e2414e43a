/* SPDX-License-Identifier: Apache-2.0 */
/* smi.h - what the files of the stand-in nvidia-smi share: the machine as it is at this moment. */
#ifndef VC_SMI_H
#define VC_SMI_H

#include "nullgpu/null.h"

enum { VC_SMI_PROCESSES = 128, VC_SMI_TEXT = 160 };

struct vc_smi_process {
	int pid, device;
	uint64_t used; /* with the context */
	char name[VC_SMI_TEXT];
};

struct vc_smi {
	const struct vc_null_card *card;
	bool shown[VC_NULL_DEVICES]; /* -i names devices */
	uint64_t used[VC_NULL_DEVICES];
	int sm_mhz, memory_mhz; /* 0: not known */
	struct vc_smi_process process[VC_SMI_PROCESSES];
	int processes;
};

/* What the processes of this dry run hold now, out of what they leave in their private folder. */
void vc_smi_look(struct vc_smi *m);

/* Rows as comma-separated values: `fields` of each device, or of each process (apps). The exit code
 * of nvidia-smi: 2 where a field or a word of `format` is none of its own. */
int vc_smi_query(const struct vc_smi *m, const char *fields, const char *format, bool apps);
void vc_smi_fields(void);

#endif
