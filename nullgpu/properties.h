/* SPDX-License-Identifier: Apache-2.0 */
/* properties.h - what cuDNN wants to know of a card: its device properties as JSON. */
#pragma once

#include "common/error.h"

/* A card of a table. Clocks in MHz, 0: not known. */
struct vc_properties {
	const char *name;
	uint64_t total;
	int cc, sms; /* 89 means 8.9 */
	int clock_mhz, memory_mhz;
};

/* One line of JSON, with the line break. */
int vc_properties_text(const struct vc_properties *p, char *out, size_t n, struct vc_error *err);

/* The same of a card that is there, from its driver. */
int vc_properties_of_device(int device, char *out, size_t n, struct vc_error *err);
