/* SPDX-License-Identifier: Apache-2.0 */
/* test_fuzz_corpus.c - the fuzzers' corpus, as it is and with thousands of small damages. */
#define _GNU_SOURCE /* memfd_create, in fuzz_source.c */
#include "tests/support/test.h"
#include "tests/support/told.h"

#include <dirent.h>

#include "tests/fuzz/fuzz_source.c"

#define FOLDER "tests/fuzz/corpus"
#define ROUNDS 500

static uint8_t *load(const char *name, size_t *n)
{
	char path[400];
	uint8_t *p;
	FILE *f;

	snprintf(path, sizeof(path), FOLDER "/%s", name);
	f = fopen(path, "rb");
	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*n = (size_t)ftell(f);
	rewind(f);
	p = malloc(*n + 1);
	assert_int_equal(fread(p, 1, *n, f), *n);
	fclose(f);
	return p;
}

static uint32_t dice(uint64_t *seed, size_t sides)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*seed >> 33) % sides);
}

/* Flip, overwrite, cut out, repeat: the same damages on every machine. */
static size_t damage(uint8_t *p, size_t n, size_t cap, uint64_t *seed)
{
	static const uint8_t special[] = { 0,   1,   0x7f, 0x80, 0xff, '(', '.',
					  'R', 'e', 'u',  'r',  '{',  '[', '"' };
	uint32_t times = 1 + dice(seed, 4);

	while (times-- && n > 1) {
		size_t at = dice(seed, n), len = 1 + dice(seed, n - at < 40 ? n - at : 40);

		switch (dice(seed, 5)) {
		case 0: p[at] ^= (uint8_t)(1 << dice(seed, 8)); break;
		case 1: p[at] = special[dice(seed, sizeof(special))]; break;
		case 2:
			memmove(p + at, p + at + len, n - at - len);
			n -= len;
			break;
		case 3:
			if (n + len <= cap) {
				memmove(p + at + len, p + at, n - at);
				n += len;
			}
			break;
		default: n = dice(seed, 8) ? n : at; break;
		}
	}
	return n;
}

static bool own; /* nothing but our own code reads it: its messages are ours */

/* What was read, member by member, for what is between them has no value; or what is wrong, but
 * for the number of an open file. */
static void saw(const struct vc_trace *t, const char *message)
{
	static const char file[] = "/proc/self/fd/";
	struct vc_error err = { 0 };
	size_t n = 0;
	char *head = t ? vct_meta_text(t->meta, t->meta->complete, false, &n, &err) : NULL;

	if (!strncmp(message, file, sizeof(file) - 1))
		message += strcspn(message, ":");
	tell(head, n);
	tell(message, own ? strlen(message) : 0);
	for (size_t i = 0; t && i < t->n; i++) {
		const struct vc_event *e = &t->ev[i];
		const uint64_t is[] = { e->kind, e->flags, e->device, e->stream, e->site, e->label,
					e->id, e->size, e->addr, e->time_ns };

		tell(is, sizeof(is));
	}
	tell(&n, sizeof(n));
	free(head);
}

static void every_file_and_its_damaged_copies_are_read_or_refused(void **unused)
{
	DIR *d = opendir(FOLDER);
	struct dirent *entry;
	size_t files = 0;

	(void)unused;
	fuzz_saw = saw;
	assert_non_null(d);
	while ((entry = readdir(d))) {
		uint8_t *p, *copy;
		uint64_t seed = 1;
		size_t n;

		if (entry->d_name[0] == '.')
			continue;
		files++;
		told_sum = TOLD_NOTHING;
		own = !strstr(entry->d_name, ".vct") && !strstr(entry->d_name, ".block");
		p = load(entry->d_name, &n);
		LLVMFuzzerTestOneInput(p, n);
		copy = malloc(n + 200);
		for (int i = 0; i < ROUNDS; i++) {
			memcpy(copy, p, n);
			LLVMFuzzerTestOneInput(copy, damage(copy, n, n + 200, &seed));
		}
		free(copy);
		free(p);
		if (!strstr(entry->d_name, "sqlite")) /* whose library has many versions */
			told_is("fuzz_corpus", entry->d_name);
	}
	closedir(d);
	assert_true(files >= 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_file_and_its_damaged_copies_are_read_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
