/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_calls.h - calls into cuDNN's graph interface, where they go through the linker. */
#pragma once

/* Nothing is recorded any more: descriptors that are destroyed from now on are not seen. */
void vc_cudnn_forget(void);

void vc_cudnn_before_fork(void);
void vc_cudnn_after_fork(void);
