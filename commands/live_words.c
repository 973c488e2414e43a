/* SPDX-License-Identifier: Apache-2.0 */
/* live_words.c - see live_words.h. */
#include "commands/live_words.h"

#include "common/emit.h"

static const char *time_words(double s, char *buf, size_t n)
{
	if (s < 120)
		snprintf(buf, n, "%.0f seconds", s);
	else if (s < 7200)
		snprintf(buf, n, "%.0f minutes", s / 60);
	else
		snprintf(buf, n, "%.0f hours", s / 3600);
	return buf;
}

const char *vc_live_words(const struct vc_live_page *p, char *buf, size_t n)
{
	const char *unit = p->marked ? "step" : "second";
	char size[32], when[64], who[VC_LIVE_NAME + 80] = "";

	buf[0] = '\0';
	if (p->growth <= 0)
		return buf;
	if (p->growing)
		snprintf(who, sizeof(who), ", because %s keeps %s a %s", p->site[0].name,
			 vc_bytes_text((uint64_t)p->site[0].growth, size), unit);
	if (p->left < 0)
		snprintf(buf, n, "grows by %s a %s%s", vc_bytes_text((uint64_t)p->growth, size),
			 unit, who);
	else
		snprintf(buf, n, "runs out in about %.0f %ss (in %s)%s", p->left, unit,
			 time_words(p->left * p->seconds_a_step, when, sizeof(when)), who);
	return buf;
}
