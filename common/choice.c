/* SPDX-License-Identifier: Apache-2.0 */
/* choice.c - see choice.h */
#include "common/choice.h"

enum { MOST = 1 << 20 }; /* no list means more things than this */

struct part { size_t from, to, step; bool together; }; /* both ends included */

static bool number(const char **p, size_t *v)
{
	char *end;
	unsigned long long n;

	if (**p < '0' || **p > '9')
		return false;
	n = strtoull(*p, &end, 10);
	*p = end;
	*v = (size_t)n;
	return n < MOST;
}

/* The part that *p begins with; behind it, *p stands at its '/' or at the end. */
static bool read_part(const char **p, struct part *x)
{
	*x = (struct part){ .step = 1 };
	if (!number(p, &x->from))
		return false;
	x->to = x->from;
	if (**p == '-') {
		x->together = true;
		++*p;
	} else if (!strncmp(*p, "..", 2)) {
		*p += 2;
	} else {
		return !**p || **p == '/';
	}
	if (!number(p, &x->to) || x->to < x->from)
		return false;
	if (**p == '+' && !x->together) {
		++*p;
		if (!number(p, &x->step) || !x->step)
			return false;
	}
	return !**p || **p == '/';
}

static int check_list(const struct vc_choice *c, struct vc_error *err)
{
	size_t next = 0;

	for (const char *p = c->list; *p; p += *p == '/') {
		struct part x;

		if (!read_part(&p, &x) || (*p == '/' && !p[1]))
			return vc_fail(err, VC_EUSAGE, "layers=%s: write numbers from 0 on, as in "
				       "0/2..5/8-11: 0 and 2 to 5 one by one, 8 to 11 together",
				       c->list);
		if (x.from < next)
			return vc_fail(err, VC_EUSAGE, "layers=%s: %zu comes twice, or behind a "
				       "larger number", c->list, x.from);
		next = x.to + 1;
	}
	return VC_OK;
}

int vc_choice_check(const struct vc_choice *c, struct vc_error *err)
{
	if (!c->every || !c->stride)
		return vc_fail(err, VC_EUSAGE, "every and stride start at 1");
	if (c->stride > 1 && c->every > 1)
		return vc_fail(err, VC_EUSAGE, "every and stride exclude each other");
	if (c->list[0] && (c->every > 1 || c->stride > 1 || c->first || c->count || !c->last))
		return vc_fail(err, VC_EUSAGE, "layers= names them all: leave every, stride, "
			       "first, count and last out");
	return check_list(c, err);
}

static size_t of_list(const struct vc_choice *c, size_t n, struct vc_chosen *out)
{
	struct part x;
	size_t m = 0;

	for (const char *p = c->list; *p && read_part(&p, &x); p += *p == '/') {
		if (x.together && x.from < n)
			out[m++] = (struct vc_chosen){ x.from, x.to < n ? x.to + 1 : n };
		for (size_t i = x.from; !x.together && i <= x.to && i < n; i += x.step)
			out[m++] = (struct vc_chosen){ i, i + 1 };
	}
	return m;
}

size_t vc_choice_of(const struct vc_choice *c, size_t n, struct vc_chosen *out)
{
	size_t end = n, m = 0;

	if (c->list[0])
		return of_list(c, n, out);
	if (c->count && c->first < n && c->count < n - c->first)
		end = c->first + c->count;
	for (size_t k = c->first; k < end; k += c->every * c->stride) {
		size_t to = k + c->every < end ? k + c->every : end;

		if (!c->last && k + c->every * c->stride >= end)
			break;
		out[m++] = (struct vc_chosen){ k, to };
	}
	return m;
}

size_t vc_choice_reach(const struct vc_choice *c)
{
	struct part x = { 0 };

	for (const char *p = c->list; *p && read_part(&p, &x); p += *p == '/')
		;
	return x.to;
}

/* The longest run from i on with one distance between neighbours; its last, *step. */
static size_t run_from(const bool *take, size_t n, size_t i, size_t *step)
{
	size_t next = i + 1, last = i;

	while (next < n && !take[next])
		next++;
	*step = next - i;
	for (size_t k = next; k < n && take[k]; k += *step) {
		for (size_t j = last + 1; j < k; j++)
			if (take[j])
				return last;
		last = k;
	}
	return last;
}

bool vc_choice_write(const bool *take, size_t n, char *out, size_t cap)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n && at < cap; i++) {
		size_t step, last;
		const char *slash = at ? "/" : "";

		if (!take[i])
			continue;
		last = run_from(take, n, i, &step);
		if (last < i + 2 * step)
			last = step == 1 ? last : i; /* two of them are no shorter as a range */
		if (last == i)
			at += (size_t)snprintf(out + at, cap - at, "%s%zu", slash, i);
		else if (step == 1)
			at += (size_t)snprintf(out + at, cap - at, "%s%zu..%zu", slash, i, last);
		else
			at += (size_t)snprintf(out + at, cap - at, "%s%zu..%zu+%zu", slash, i, last,
					       step);
		i = last;
	}
	return at < cap;
}
