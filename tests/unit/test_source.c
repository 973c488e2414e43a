/* SPDX-License-Identifier: Apache-2.0 */
/* test_source.c - recognising files, parameters in names, traces in memory, profiles. */
#include "tests/support/test.h"

#include "common/map.h"
#include "simulator/replay/transform.h"
#include "tests/support/temp_path.h"

static void put_file(const char *text)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
	fclose(f);
}

static void read_file(const char *name, struct vc_trace *t)
{
	struct vc_error err = { 0 };
	struct vc_source *s = vc_source_open(name, &err);

	*t = (struct vc_trace){ 0 };
	if (!s || vc_trace_read(t, s, &err))
		fail_msg("%s", err.message);
	vc_source_free(s);
}

#define MEM(ts, dev, addr, bytes, total) \
	"{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"ts\":" ts \
	",\"args\":{\"Device Type\":" dev ",\"Device Id\":1,\"Addr\":" addr ",\"Bytes\":" bytes \
	",\"Total Allocated\":" total ",\"Total Reserved\":9999}}"

static const char profile[] =
	"{\"deviceProperties\":[{\"id\":64,\"name\":\"one too many\"},"
	"{\"id\":1,\"name\":\"Some GPU\",\"totalGlobalMem\":1000}],"
	"\"metadata\":{\"secret\":[1]},"
	"\"baseTimeNanoseconds\":1000000000,\"distributedInfo\":{\"rank\":1},\"traceEvents\":["
	MEM("30.5", "1", "512", "-1024", "2048") ","
	MEM("10.25", "1", "512", "1024", "3072") ","
	MEM("20", "0", "512", "77", "77") ","
	MEM("40.125", "6", "4096", "-512", "1536") ","
	"{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k<1>\",\"ts\":12.001,\"dur\":3.5,"
	"\"args\":{\"device\":1,\"stream\":7,\"correlation\":99}},"
	"{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"m\",\"ts\":13,\"dur\":1,"
	"\"args\":{\"device\":1,\"stream\":20,\"bytes\":64}},"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#4\","
	"\"ts\":5,\"dur\":100},"
	"{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"phase\",\"ts\":6,\"dur\":2},"
	"{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"ts\":6,\"dur\":2}]}";

static void profiles_are_read_in_order_of_time(void **unused)
{
	static const uint8_t kinds[] = {
		VC_EV_ALLOC, VC_EV_MARK, VC_EV_MARK, VC_EV_MARK, VC_EV_ALLOC,
		VC_EV_KERNEL, VC_EV_COPY, VC_EV_FREE, VC_EV_FREE,
	};
	struct vc_trace t;

	(void)unused;
	put_file(profile);
	read_file(path, &t);
	assert_string_equal(t.meta->source, "kineto");
	assert_int_equal(t.n, sizeof(kinds));
	for (size_t i = 0; i < t.n; i++) {
		assert_int_equal(t.ev[i].kind, kinds[i]);
		assert_int_equal(t.ev[i].device, 1);
	}
	assert_int_equal(t.ev[0].size, 2048); /* there before: 3072 - 1024 */
	assert_int_equal(t.ev[1].flags, VC_MARK_STEP);
	assert_int_equal(t.ev[4].time_ns, 10250 - 5000 + 1);
	assert_int_equal(t.ev[5].time_ns, 12001 - 5000 + 1);
	assert_int_equal(t.ev[5].size, 3500);
	assert_int_equal(t.ev[5].id, 99);
	assert_int_equal(t.ev[5].stream, 0);
	assert_int_equal(t.ev[6].addr, 64);
	assert_int_equal(t.meta->stream[t.ev[6].stream], 20);
	assert_int_equal(t.ev[7].id, t.ev[4].id);
	assert_int_equal(t.ev[8].id, 0); /* a block from before */
	assert_int_equal(t.meta->unmatched_frees, 1);
	assert_int_equal(t.meta->rank, 1);
	for (size_t i = 0; i < t.meta->devices; i++)
		assert_true(!t.meta->device[i].name || !strcmp(t.meta->device[i].name, "Some GPU"));
	assert_int_equal(t.meta->device[0].total, 1000);
	assert_int_equal(t.meta->start_unix_ns, 1000000000 + 5000 - 1);
	vc_trace_fini(&t);
}

static void a_profile_without_memory_says_so(void **unused)
{
	struct vc_trace t;

	(void)unused;
	put_file("{\"schemaVersion\":1,\"traceEvents\":[]}");
	read_file(path, &t);
	assert_int_equal(t.n, 0);
	assert_non_null(strstr(t.meta->note[0], "profile_memory=True"));
	vc_trace_fini(&t);
}

static void refused(const char *text, const char *sentence)
{
	struct vc_error err = { 0 };
	struct vc_trace t = { 0 };
	struct vc_source *s;
	int rc;

	put_file(text);
	s = vc_source_open(path, &err);
	rc = s ? vc_trace_read(&t, s, &err) : -1;
	assert_int_not_equal(rc, 0);
	if (!strstr(err.message, sentence))
		fail_msg("'%s' does not say '%s'", err.message, sentence);
	vc_source_free(s);
	vc_trace_fini(&t);
}

static void what_is_no_trace_is_one_sentence(void **unused)
{
	(void)unused;
	refused("", "empty");
	refused("hello, world\n", "not a trace that vramcast can read");
	refused("version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS pointer");
	refused("{\"traceEvents\":[{\"ph\":\"i\",", "ends too early");
	refused("{\"traceEvents\":[" MEM("1", "1", "5", "-9223372036854775808", "1") "]}",
		"[memory] event");
	refused("{\"traceEvents\":[" MEM("1", "1", "5", "9223372036854775807", "1") "]}",
		"more than any device");
	refused("\x1f\x8b\x08\x01 rubbish that is no gzip at all", "gzip");
	refused("\x28\xb5\x2f\xfd rubbish that is no zstd", "zstd");
}

static void parameters_may_stand_behind_the_name(void **unused)
{
	struct vc_error err = { 0 };
	struct vc_source *s;
	char name[400];

	(void)unused;
	put_file(profile);
	snprintf(name, sizeof(name), "%s@batch=8,seq-len=512.5", path);
	s = vc_source_open(name, &err);
	assert_non_null(s);
	assert_int_equal(s->meta->params, 2);
	assert_string_equal(s->meta->param[0].name, "batch");
	assert_true(s->meta->param[0].value == 8);
	assert_true(s->meta->param[1].value == 512.5);
	assert_string_equal(s->meta->path, path);
	vc_source_free(s);
	for (const char *const *p = (const char *const[]){ "@", "@x", "@x=", "@x=1,", "@=1",
							  "@x=1,y", "@x=y", NULL };
	     *p; p++) {
		snprintf(name, sizeof(name), "%s%s", path, *p);
		assert_null(vc_source_open(name, &err));
	}
}

static long double_sizes(struct vc_source *s, struct vc_event *ev, size_t cap, struct vc_error *err)
{
	long n = s->upstream->type->next(s->upstream, ev, cap, err);

	for (long i = 0; i < n; i++)
		ev[i].size *= 2;
	return n;
}

static void traces_in_memory_feed_chains_of_transforms(void **unused)
{
	static const struct vc_margin none = { 0 };
	static const struct vc_source_type twice = { .name = "twice", .next = double_sizes,
						    .margin = &none };
	struct vc_transform_use use;
	struct vc_error err = { 0 };
	struct vc_trace t, u = { 0 };
	struct vc_source *s;

	(void)unused;
	put_file(profile);
	read_file(path, &t);
	s = vc_source_memory(&t, &err);
	assert_true(vc_transform_set(&use, &twice, "no=parameters", &err) < 0);
	assert_int_equal(vc_transform_set(&use, &twice, NULL, &err), 0);
	for (int i = 0; i < 2; i++)
		s = vc_transform_open(&use, s, &err);
	vc_meta_note(s->meta, "only in the copy");
	assert_int_equal(vc_trace_read(&u, s, &err), 0);
	vc_source_free(s);
	assert_int_equal(u.n, t.n);
	for (size_t i = 0; i < t.n; i++)
		assert_int_equal(u.ev[i].size, 4 * t.ev[i].size);
	assert_int_equal(u.meta->notes, t.meta->notes + 1);
	assert_string_equal(u.meta->string[u.ev[1].label], t.meta->string[t.ev[1].label]);
	vc_trace_fini(&t);
	vc_trace_fini(&u);
}

/* Against a plain array: put, replace and take in random order, with keys that collide. */
static void the_map_keeps_what_was_put(void **unused)
{
	struct vc_map m = { 0 };
	uint64_t truth[1000] = { 0 }, seed = 1;

	(void)unused;
	assert_null(vc_map_get(&m, 1));
	for (uint64_t i = 1; i < 200000; i++) {
		size_t k = (size_t)((seed = seed * 6364136223846793005u + 1) >> 40) % 1000;
		uint64_t key = (uint64_t)k << (k % 2 ? 9 : 33), *v = vc_map_get(&m, key);

		assert_int_equal(v ? *v : 0, truth[k]);
		if (seed >> 20 & 1) {
			assert_true(vc_map_put(&m, key, i));
			truth[k] = i;
		} else {
			assert_int_equal(vc_map_take(&m, key), truth[k]);
			truth[k] = 0;
		}
	}
	vc_map_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profiles_are_read_in_order_of_time),
		cmocka_unit_test(a_profile_without_memory_says_so),
		cmocka_unit_test(what_is_no_trace_is_one_sentence),
		cmocka_unit_test(parameters_may_stand_behind_the_name),
		cmocka_unit_test(traces_in_memory_feed_chains_of_transforms),
		cmocka_unit_test(the_map_keeps_what_was_put),
	};

	return cmocka_run_group_tests(tests, make_path, drop_path);
}
