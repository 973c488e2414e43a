/* SPDX-License-Identifier: Apache-2.0 */
/* test_visual_golden.c - pictures byte for byte: files for a small run, hashes for a large one.
 * VC_UPDATE_GOLDEN=1 writes them anew; the difference is then reviewed like code. */
#include "tests/support/test.h"

#include "common/io.h"
#include "tests/support/synth.h"
#include "visualize/sink.h"

#define FOLDER "tests/golden/pictures/"

static char *draw(const struct vc_sink_type *t, const char *params, const struct vc_result *r,
		  size_t runs, size_t *n)
{
	struct vc_error err = { 0 };
	void *cfg = calloc(1, t->config_size + 1);
	struct vc_output *out = vc_output_memory(&err);

	assert_non_null(out);
	assert_int_equal(vc_params_parse(t->params, cfg, params, &err), 0);
	if (t->write(r, runs, cfg, out, &err))
		fail_msg("%s: %s", t->name, err.message);
	char *text = vc_output_take(out, n);
	vc_output_close(out);
	free(cfg);
	return text;
}

static char *load(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *text = f ? calloc(1, 2000000) : NULL;

	*n = text ? fread(text, 1, 1999999, f) : 0;
	if (f)
		fclose(f);
	return text;
}

static void store(const char *path, const char *text, size_t n)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void compare(const char *path, const char *text, size_t n)
{
	size_t m;

	if (getenv("VC_UPDATE_GOLDEN")) {
		store(path, text, n);
		return;
	}
	char *want = load(path, &m);
	if (!want)
		fail_msg("%s is missing", path);
	size_t at = 0;
	while (at < n && at < m && text[at] == want[at])
		at++;
	if (n != m || at < n)
		fail_msg("%s differs from byte %zu on: ...%.60s", path, at,
			 text + (at > 20 ? at - 20 : 0));
	free(want);
}

static void small_pictures_are_the_recorded_ones(void **unused)
{
	struct synth_options o = { 3, 2, 160u << 20, 4ull << 30, true, true, false };
	struct synth *s = synth_new(&o);
	char path[160];
	size_t n;

	(void)unused;
	for (size_t i = 0; vc_sinks[i]; i++) {
		const struct vc_sink_type *t = vc_sinks[i];
		if (!strcmp(t->name, "html") ||
		    (strcmp(t->extension, "svg") && strcmp(t->extension, "txt") &&
		     strcmp(t->extension, "dot")))
			continue;
		char *text = draw(t, strcmp(t->extension, "svg") ? NULL : "footer=false", &s->r,
				  1, &n);
		snprintf(path, sizeof(path), FOLDER "%s.%s", t->name, t->extension);
		compare(path, text, n);
		free(text);
	}
	synth_fini(s);
}

static uint64_t fnv(const char *text, size_t n)
{
	uint64_t h = 14695981039346656037ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)text[i]) * 1099511628211ull;
	return h;
}

static void large_pictures_have_the_recorded_hashes(void **unused)
{
	struct synth_options o = { 60, 20, 60u << 20, 24ull << 30, true, false, false };
	struct synth *s = synth_new(&o);
	char all[4000] = "";
	size_t n, used = 0;

	(void)unused;
	for (size_t i = 0; vc_sinks[i]; i++) {
		if (strcmp(vc_sinks[i]->extension, "svg"))
			continue;
		char *text = draw(vc_sinks[i], "footer=false", &s->r, 1, &n);
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s %zu %016llx\n",
					 vc_sinks[i]->name, n, (unsigned long long)fnv(text, n));
		free(text);
	}
	compare(FOLDER "hashes.txt", all, used);
	synth_fini(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_pictures_are_the_recorded_ones),
		cmocka_unit_test(large_pictures_have_the_recorded_hashes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
