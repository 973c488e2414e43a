/* SPDX-License-Identifier: Apache-2.0 */
/* scripts.h - random operation scripts over all rules that a PyTorch version knows. */
#ifndef VC_SCRIPTS_H
#define VC_SCRIPTS_H

#include <stddef.h>
#include <stdint.h>

/* A script for version 2.<minor> with about `ops` operations; owned by the caller. The same seed
 * gives the same script. Situations in which the real program is not deterministic are left out:
 * several blocks deferred at once by a capture (2.9 on), uses recorded in a scope and freed
 * outside (2.4 on), private pools with expandable segments that are released too early (2.5 on). */
char *random_script(unsigned minor, uint64_t seed, size_t ops);

#endif
