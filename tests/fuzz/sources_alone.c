/* SPDX-License-Identifier: Apache-2.0 */
/* sources_alone.c - the table of sources alone, so that the fuzzer is built without models and
 * observers. */
#include "simulator/replay/transform.h"

#define VC_SOURCE(id) extern const struct vc_source_type vc_source_##id;
#include "simulator/sources/sources.def"
#undef VC_SOURCE
#define VC_SOURCE(id) &vc_source_##id,
const struct vc_source_type *const vc_sources[] = {
#include "simulator/sources/sources.def"
	NULL
};
#undef VC_SOURCE

const struct vc_source_type *const vc_transforms[] = { NULL };
