/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_name.c - see kernel_name.h. The grammar is that of the Itanium C++ ABI, 5.1. */
#include "common/kernel_name.h"
#include "common/std.h"

#include <ctype.h>

enum { INSIDE = 4 }; /* names in angle brackets, at most */

static const char *behind_digits(const char *p)
{
	while (isdigit((unsigned char)*p))
		p++;
	return p;
}

/* "6native" at *p: its length, and *p behind the number; 0: no name stands there. */
static size_t name_at(const char **p)
{
	const char *at = behind_digits(*p);
	size_t n = at - *p < 5 ? strtoul(*p, NULL, 10) : 0;

	if (at == *p || !n || n > strlen(at) || isdigit((unsigned char)*at))
		return 0;
	*p = at;
	return n;
}

static bool is_nameless(const char *name, size_t n)
{
	return n > 8 && !strncmp(name, "_GLOBAL_", 8);
}

/* What looks like a number before a name and is none: a back reference (S1_, T0_), a value (Li4E,
 * the one behind an enumeration's name), the number of a lambda (E1_). */
static const char *skip(const char *p)
{
	const char *end;

	if (*p == 'S' || *p == 'T') {
		end = p + 1 + strspn(p + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		return *end == '_' ? end + 1 : p + 1;
	}
	if (*p == 'L' && islower((unsigned char)p[1]))
		return behind_digits(p + 2 + (p[2] == 'n'));
	if (*p == 'E' && isdigit((unsigned char)p[1]) && p[2] == '_')
		return p + 3;
	return p + 1;
}

static void append(char *buf, const char *between, const char *name, size_t n)
{
	size_t used = strlen(buf);

	snprintf(buf + used, VC_KERNEL_NAME - used, "%s%.*s", between, (int)n, name);
}

/* Up to where the template or the arguments begin. */
static const char *own_name(const char *p, char *buf)
{
	size_t n;

	for (p += *p == 'N'; isdigit((unsigned char)*p); p += n) {
		n = name_at(&p);
		if (!n)
			break;
		if (!is_nameless(p, n))
			append(buf, *buf ? "::" : "", p, n);
	}
	return p;
}

const char *vc_kernel_name(const char *name, char *buf)
{
	const char *p = name + 2, *seen[INSIDE];
	size_t length[INSIDE], k = 0, n;

	*buf = '\0';
	if (strncmp(name, "_Z", 2) != 0 || !*(p = own_name(p, buf)) || !*buf) {
		snprintf(buf, VC_KERNEL_NAME, "%s", name);
		return buf;
	}
	while (*p && k < INSIDE) {
		bool value = *p == 'L' && isdigit((unsigned char)p[1]), again = false;

		p += value;
		n = isdigit((unsigned char)*p) ? name_at(&p) : 0;
		if (!n) {
			p = skip(p);
			continue;
		}
		for (size_t i = 0; i < k; i++)
			again |= length[i] == n && !strncmp(seen[i], p, n);
		if (!again && !value && !is_nameless(p, n)) {
			append(buf, k ? ", " : "<", p, n);
			seen[k] = p;
			length[k++] = n;
		}
		p += n;
		p = value ? behind_digits(p) : p;
	}
	if (k)
		append(buf, ">", "", 0);
	return buf;
}
