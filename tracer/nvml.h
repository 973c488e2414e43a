/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.h - what other processes hold of a card, by NVIDIA's management library. */
#pragma once

#include "common/std.h"

/* Bytes of the processes that share the device with this one, which must be in use. false: it
 * cannot be known: there is no such library, it does not name this process (a container has other
 * numbers), it does not tell bytes, or the device is a part of a card (MIG). */
bool vc_nvml_others(uint16_t device, uint64_t *bytes);
