/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - characters to bytes and back. */
#pragma once

#include "common/std.h"

/* Writes the character as 1 to 4 bytes and returns their number. Beyond U+10FFFF only the low bits
 * count. */
static inline size_t vc_utf8_put(uint32_t c, char *to)
{
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = n; i-- > 1; c >>= 6)
		to[i] = (char)(0x80 | (c & 63));
	to[0] = (char)(lead[n] | (n == 4 ? c & 7 : c));
	return n;
}

/* Length of the character at p (n > 0 bytes left), 0 when it is none (RFC 3629: no overlong
 * forms, no surrogates, nothing beyond U+10FFFF). */
static inline size_t vc_utf8_length(const uint8_t *p, size_t n)
{
	size_t len = p[0] < 0x80 ? 1 :
		     p[0] < 0xc2 ? 0 :
		     p[0] < 0xe0 ? 2 :
		     p[0] < 0xf0 ? 3 :
		     p[0] < 0xf5 ? 4 :
				   0;

	if (!len || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
	    (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return len;
}

/* A text for people, in place: what is no character, and what would steer a terminal, becomes '?'.
 * Names come from files that anybody may have made. What is in `stays` stays. */
static inline char *vc_utf8_plain_but(char *s, const char *stays)
{
	uint8_t *p = (uint8_t *)s, *end = p;

	while (*end)
		end++;
	while (p < end) {
		size_t n = vc_utf8_length(p, (size_t)(end - p));

		if (!n || (n == 1 && ((*p < ' ' && !strchr(stays, *p)) || *p == 0x7f)) ||
		    (n == 2 && *p == 0xc2 && p[1] < 0xa0)) { /* C1: 0x9b is ESC [ in one */
			*p++ = '?';
			continue;
		}
		p += n;
	}
	return s;
}

static inline char *vc_utf8_plain(char *s) { return vc_utf8_plain_but(s, "\n\t"); }
/* A text that has one line and no columns. */
static inline char *vc_utf8_line(char *s) { return vc_utf8_plain_but(s, ""); }
