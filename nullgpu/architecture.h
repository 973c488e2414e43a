/* SPDX-License-Identifier: Apache-2.0 */
/* architecture.h - limits that go with a compute capability. */
#pragma once

struct vc_architecture {
	int cc, shared_sm, shared_optin, threads_sm, blocks_sm;
};

/* Of that compute capability (89 means 8.9), or the next lower one that is known. */
const struct vc_architecture *vc_architecture(int cc);
