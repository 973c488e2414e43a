/* SPDX-License-Identifier: Apache-2.0 */
/* sources_alone.c - the table of sources alone, so that the fuzzer is built without models and
 * observers. */
#include "simulator/replay/source.h"

#define VC_SOURCE(id) &vc_source_##id,
const struct vc_source_type *const vc_sources[] = {
#include "simulator/sources/sources.def"
	NULL
};
#undef VC_SOURCE
