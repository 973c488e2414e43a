/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - memory beside the allocator's, as recordings and transforms tell it: of the host, and of
 * libraries on the device. */
#pragma once

#include "simulator/session/recording.h"

struct vc_host {
	bool sampled;          /* resident memory is in the recording */
	uint64_t resident;     /* largest sample; of one process */
	uint64_t pinned;       /* recorded: loaders, caches of page-locked memory */
	uint64_t managed;      /* recorded; all of it may have to be there */
	uint64_t moved;        /* what transforms move there from the device */
	uint64_t processes;    /* alike, on this host */
	uint64_t needed;       /* all of that, for all processes */
	uint64_t libraries;    /* device memory that is not PyTorch's: most at one time */
};

/* Over the first so many events with those transforms applied, and those read with them. A
 * recording that is streamed has nothing to say: zeroes. Errors: those of the transforms. */
int vc_host_read(const struct vc_recording *rec, const struct vc_list *transforms, uint64_t events,
		 struct vc_host *h, struct vc_error *err);

/* The device part alone, of the recording as it is: no transform runs. */
struct vc_host_device {
	uint64_t libraries; /* as above */
	uint64_t context;   /* else beside the segments when the census saw the most there: the
			       context; 0 = the census does not know */
	uint64_t others;    /* of that, what is known to be other processes': not in `context` */
	uint64_t managed; /* when the census looked: as much of `context` may be that */
};
struct vc_host_device vc_host_device(const struct vc_recording *rec);
