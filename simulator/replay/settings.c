/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c - see settings.h. An entry is KEY:VALUE; commas in brackets part no entries. */
#include "simulator/replay/settings.h"

static size_t entry_length(const char *s)
{
	size_t n = 0;

	for (int deep = 0; s[n] && (deep || s[n] != ','); n++)
		deep += (s[n] == '[') - (s[n] == ']');
	return n;
}

/* The next entry of *s, which moves behind it; 0: none. */
static size_t next_entry(const char **s, const char **entry)
{
	size_t n;

	while (**s == ',')
		++*s;
	*entry = *s;
	n = entry_length(*s);
	*s += n;
	return n;
}

static size_t key_length(const char *entry, size_t n)
{
	const char *colon = memchr(entry, ':', n);

	return colon ? (size_t)(colon - entry) : n;
}

static bool has(const char *text, const char *what, size_t n, bool key)
{
	const char *entry;
	size_t m;

	while ((m = next_entry(&text, &entry))) {
		m = key ? key_length(entry, m) : m;
		if (m == n && !memcmp(entry, what, n))
			return true;
	}
	return false;
}

static size_t append(char *buf, size_t at, size_t n, const char *entry, size_t length)
{
	if (at < n)
		at += (size_t)snprintf(buf + at, n - at, "%s%.*s", at ? "," : "", (int)length,
				       entry);
	return at;
}

const char *vc_settings_over(const char *text, const char *was, const char *is, char *buf,
			     size_t n)
{
	const char *entry, *from = is;
	size_t m, at = 0;

	if (!strcmp(was, is))
		return text;
	buf[0] = '\0';
	while ((m = next_entry(&from, &entry))) {
		size_t k = key_length(entry, m);

		if (!has(was, entry, k, true) || has(text, entry, k, true))
			at = append(buf, at, n, entry, m);
	}
	for (from = text; (m = next_entry(&from, &entry));)
		if (!has(was, entry, m, false))
			at = append(buf, at, n, entry, m);
	return buf;
}
