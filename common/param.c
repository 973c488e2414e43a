/* SPDX-License-Identifier: Apache-2.0 */
/* param.c - see param.h */
#include "common/param.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>

static const struct { const char *suffix; double factor; } units[] = {
	{ "", 1 },           { "B", 1 },
	{ "K", 1024.0 },     { "KiB", 1024.0 },                   { "KB", 1e3 },
	{ "M", 1048576.0 },  { "MiB", 1048576.0 },                { "MB", 1e6 },
	{ "G", 1073741824.0 }, { "GiB", 1073741824.0 },           { "GB", 1e9 },
	{ "T", 1099511627776.0 }, { "TiB", 1099511627776.0 },     { "TB", 1e12 },
};

/* strtod also takes signs, hex, inf and nan; sizes take plain decimals only. */
static bool is_decimal_start(const char *s)
{
	return isdigit((unsigned char)s[0]) || (s[0] == '.' && isdigit((unsigned char)s[1]));
}

int vc_parse_size(const char *text, uint64_t *bytes, struct vc_error *err)
{
	char *end;
	size_t digits = strspn(text, "0123456789");
	double v;

	if (!is_decimal_start(text) || (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')))
		goto bad;
	if (!text[digits]) { /* plain bytes: exact beyond 2^53 */
		errno = 0;
		*bytes = strtoull(text, NULL, 10);
		if (errno || *bytes > VC_SIZE_MOST)
			return vc_fail(err, VC_EUSAGE, "size '%s' is larger than any memory", text);
		return VC_OK;
	}
	v = strtod(text, &end);
	while (*end == ' ')
		end++;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strcasecmp(end, units[i].suffix))
			continue;
		v *= units[i].factor;
		if (!(v <= (double)VC_SIZE_MOST))
			return vc_fail(err, VC_EUSAGE, "size '%s' is larger than any memory", text);
		if (units[i].factor == 1 && v != floor(v))
			return vc_fail(err, VC_EUSAGE, "'%s' is a part of a byte (did you mean "
				       "%sGiB?)", text, text);
		*bytes = (uint64_t)v;
		return VC_OK;
	}
bad:
	return vc_fail(err, VC_EUSAGE, "'%s' is not a size (try 20MiB, 1.5GiB or plain bytes)",
		       text);
}

int vc_parse_uint(const char *text, uint64_t *value, struct vc_error *err)
{
	size_t digits = strspn(text, "0123456789");

	errno = 0;
	if (!digits || text[digits])
		return vc_fail(err, VC_EUSAGE, "'%s' is not a whole number%s", text,
			       text[0] == '-' && isdigit((unsigned char)text[1]) ?
			       " from 0 on" : "");
	*value = strtoull(text, NULL, 10);
	if (errno || *value > INT64_MAX)
		return vc_fail(err, VC_EUSAGE, "%s is too large a number", text);
	return VC_OK;
}

/* "7B", "20k": what the same would be without the letter. */
static const char *power_of(const char *suffix)
{
	static const char *const powers[] = { "ke3", "Ke3", "me6", "Me6", "be9", "Be9", "ge9",
					     "Ge9", "te12", "Te12" };

	for (size_t i = 0; suffix[0] && !suffix[1] && i < sizeof(powers) / sizeof(*powers); i++)
		if (suffix[0] == powers[i][0])
			return powers[i] + 1;
	return NULL;
}

int vc_parse_real(const char *text, double *value, struct vc_error *err)
{
	const char *power;
	char *end;

	*value = strtod(text, &end);
	if (!is_decimal_start(text + (text[0] == '-' || text[0] == '+')) ||
	    strspn(text, "+-.0123456789eE") < (size_t)(end - text))
		end = (char *)(uintptr_t)text;
	power = end != text ? power_of(end) : NULL;
	if (power)
		return vc_fail(err, VC_EUSAGE, "'%s' is not a number (write %.*s%s)", text,
			       (int)(end - text), text, power);
	if (end == text || *end)
		return vc_fail(err, VC_EUSAGE, "'%s' is not a number", text);
	if (!isfinite(*value))
		return vc_fail(err, VC_EUSAGE, "%s is too large a number", text);
	return VC_OK;
}

int vc_parse_count(const char *text, double *value, struct vc_error *err)
{
	static const struct { char letter; double factor; } powers[] = {
		{ 'B', 1e9 }, { 'M', 1e6 }, { 'T', 1e12 } };
	size_t n = strlen(text);
	char number[64];

	for (size_t i = 0; n > 1 && n < sizeof(number) && i < 3; i++) {
		if (text[n - 1] != powers[i].letter)
			continue;
		memcpy(number, text, n - 1);
		number[n - 1] = '\0';
		VC_TRY(vc_parse_real(number, value, err));
		*value *= powers[i].factor;
		return VC_OK;
	}
	return vc_parse_real(text, value, err);
}

/* "90%", or a size where there is no percent sign. */
int vc_parse_share(const char *text, double *percent, uint64_t *bytes, struct vc_error *err)
{
	size_t n = strlen(text);
	char number[32];

	*percent = 0;
	*bytes = 0;
	if (n && n < sizeof(number) && text[n - 1] == '%') {
		snprintf(number, sizeof(number), "%.*s", (int)(n - 1), text);
		if (vc_parse_real(number, percent, err) == VC_OK && *percent >= 0)
			return VC_OK;
	} else if (vc_parse_size(text, bytes, err) == VC_OK) {
		return VC_OK;
	}
	return vc_fail(err, VC_EUSAGE, "%s: wants a percentage such as 90%% or a size such as "
		       "512MiB", text);
}

int vc_parse_amount(const char *text, double *value, struct vc_error *err)
{
	VC_TRY(vc_parse_real(text, value, err));
	if (!(*value > 0))
		return vc_fail(err, VC_EUSAGE, "%s must be above zero", text);
	if (*value > (double)VC_AMOUNT_MOST)
		return vc_fail(err, VC_EUSAGE, "%s is too large a number: the largest is %.0e",
			       text, (double)VC_AMOUNT_MOST);
	return VC_OK;
}

uint64_t vc_size_of(double bytes)
{
	if (!(bytes > 0))
		return 0;
	return bytes < (double)VC_SIZE_MOST ? (uint64_t)bytes : VC_SIZE_MOST;
}

static int parse_bool(const char *text, bool *value, struct vc_error *err)
{
	static const char *const yes[] = { "true", "1", "yes", "on" };
	static const char *const no[] = { "false", "0", "no", "off" };

	for (size_t i = 0; i < 4; i++) {
		if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
			*value = !strcasecmp(text, yes[i]);
			return VC_OK;
		}
	}
	return vc_fail(err, VC_EUSAGE, "'%s' is neither true nor false", text);
}

static int parse_choice(const char *choices, const char *text, uint64_t *value,
			struct vc_error *err)
{
	uint64_t index = 0;

	for (const char *c = choices; c; index++) {
		const char *comma = strchr(c, ',');
		size_t n = comma ? (size_t)(comma - c) : strlen(c);

		if (strlen(text) == n && !strncmp(text, c, n)) {
			*value = index;
			return VC_OK;
		}
		c = comma ? comma + 1 : NULL;
	}
	return vc_fail(err, VC_EUSAGE, "'%s' is none of %s", text, choices);
}

static int set_one(const struct vc_param *p, void *cfg, const char *value, struct vc_error *err)
{
	void *field = (char *)cfg + p->offset;
	int r = VC_OK;

	switch (p->type) {
	case VC_P_BOOL: r = parse_bool(value, field, err); break;
	case VC_P_UINT: r = vc_parse_uint(value, field, err); break;
	case VC_P_SIZE: r = vc_parse_size(value, field, err); break;
	case VC_P_REAL: r = vc_parse_real(value, field, err); break;
	case VC_P_ENUM: r = parse_choice(p->choices, value, field, err); break;
	case VC_P_TEXT:
		if (strlen(value) >= VC_PARAM_TEXT)
			return vc_fail(err, VC_EUSAGE, "%s: longer than %d characters", p->name,
				       VC_PARAM_TEXT - 1);
		memcpy(field, value, strlen(value) + 1);
		break;
	case VC_P_ALIAS:
		break;
	}
	return r < 0 ? vc_wrap(err, "%s", p->name) : VC_OK;
}

const char *vc_nearest(const char *word, const char *const *names, size_t n)
{
	size_t best = 3; /* more than two edits apart is a different word */
	const char *near = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t row[65], wl = strlen(word), nl = strlen(names[i]), d;

		if (wl > 64 || nl > 64)
			continue;
		for (size_t k = 0; k <= nl; k++)
			row[k] = k;
		for (size_t a = 1; a <= wl; a++) { /* Levenshtein distance, one row */
			size_t diagonal = row[0];

			row[0] = a;
			for (size_t b = 1; b <= nl; b++) {
				size_t up = row[b];
				size_t change = diagonal + (word[a - 1] != names[i][b - 1]);

				d = up < row[b - 1] ? up + 1 : row[b - 1] + 1;
				row[b] = d < change ? d : change;
				diagonal = up;
			}
		}
		if (row[nl] < best && row[nl] < nl) {
			best = row[nl];
			near = names[i];
		}
	}
	return near;
}

static int unknown(const struct vc_param *table, const char *name, struct vc_error *err)
{
	const char *names[64], *near;
	size_t n = 0;

	while (n < 64 && table && table[n].name) {
		names[n] = table[n].name;
		n++;
	}
	near = vc_nearest(name, names, n);
	if (near)
		return vc_fail(err, VC_EUSAGE, "no parameter is called '%s' (did you mean %s?)",
			       name, near);
	return vc_fail(err, VC_EUSAGE, n ? "no parameter is called '%s' (the first is %s)"
		       : "no parameter is called '%s' (it takes none)", name, n ? names[0] : "");
}

const struct vc_param *vc_param_find(const struct vc_param *table, const char *name)
{
	for (const struct vc_param *p = table; p && p->name; p++)
		if (!strcmp(p->name, name))
			return p->type == VC_P_ALIAS ? vc_param_find(table, p->choices) : p;
	return NULL;
}

static int set_pair(const struct vc_param *table, void *cfg, char *pair, uint64_t *given,
		    struct vc_error *err)
{
	char *eq = strchr(pair, '=');

	if (eq)
		*eq++ = '\0';
	const struct vc_param *p = vc_param_find(table, pair);
	if (!p)
		return unknown(table, pair, err);
	if (!eq && p->type != VC_P_BOOL)
		return vc_fail(err, VC_EUSAGE, "%s wants a value (%s=%s)", p->name, p->name,
			       p->fallback);
	*given |= UINT64_C(1) << (p - table);
	return set_one(p, cfg, eq ? eq : "true", err);
}

int vc_params_parse(const struct vc_param *table, void *cfg, const char *text, struct vc_error *err)
{
	uint64_t given;

	return vc_params_read(table, cfg, text, &given, err);
}

int vc_params_read(const struct vc_param *table, void *cfg, const char *text, uint64_t *given,
		   struct vc_error *err)
{
	char copy[4096];
	char *save = NULL;

	*given = 0;
	for (const struct vc_param *p = table; p && p->name; p++)
		if (p->type != VC_P_ALIAS && set_one(p, cfg, p->fallback, err) < 0)
			return vc_wrap(err, "default");
	if (!text)
		return VC_OK;
	if (strlen(text) >= sizeof(copy))
		return vc_fail(err, VC_EUSAGE, "parameter list is longer than %zu characters",
			       sizeof(copy) - 1);
	memcpy(copy, text, strlen(text) + 1);
	for (char *kv = strtok_r(copy, ",", &save); kv; kv = strtok_r(NULL, ",", &save))
		VC_TRY(set_pair(table, cfg, kv, given, err));
	return VC_OK;
}
