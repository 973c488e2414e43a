/* SPDX-License-Identifier: Apache-2.0 */
/* plans_wire.c - messages about plans, and plans as they stand in a table. See plans.h. */
#define _GNU_SOURCE
#include "nullgpu/plans.h"
#include "common/vec.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- messages ---- */

void vc_wire_put(struct vc_wire *w, const void *from, size_t n)
{
	if (w->bad || !vc_vec_room(w->at, w->cap, w->n + n)) {
		w->bad = true;
		return;
	}
	if (n)
		memcpy(w->at + w->n, from, n);
	w->n += n;
}

void vc_wire_put_u32(struct vc_wire *w, uint32_t v)
{
	vc_wire_put(w, &v, sizeof v);
}

void vc_wire_put_text(struct vc_wire *w, const char *text)
{
	uint32_t n = (uint32_t)strlen(text);
	vc_wire_put_u32(w, n);
	vc_wire_put(w, text, n);
}

void vc_wire_get(struct vc_wire *w, void *to, size_t n)
{
	if (w->bad || n > w->n - w->read) {
		w->bad = true;
		memset(to, 0, n);
		return;
	}
	memcpy(to, w->at + w->read, n);
	w->read += n;
}

uint32_t vc_wire_get_u32(struct vc_wire *w)
{
	uint32_t v;
	vc_wire_get(w, &v, sizeof v);
	return v;
}

void vc_wire_get_text(struct vc_wire *w, char *to, size_t n)
{
	uint32_t length = vc_wire_get_u32(w), kept = length < n ? length : (uint32_t)n - 1;
	if (w->bad || length > w->n - w->read) {
		w->bad = true;
		kept = length = 0;
	}
	memcpy(to, w->at + w->read, kept);
	to[kept] = 0;
	w->read += length;
}

static bool all_of(int fd, void *buffer, size_t n, bool out)
{
	char *at = buffer;
	while (n) {
		/* a program that ignores nothing must not be ended by a pipe that broke */
		ssize_t k = out ? send(fd, at, n, MSG_NOSIGNAL) : recv(fd, at, n, 0);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		at += k;
		n -= (size_t)k;
	}
	return true;
}

bool vc_wire_send(int fd, const struct vc_wire *w)
{
	uint32_t n = (uint32_t)w->n;
	return !w->bad && w->n <= VC_PLANS_MESSAGE && all_of(fd, &n, sizeof n, true) &&
		all_of(fd, w->at, w->n, true);
}

bool vc_wire_receive(int fd, struct vc_wire *w)
{
	uint32_t n = 0;
	w->n = w->read = 0;
	w->bad = !all_of(fd, &n, sizeof n, false) || n > VC_PLANS_MESSAGE ||
		!vc_vec_room(w->at, w->cap, n + 1) || !all_of(fd, w->at, n, false);
	w->n = w->bad ? 0 : n;
	return !w->bad;
}

size_t vc_plans_width(int type)
{
	/* enumerations are ints; a fraction (26) is two numbers of eight */
	static const unsigned char widths[] = { 8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4, 4, 8,
					       4, 4, 4, 4, 4, 4, 4, 4, 1, 4, 16, 4, 4, 4, 4 };
	return type >= 0 && type < (int)sizeof widths ? widths[type] : 8;
}
