/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.c - see cupti.h. */
#include "tracer/cupti.h"

void vc_cupti_finish(void)
{
}

void vc_cupti_forget(void)
{
}
