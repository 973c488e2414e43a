/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.h - the physical and kernel planes, where a CUPTI library can be opened. */
#ifndef VC_CUPTI_H
#define VC_CUPTI_H

/* Fetch what CUPTI still holds; at most a few seconds. Safe to call at any end of the process. */
void vc_cupti_finish(void);
/* In a forked child: CUPTI's threads do not exist here. */
void vc_cupti_forget(void);

#endif
