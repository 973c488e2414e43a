/* SPDX-License-Identifier: Apache-2.0 */
/* time_queue.c - the program launches kernels, the GPU works the queue off.
 *
 * Where the GPU was idle before a kernel for longer than it rests between any two, the kernel
 * started when it was launched, so the recording shows the program's time there; elsewhere the
 * program was ahead and only its sum is known. A copy to the host makes the program wait. Idle
 * time before a copy to the device is the wait for data and no launch: left to the caller
 * (time_tempo.c).
 */

#include "simulator/time/time_tempo.h"

#include "common/vec.h"

#define NOISE 100.0 /* ns by which such a gap varies */
/* Of the time since the launch that was seen before it: an idle moment shorter than this is the
 * GPU's own, for the program would have needed as long as the GPU to within so little. */
#define OWN 0.02
enum { LAPS = 4 };

double vc_queue_step(const struct vc_queued *q, size_t n, double *idle)
{
	double host = 0, gpu = 0, begin = 0, step = 0, busy = 0;

	for (size_t i = 0; i < n; i++)
		busy += q[i].gpu;
	for (int lap = 0; lap <= LAPS; lap++) {
		for (size_t i = 0; i < n; i++) {
			host = q[i].waits ? fmax(host, gpu) + q[i].after : host + q[i].host;
			gpu = fmax(host, gpu);
			if (!i) {
				step = gpu - begin;
				begin = gpu;
			}
			gpu += q[i].gpu;
		}
	}
	if (idle)
		*idle = fmax(0, step - busy);
	return n ? step : 0;
}

VC_COMPARE(by_value, double, VC_ORDER(*x, *y))

bool vc_queue_seen(const struct vc_profile *p, size_t i)
{
	return p->beat[i].gap > 1.3 * p->quiet_ns + NOISE;
}

/* The usual time between two launches: where two in a row found the GPU idle. */
static double usual(const struct vc_profile *p)
{
	double *at = malloc((p->beats + 1) * sizeof(*at)), ns = VC_LAUNCH_NS;
	size_t n = 0;

	for (size_t i = 1; at && i < p->beats; i++)
		if (vc_queue_seen(p, i) && vc_queue_seen(p, i - 1) &&
		    p->beat[i].kind == VC_OP_KERNEL)
			at[n++] = p->beat[i].gap + p->beat[i - 1].front;
	if (n > 4) {
		vc_sort(at, n, sizeof(*at), by_value);
		ns = at[n / 2];
	}
	free(at);
	return ns;
}

void vc_queue_read(const struct vc_profile *p, struct vc_queued *q)
{
	size_t n = p->beats, last = n;
	double launch = usual(p), since = 0, rest;

	for (size_t i = 0; i < n; i++)
		q[i] = (struct vc_queued){ .host = launch,
			.waits = n > 1 && p->beat[(i + n - 1) % n].kind == VC_OP_TO_HOST,
			.after = p->beat[i].gap };
	/* Twice around, so that what lies before the first seen launch is counted as well. */
	for (size_t k = 0; k < 2 * n; k++) {
		size_t i = k % n;
		const struct vc_beat *b = &p->beat[i];
		bool seen;

		since += b->gap;
		seen = vc_queue_seen(p, i) && b->gap >= OWN * since;
		if (seen && last < n && !q[i].waits && b->kind != VC_OP_TO_DEVICE) {
			rest = since - (double)(k - last - 1) * launch;
			q[i].host = rest > launch ? rest : fmin(launch, since / (double)(k - last));
		}
		if (seen || q[i].waits) {
			last = k < n ? k : k - n;
			since = 0;
			if (k >= n)
				break;
		}
		since += b->front;
	}
}
