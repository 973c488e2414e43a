/* SPDX-License-Identifier: Apache-2.0 */
/* addresses.c - see addresses.h
 *
 * On the null GPU the order is the device's own. A real driver loads libraries between segments,
 * into ranges that would have held them. */
#include "simulator/session/addresses.h"

#include "simulator/replay/device.h"

int vc_addresses_known(const struct vc_recording *rec, bool *known, struct vc_error *err)
{
	struct vc_device_config cfg = { .total = VC_DEVICE_UNLIMITED,
					.va = vc_va_of_first(rec->device->first_segment) };
	struct vc_device *d = vc_device_new(&cfg, err);
	uint64_t was = 0, would = 0;

	VC_HAVE(d, "the addresses of a recording", err);
	bool follows = true, any = false;

	for (size_t i = 0; follows && i < rec->trace.n; i++) {
		const struct vc_event *e = &rec->trace.ev[i];
		uint64_t at = 0;

		if (e->kind != VC_EV_SEGMENT_ALLOC || e->device != rec->device->device)
			continue;
		if (!e->addr || !vc_device_alloc(d, e->size, &at) ||
		    (was && (e->addr > was) != (at > would)))
			follows = false;
		any = true;
		was = e->addr;
		would = at;
	}
	vc_device_free_all(d);
	*known = follows && any;
	return VC_OK;
}
