/* SPDX-License-Identifier: Apache-2.0 */
/* test_explain.c - out-of-memory messages of every known form: no figure wrong, none invented. */
#include "tests/support/test.h"

#include "simulator/advise/explain.h"

static const char *const names[VC_FIGURES] = {
	[VC_FIG_REQUEST] = "request", [VC_FIG_CAPACITY] = "capacity", [VC_FIG_FREE] = "free",
	[VC_FIG_ALLOCATED] = "allocated", [VC_FIG_RESERVED] = "reserved",
	[VC_FIG_UNALLOCATED] = "unallocated", [VC_FIG_PROCESS] = "process",
	[VC_FIG_ALLOWED] = "allowed", [VC_FIG_PRIVATE] = "private_pools",
	[VC_FIG_BESIDE] = "beside", [VC_FIG_PROGRAM] = "program",
};

/* "request=8.13 GiB;capacity=..." of what was read, in the order of the enum. */
static void figures_text(const struct vc_oom_text *m, char *buf, size_t cap)
{
	size_t n = 0;

	buf[0] = '\0';
	for (int i = 0; i < VC_FIGURES; i++)
		if (m->figure[i].known)
			n += (size_t)snprintf(buf + n, cap - n, "%s%s=%s", n ? ";" : "", names[i],
					      m->figure[i].text);
	if (!n)
		snprintf(buf, cap, "-");
}

static char *unescape(char *s)
{
	char *to = s;

	for (const char *p = s; *p; p++) {
		if (*p == '\\' && p[1]) {
			p++;
			*to++ = *p == 'n' ? '\n' : *p;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
	return s;
}

static void read_one(const char *text, struct vc_oom_text *m, struct vc_diagnosis *d)
{
	struct vc_error err = { 0 };

	if (vc_explain_read(text, strlen(text), m, &err) < 0)
		fail_msg("%s: %s", err.message, text);
	vc_explain_diagnose(m, d);
}

static void messages_from_the_wild_are_read_as_a_person_would(void **state)
{
	FILE *f = fopen("tests/oom/messages.tsv", "r");
	static char line[8192];
	int rows = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		char *col[6], *p = line, got[512];
		struct vc_oom_text m;
		struct vc_diagnosis d;

		if (*line == '#')
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (int i = 0; i < 6; i++) {
			col[i] = p;
			p = i < 5 ? strchr(p, '\t') : NULL;
			if (p)
				*p++ = '\0';
		}
		read_one(unescape(col[5]), &m, &d);
		figures_text(&m, got, sizeof(got));
		assert_string_equal(m.format->tag, col[0]);
		assert_string_equal(vc_cause_name(d.found.cause), col[1]);
		assert_string_equal(m.complete ? "yes" : "no", col[2]);
		assert_string_equal(got, col[3]);
		if (d.outside.known) /* the parts make the whole card */
			assert_true(m.figure[VC_FIG_CAPACITY].known &&
				    m.figure[VC_FIG_FREE].known &&
				    d.outside.value + m.figure[VC_FIG_FREE].value <=
					    m.figure[VC_FIG_CAPACITY].value + d.outside.slack);
		rows++;
	}
	fclose(f);
	assert_int_equal(rows, 131);
}

static const char whole[] =
	"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 3 has a "
	"total capacity of 31.47 GiB of which 12.73 GiB is free. Process 77 has 1.50 GiB memory "
	"in use. Including non-PyTorch memory, this process has 18.73 GiB memory in use. 30.00 "
	"GiB allowed; Of the allocated memory 9.08 GiB is allocated by PyTorch, with 512.00 KiB "
	"allocated in private pools (e.g., CUDA Graphs), and 9.35 GiB is reserved by PyTorch but "
	"unallocated. If reserved but unallocated memory is large try setting "
	"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.";

static void every_clause_has_its_figure(void **state)
{
	struct vc_oom_text m;
	struct vc_diagnosis d;
	char got[512];

	(void)state;
	read_one(whole, &m, &d);
	figures_text(&m, got, sizeof(got));
	assert_string_equal(got,
			    "request=22.78 GiB;capacity=31.47 GiB;free=12.73 GiB;allocated=9.08 "
			    "GiB;unallocated=9.35 GiB;process=18.73 GiB;allowed=30.00 "
			    "GiB;private_pools=512.00 KiB");
	assert_true(m.has_device);
	assert_int_equal(m.device, 3);
	assert_int_equal(m.processes, 1);
	assert_int_equal(m.process[0].pid, 77);
	assert_int_equal(m.process[0].bytes.value, 3ull << 29);
	assert_int_equal(m.figure[VC_FIG_PRIVATE].value, 512 * 1024);
	assert_int_equal(m.figure[VC_FIG_PRIVATE].slack,
			 6); /* half a hundredth of a KiB, rounded up */
	assert_string_equal(m.first, "2.5");
}

/* Cut anywhere, the message gives fewer figures, never other ones. */
static void a_message_cut_anywhere_gives_no_wrong_figure(void **state)
{
	struct vc_oom_text full, m;
	struct vc_diagnosis d;
	struct vc_error err;
	size_t n = strlen(whole);

	(void)state;
	read_one(whole, &full, &d);
	for (size_t cut = 0; cut < n; cut++) {
		if (vc_explain_read(whole, cut, &m, &err) < 0)
			continue;
		vc_explain_diagnose(&m, &d);
		for (int i = 0; i < VC_FIGURES; i++)
			if (m.figure[i].known)
				assert_string_equal(m.figure[i].text, full.figure[i].text);
		if (!m.complete)
			assert_true(d.found.cause == VC_CAUSE_UNKNOWN);
	}
}

static void line_ends_colours_and_other_text_around_it_do_not_matter(void **state)
{
	static const char log[] =
		"\x1b[31m[rank0]: Traceback (most recent call last):\r\n"
		"  File \"t.py\", line 3\n torch.cuda.OutOfMemoryError: CUDA out of\n   memory. "
		"Tried to \x1b[1;31mallocate 20\x1b[0m.00\n MiB (GPU 1; "
		"\x1b" "10.00 GiB total capacity;\n 9.00 GiB "
		"already allocated; 5.00 MiB free; 9.50 GiB reserved in total by PyTorch) If "
		"reserved\x1b[0m memory is\nepoch 3, 5.00 GiB free\n"
		"CUDA out of memory. Tried to allocate 7.00 GiB (GPU 0;";
	struct vc_oom_text m;
	struct vc_diagnosis d;
	char got[512];

	(void)state;
	read_one(log, &m, &d);
	figures_text(&m, got, sizeof(got));
	assert_string_equal(got,
			    "request=20.00 MiB;capacity=10.00 GiB;free=5.00 MiB;allocated=9.00 "
			    "GiB;reserved=9.50 GiB");
	assert_string_equal(m.format->tag, "F3-maxsplit");
	assert_string_equal(m.first, "1.13");
	assert_int_equal(m.messages, 2);
	assert_int_equal(d.stranded.value, 1ull << 29);
	assert_true(d.found.cause == VC_CAUSE_FRAGMENTATION);
}

static bool says(const struct vc_diagnosis *d, const char *words)
{
	for (size_t i = 0; i < d->meanings; i++)
		if (strstr(d->meaning[i], words))
			return true;
	for (size_t i = 0; i < d->advices; i++)
		if (strstr(d->advice[i].text, words) || strstr(d->advice[i].setting, words))
			return true;
	return false;
}

#define REPORT(alloc, idle) \
	"CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 " \
	"GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 22.60 " \
	"GiB memory in use. Of the allocated memory " alloc " is allocated by PyTorch, and " idle \
	" is reserved by PyTorch but unallocated."
#define HINT " If reserved but unallocated memory is large try setting " \
	"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."

/* Where the last sentence is missing nobody knows whether the setting is on. */
static void a_message_cut_before_its_last_sentence_gets_the_same_advice(void **state)
{
	static const char *const text[] = { REPORT("16.00 GiB", "6.00 GiB") HINT,
					   REPORT("16.00 GiB", "6.00 GiB") };
	struct vc_oom_text m;
	struct vc_diagnosis d;

	(void)state;
	for (int i = 0; i < 2; i++) {
		read_one(text[i], &m, &d);
		assert_true(d.found.cause == VC_CAUSE_FRAGMENTATION);
		assert_string_equal(d.advice[0].setting,
				    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
		assert_false(says(&d, "seem to be on already"));
	}
}

/* "this process has" is not printed under Windows. */
static void linux_is_not_blamed_on_windows(void **state)
{
	struct vc_oom_text m;
	struct vc_diagnosis d;

	(void)state;
	read_one(REPORT("31.50 GiB", "6.00 GiB"), &m, &d);
	assert_true(d.found.cause == VC_CAUSE_OVERSUBSCRIBED);
	assert_false(says(&d, "Windows"));
	assert_true(says(&d, "sleep mode"));
	read_one("File \"/usr/lib/python3/vllm/worker.py\", line 3\n"
		 "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
		 "8.00 GiB of which 3.00 GiB is free. Of the allocated memory 2.00 GiB is "
		 "allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated." HINT,
		 &m, &d);
	assert_true(d.found.cause == VC_CAUSE_DEVICE);
	assert_false(says(&d, "Windows"));
}

static void other_allocators_get_their_own_advice(void **state)
{
	struct vc_oom_text m;
	struct vc_diagnosis d;

	(void)state;
	read_one("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 30.55GiB.", &m, &d);
	assert_true(says(&d, "XLA_PYTHON_CLIENT_MEM_FRACTION"));
	assert_false(says(&d, "PYTORCH"));
	read_one("RuntimeError: MPS backend out of memory (MPS allocated: 17.36 GB, other "
		 "allocations: 613.56 MB, max allowed: 18.13 GB). Tried to allocate 192.00 MB on "
		 "private pool.", &m, &d);
	assert_true(says(&d, "PYTORCH_MPS_HIGH_WATERMARK_RATIO"));
	assert_false(says(&d, "damaged"));
	read_one("XPU out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
		 "11.93 GiB of which 5.62 MiB is free. Of the allocated memory 10.43 GiB is "
		 "allocated by PyTorch, and 94.57 MiB is reserved by PyTorch but unallocated.",
		 &m, &d);
	assert_true(says(&d, "torch.xpu.empty_cache()"));
	assert_false(says(&d, "CUDA_ALLOC_CONF"));
	/* earlier releases did not say what is free: their message is whole all the same */
	read_one("XPU out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
		 "15.56 GiB. Of the allocated memory 14.10 GiB is allocated by PyTorch, and 150.22 "
		 "MiB is reserved by PyTorch but unallocated. Please use `empty_cache` to release "
		 "all unoccupied cached memory.", &m, &d);
	assert_true(m.complete && d.found.cause == VC_CAUSE_UNKNOWN);
	assert_false(says(&d, "paste the whole message"));
	assert_true(says(&d, "smaller batch"));
	read_one("XPU out of memory. Tried to allocate 1.71 GiB (GPU 0; 15.56 GiB total capacity; "
		 "176.00 MiB already allocated; 176.00 MiB reserved in total by PyTorch)", &m, &d);
	assert_true(m.complete);
	read_one("XPU out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of "
		 "11.93 GiB of which 5.62 MiB is free. Of the allo", &m, &d);
	assert_true(!m.complete && says(&d, "paste the whole message"));
}

static void of_several_messages_the_last_whole_one_is_explained(void **state)
{
	struct vc_oom_text m;
	struct vc_diagnosis d;

	(void)state;
	read_one("torch.cuda.OutOfMemoryError: " REPORT("16.00 GiB", "6.00 GiB") HINT
		 " trying again\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
		 "7.00 GiB. GPU 1 has a total capacity of 23.65 GiB of which 1.00 GiB is free. Of "
		 "the allocated memory 21.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved "
		 "by PyTorch but unallocated." HINT "\nCUDA out of memory. Tried to allo", &m, &d);
	assert_int_equal(m.messages, 2);
	assert_string_equal(m.figure[VC_FIG_REQUEST].text, "7.00 GiB");
	assert_int_equal(m.device, 1);
	assert_string_equal(m.first, "2.5");
	assert_true(d.found.cause == VC_CAUSE_DEMAND);
	assert_true(says(&d, "2 such messages"));
}

/* What other libraries, ranks and the host say before and behind it follows from it. */
static void a_whole_report_is_explained_before_what_follows_from_it(void **state)
{
	static const char others[] = "NCCL WARN Failed to CUDA calloc async 608 bytes; "
				     "RuntimeError: DataLoader worker (pid 7) is killed by signal: "
				     "Killed. ";
	char text[3000];
	struct vc_oom_text m;
	struct vc_diagnosis d;

	(void)state;
	for (int behind = 0; behind < 2; behind++) {
		snprintf(text, sizeof(text), "%s%s\n%s", behind ? "" : others, whole,
			 behind ? others : "");
		read_one(text, &m, &d);
		assert_string_equal(m.format->tag, "F7-private-pools");
		assert_true(m.complete);
	}
	read_one(others, &m, &d); /* without it the first row of the table */
	assert_string_equal(m.format->tag, "L-nccl");
	assert_true(says(&d, "NCCL takes its part") && says(&d, "NCCL_BUFFSIZE"));
	assert_true(says(&d, "smaller batch")); /* which helps here, too */
	read_one("DataLoader worker (pid 7) is killed by signal: Killed.", &m, &d);
	assert_true(says(&d, "the card's is not") && says(&d, "--host-memory"));
	assert_false(says(&d, "smaller batch"));
}

static void text_without_a_message_is_refused(void **state)
{
	static const char *const text[] = { "", "Segmentation fault", "loss 0.3\n", "\x1b[",
					   "out of coffee", "Cuda failure 'invalid argument'",
					   "CUBLAS_STATUS_NOT_SUPPORTED" };
	struct vc_oom_text m;
	struct vc_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++)
		assert_int_equal(vc_explain_read(text[i], strlen(text[i]), &m, &err), VC_EFORMAT);
}

static void absurd_figures_are_left_out(void **state)
{
	struct vc_oom_text m;
	struct vc_diagnosis d;

	(void)state;
	read_one(
		"CUDA out of memory. Tried to allocate 99999999999999999999.00 GiB (GPU 0; 1.5 "
		"GiB total capacity; 1.00 GiBs already allocated; .50 GiB free; 1.00 TiB "
		"reserved in total by PyTorch)",
		&m, &d);
	for (int i = 0; i < VC_FIGURES; i++)
		assert_false(m.figure[i].known);
	assert_false(m.complete);
	assert_true(d.found.cause == VC_CAUSE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_from_the_wild_are_read_as_a_person_would),
		cmocka_unit_test(every_clause_has_its_figure),
		cmocka_unit_test(a_message_cut_anywhere_gives_no_wrong_figure),
		cmocka_unit_test(line_ends_colours_and_other_text_around_it_do_not_matter),
		cmocka_unit_test(a_message_cut_before_its_last_sentence_gets_the_same_advice),
		cmocka_unit_test(linux_is_not_blamed_on_windows),
		cmocka_unit_test(other_allocators_get_their_own_advice),
		cmocka_unit_test(of_several_messages_the_last_whole_one_is_explained),
		cmocka_unit_test(a_whole_report_is_explained_before_what_follows_from_it),
		cmocka_unit_test(text_without_a_message_is_refused),
		cmocka_unit_test(absurd_figures_are_left_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
