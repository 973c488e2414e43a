/* SPDX-License-Identifier: Apache-2.0 */
/* deviceless.c - a libcudnn that answers as the real one does without a GPU, with sizes that a test
 * can compute. For tests of the process that asks it (plans.sh).
 *
 * The heuristics name three plans: as many bytes as the graph's tensors have elements and the
 * card's deviceVer on top (tensor cores), half of that (not deterministic), none; the fallback list
 * one of seven bytes. DEVICELESS: old (9.7), refuses (no card), empty (no plan), dies (at every
 * question), once (at the first). DEVICELESS_VERSION: another than 9.11.0 (91100). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG = 3, HEURISTIC = 4, TENSOR = 17 };

struct descriptor {
	int type, mode, finalized;
	int64_t elements; /* of this and of what it refers to */
	int64_t bytes;
	int note;
};

static int64_t device_version;

static int is(const char *way)
{
	const char *s = getenv("DEVICELESS");
	return s && !strcmp(s, way);
}

size_t cudnnGetVersion(void);
const char *cudnnGetErrorString(int status);
int cudnnBackendCreateDescriptor(int type, struct descriptor **out);
int cudnnBackendDestroyDescriptor(struct descriptor *d);
int cudnnBackendSetAttribute(struct descriptor *d, int name, int type, int64_t n,
			     const void *value);
int cudnnBackendGetAttribute(struct descriptor *d, int name, int type, int64_t wanted, int64_t *n,
			     void *out);
int cudnnBackendFinalize(struct descriptor *d);

size_t cudnnGetVersion(void)
{
	const char *version = getenv("DEVICELESS_VERSION");

	return is("old") ? 90701 : version ? (size_t)atol(version) : 91100;
}

const char *cudnnGetErrorString(int status)
{
	return status == 2000 ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_NOT_SUPPORTED";
}

int cudnnBackendCreateDescriptor(int type, struct descriptor **out)
{
	*out = calloc(1, sizeof **out);
	(*out)->type = type;
	return *out == NULL;
}

int cudnnBackendDestroyDescriptor(struct descriptor *d)
{
	free(d);
	return 0;
}

int cudnnBackendSetAttribute(struct descriptor *d, int name, int type, int64_t n, const void *value)
{
	const int64_t *v = value;
	struct descriptor *const *to = value;
	if (type == 15 && !(*to)->finalized && (*to)->type != CONFIG)
		return 2000; /* refers to what is not finished */
	if (name == 2702) { /* JSON */
		char text[8192];
		snprintf(text, sizeof text, "%.*s", (int)n, (const char *)value);
		const char *at = strstr(text, "\"deviceVer\":");
		device_version = at ? strtoll(at + 12, NULL, 10) : 0;
	} else if (name == 200) {
		memcpy(&d->mode, value, sizeof d->mode);
	} else if (name == 902) {
		d->elements = 1;
		for (int64_t i = 0; i < n; i++)
			d->elements *= v[i];
	} else if (type == 15) {
		d->elements += (*to)->elements;
		if (name == 401) { /* the configuration of a plan */
			d->bytes = (*to)->bytes;
			d->note = (*to)->note;
		}
	}
	return 0;
}

static int results(struct descriptor *h, int64_t wanted, int64_t *n, struct descriptor **out)
{
	int64_t first = h->elements + device_version, bytes[] = { first, first / 2, 0 };
	const int notes[] = { 0, 4, -1 };
	int fallback = h->mode == 2;
	*n = is("empty") ? 0 : fallback ? 1 : 3;
	for (int i = 0; out && i < wanted && i < *n; i++) {
		out[i]->bytes = fallback ? 7 : bytes[i];
		out[i]->note = fallback ? -1 : notes[i];
	}
	return 0;
}

int cudnnBackendGetAttribute(struct descriptor *d, int name, int type, int64_t wanted, int64_t *n,
			     void *out)
{
	*n = 1;
	switch (name) {
	case 202: return results(d, wanted, n, out);
	case 300:
		(*(struct descriptor **)out)->note = d->note;
		return 0;
	case 402: memcpy(out, &d->bytes, sizeof d->bytes); return 0;
	case 1303:
		*n = d->note >= 0;
		memcpy(out, &d->note, sizeof d->note);
		return 0;
	}
	*n = 0;
	return type < 0;
}

int cudnnBackendFinalize(struct descriptor *d)
{
	const char *mark = getenv("DEVICELESS_MARK");
	d->finalized = 1;
	if (d->type == 38 && is("refuses"))
		return 3000;
	if (d->type == HEURISTIC && (is("dies") || (is("once") && mark && access(mark, F_OK)))) {
		FILE *f = mark ? fopen(mark, "w") : NULL;
		if (f)
			fclose(f);
		abort();
	}
	return 0;
}
