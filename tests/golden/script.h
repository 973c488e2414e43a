/* SPDX-License-Identifier: Apache-2.0 */
/* script.h - an operation script of the recorded vectors, read into memory (format: README.md). */
#ifndef VC_SCRIPT_H
#define VC_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulator/replay/device.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_PROCESSES 32
#define MAX_DEVICES 2
#define DEVICE_SHIFT 47 /* addresses of device k lie k << 47 higher */

struct op { char kind; const char *line; uint64_t a, b, c; const char *rest; };

struct script {
	char name[128];
	char *text;
	struct vc_device_config device;
	struct vc_process process[MAX_PROCESSES];
	uint64_t *addr;
	size_t addrs;
	bool automatic;
	unsigned devices; /* 1 or 2 alike ones */
	char *conf;
	struct op *op;
	size_t ops;
	uint64_t max_id;
};

void script_parse(struct script *sc, char *text, const char *name); /* takes the text */
void script_fini(struct script *sc);
char *slurp(const char *path);       /* a whole file, decompressed; owned by the caller */
void die(const char *what, const char *detail) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif
