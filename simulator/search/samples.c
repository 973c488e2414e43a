/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - see samples.h */
#include "simulator/search/samples.h"

#include <ctype.h>

#include "common/io.h"
#include "common/map.h"
#include "common/vec.h"

enum { MAX_LINE = 256 };
#define MOST_TOKENS (UINT64_C(1) << 60) /* of all samples, so that sums hold */

/* "512" or "512 1040"; *samples = 0: nothing stands there. False: something else does. */
static bool read_line(const char *p, uint64_t *length, uint64_t *samples)
{
	uint64_t v[2] = { 0, 1 };
	size_t n = 0;

	for (p += strspn(p, " \t"); *p; p += strspn(p, " \t,;:")) {
		char *end;

		if (n == 2 || !isdigit((unsigned char)*p))
			return false;
		v[n++] = strtoull(p, &end, 10);
		p = end;
	}
	*length = v[0];
	*samples = n ? v[1] : 0;
	return true;
}

VC_COMPARE(by_length, struct vc_sample_length, VC_ORDER(x->length, y->length))

struct reading {
	struct vc_samples *s;
	struct vc_map known; /* length -> 1 + its place */
	uint64_t most, pad;
};

static int add(struct reading *r, struct vc_sample_length one)
{
	struct vc_samples *s = r->s;
	uint64_t *known;

	if (one.length > MOST_TOKENS || one.samples > MOST_TOKENS / one.length ||
	    s->tokens > MOST_TOKENS - one.length * one.samples)
		return VC_EFORMAT;
	if (r->most && one.length > r->most) {
		s->cut += (one.length - r->most) * one.samples;
		one.length = r->most;
	}
	s->tokens += one.length * one.samples;
	s->samples += one.samples;
	one.length = (one.length + r->pad - 1) / r->pad * r->pad;
	known = vc_map_get(&r->known, one.length);
	if (known) {
		s->at[*known - 1].samples += one.samples;
		return VC_OK;
	}
	if (!vc_vec_one(s->at, s->n) || !vc_map_put(&r->known, one.length, s->n + 1))
		return VC_ENOMEM;
	s->at[s->n++] = one;
	return VC_OK;
}

static int read_sample(struct reading *r, char *text, uint64_t line, struct vc_error *err)
{
	struct vc_sample_length one;
	int rc;

	text[strcspn(text, "#\r")] = '\0';
	if (!read_line(text, &one.length, &one.samples))
		return line == 1 ? VC_OK : /* names of columns */
		       vc_fail(err, VC_EFORMAT, "line %" PRIu64 ": wants a length, or a length "
			       "and how many samples have it", line);
	if (!one.samples)
		return VC_OK;
	if (!one.length)
		return vc_fail(err, VC_EFORMAT, "line %" PRIu64 ": a sample of length 0", line);
	rc = add(r, one);
	return rc == VC_OK ? rc : rc == VC_ENOMEM ? vc_nomem(err, "lengths of samples") :
	       vc_fail(err, rc, "line %" PRIu64 ": more than 2^60 tokens", line);
}

static int read_all(struct vc_samples *s, struct vc_input *in, uint64_t most, uint64_t pad,
		    struct vc_error *err)
{
	struct reading all = { .s = s, .most = most, .pad = pad };
	size_t room = 0, n = 0;
	uint64_t line = 1;
	char *text = NULL;
	int r;

	for (; (r = vc_input_line(in, MAX_LINE, &text, &room, &n, err)) > 0; line++)
		if ((r = read_sample(&all, text, line, err)) < 0)
			break;
	free(text);
	vc_map_fini(&all.known);
	if (r < 0)
		return n > MAX_LINE ? vc_wrap(err, "line %" PRIu64, line) : r;
	if (!s->n)
		return vc_fail(err, VC_EFORMAT, "no lengths; one stands on each line, or a length "
			       "and how many samples have it");
	vc_sort(s->at, s->n, sizeof(*s->at), by_length);
	return VC_OK;
}

int vc_samples_read(struct vc_samples *s, const char *path, uint64_t most, uint64_t pad,
		    struct vc_error *err)
{
	*s = (struct vc_samples){ 0 };
	struct vc_input *in = vc_input_open(path, err);
	int r = in ? read_all(s, in, most, pad ? pad : 1, err) : (int)err->status;

	if (in && r == VC_OK && vc_input_truncated(in))
		r = vc_fail(err, VC_EFORMAT, "the file is cut off");
	if (in && r < 0)
		vc_wrap(err, "%s", path);
	vc_input_close(in);
	return r;
}

void vc_samples_fini(struct vc_samples *s)
{
	VC_FREE(s->at);
	*s = (struct vc_samples){ 0 };
}

uint64_t vc_samples_over(const struct vc_samples *s, uint64_t length, uint64_t *tokens)
{
	uint64_t n = 0;

	*tokens = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->at[i].length > length) {
			n += s->at[i].samples;
			*tokens += (s->at[i].length - length) * s->at[i].samples;
		}
	return n;
}

uint64_t vc_samples_quantile(const struct vc_samples *s, double share)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		n += s->at[i].samples;
		if ((double)n >= share * (double)s->samples)
			return s->at[i].length;
	}
	return s->n ? s->at[s->n - 1].length : 0;
}

/* None is drawn: C(all - some, drawn) / C(all, drawn), a product with as many factors as the
 * smaller of the two numbers. */
double vc_samples_chance(const struct vc_samples *s, uint64_t some, uint64_t drawn)
{
	uint64_t few = some < drawn ? some : drawn, many = some < drawn ? drawn : some;
	double none = 0;

	if (!few)
		return 0;
	if (few + many > s->samples)
		return 1;
	for (uint64_t i = 0; i < few && none > -800; i++)
		none += log1p(-(double)many / (double)(s->samples - i));
	return -expm1(none);
}
