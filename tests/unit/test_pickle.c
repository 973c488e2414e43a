/* SPDX-License-Identifier: Apache-2.0 */
/* test_pickle.c - every opcode that carries data is read, everything that needs Python is
 * refused. */
#include "tests/support/test.h"

#include "common/pickle.h"

/* A builder that writes what it is told as text: dictionaries {k:v,}, lists [v,], texts 't'. */
struct text { char at[4096]; };
struct echo { struct text *node; uint32_t nodes, repeats; };

static int echo_new(struct echo *e, const char *s, size_t n, uint32_t *ref)
{
	assert_true(n < sizeof(e->node[0].at) - 4);
	e->node = realloc(e->node, (e->nodes + 1) * sizeof(*e->node));
	memcpy(e->node[e->nodes].at, s, n);
	e->node[e->nodes].at[n] = '\0';
	*ref = e->nodes++;
	return 0;
}

static void echo_value(struct echo *e, const struct vc_pickle_value *v, char *to, size_t cap)
{
	switch (v->type) {
	case VC_PV_NONE: snprintf(to, cap, "None"); break;
	case VC_PV_BOOL: snprintf(to, cap, "%s", v->i ? "True" : "False"); break;
	case VC_PV_INT: snprintf(to, cap, "%lld", (long long)v->i); break;
	case VC_PV_BIG: snprintf(to, cap, "%sBIG", v->i < 0 ? "-" : ""); break;
	case VC_PV_REAL: snprintf(to, cap, "%g", v->real); break;
	case VC_PV_TEXT: snprintf(to, cap, "'%.4000s'", e->node[v->ref].at); break;
	case VC_PV_DICT: snprintf(to, cap, "{%.4000s}", e->node[v->ref].at); break;
	default: snprintf(to, cap, "[%.4000s]", e->node[v->ref].at); break;
	}
}

static void echo_add(struct echo *e, uint32_t ref, const struct vc_pickle_value *v,
		     const char *after)
{
	char text[4096];
	size_t used = strlen(e->node[ref].at);

	echo_value(e, v, text, sizeof(text));
	assert_true(used + strlen(text) + 2 < sizeof(e->node[ref].at));
	snprintf(e->node[ref].at + used, sizeof(e->node[ref].at) - used, "%s%s", text, after);
}

static int on_text(void *arg, const char *s, size_t n, uint32_t *ref, struct vc_error *err)
{
	(void)err;
	return echo_new(arg, s, n, ref);
}

static const char *on_name(void *arg, uint32_t ref)
{
	return ((struct echo *)arg)->node[ref].at;
}

static int on_new(void *arg, uint32_t *ref, struct vc_error *err)
{
	(void)err;
	return echo_new(arg, "", 0, ref);
}

static int on_set(void *arg, uint32_t dict, const struct vc_pickle_value *kv, size_t n,
		  struct vc_error *err)
{
	(void)err;
	for (size_t i = 0; i < n; i++, kv += 2) {
		echo_add(arg, dict, &kv[0], ":");
		echo_add(arg, dict, &kv[1], ",");
	}
	return 0;
}

static int on_append(void *arg, uint32_t list, const struct vc_pickle_value *v, size_t n,
		     struct vc_error *err)
{
	(void)err;
	for (size_t i = 0; i < n; i++)
		echo_add(arg, list, &v[i], ",");
	return 0;
}

static int on_again(void *arg, uint32_t model, uint32_t *ref, struct vc_error *err)
{
	struct echo *e = arg;
	char items[sizeof(e->node[0].at)];

	(void)err;
	memcpy(items, e->node[model].at, sizeof(items));
	e->repeats++;
	return echo_new(e, items, strlen(items), ref) ? -1 : 1;
}

static int parse(const void *data, size_t n, char *out, size_t cap, struct vc_error *err)
{
	struct echo e = { 0 };
	const struct vc_pickle_builder b = { &e,     on_text, on_name,   on_new,
					    on_new, on_set,  on_append, NULL };
	struct vc_input *in = vc_input_memory(data, n, err);
	struct vc_pickle_value root;
	int rc = vc_pickle_read(in, &b, &root, err);

	if (!rc)
		echo_value(&e, &root, out, cap);
	vc_input_close(in);
	free(e.node);
	return rc;
}

/* How many lists came from an earlier one; what is read is the same with and without. */
static uint32_t repeats(const char *data, size_t n, const char *expect)
{
	struct vc_error err = { 0 };

	for (int slot = 1; slot >= 0; slot--) {
		struct echo e = { 0 };
		struct vc_pickle_builder b = { &e,     on_text, on_name,   on_new,
					       on_new, on_set,  on_append, slot ? NULL : on_again };
		struct vc_input *in = vc_input_memory(data, n, &err);
		struct vc_pickle_value root;
		char out[4096];

		assert_int_equal(vc_pickle_read(in, &b, &root, &err), 0);
		echo_value(&e, &root, out, sizeof(out));
		assert_string_equal(out, expect);
		vc_input_close(in);
		free(e.node);
		if (!slot)
			return e.repeats;
	}
	return 0;
}

static void reads(const char *data, size_t n, const char *expect)
{
	struct vc_error err = { 0 };
	char out[4096] = "";

	if (parse(data, n, out, sizeof(out), &err))
		fail_msg("%s (expected %s)", err.message, expect);
	assert_string_equal(out, expect);
	/* Cut anywhere, it is refused, never read as something else. */
	for (size_t cut = 0; cut < n; cut++)
		assert_int_not_equal(parse(data, cut, out, sizeof(out), &err), 0);
}
#define READS(data, expect) reads(data, sizeof(data) - 1, expect)

static void refuses(const char *data, size_t n, const char *expect)
{
	struct vc_error err = { 0 };
	char out[4096];

	assert_int_not_equal(parse(data, n, out, sizeof(out), &err), 0);
	if (!strstr(err.message, expect))
		fail_msg("'%s' does not say '%s'", err.message, expect);
}
#define REFUSES(data, expect) refuses(data, sizeof(data) - 1, expect)

static void numbers_of_all_widths(void **unused)
{
	(void)unused;
	READS("K\x07.", "7");
	READS("M\x34\x12.", "4660");
	READS("J\xff\xff\xff\xff.", "-1");
	READS("\x8a\x00.", "0");
	READS("\x8a\x01\xff.", "-1");
	READS("\x8a\x02\xff\x00.", "255");
	READS("\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80.", "-9223372036854775808");
	READS("\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00.", "BIG");
	READS("\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x80.", "-BIG");
	READS("\x8b\x02\x00\x00\x00\x10\x27.", "10000");
	READS("G\x3f\xf8\x00\x00\x00\x00\x00\x00.", "1.5");
	READS("N.", "None");
	READS("\x88.", "True");
	READS("\x89.", "False");
}

static void texts_of_all_protocols(void **unused)
{
	(void)unused;
	READS("T\x03\x00\x00\x00" "abc.", "'abc'");
	READS("U\x03" "abc.", "'abc'");
	READS("X\x03\x00\x00\x00" "abc.", "'abc'");
	READS("\x8c\x03" "abc.", "'abc'");
	READS("\x8d\x03\x00\x00\x00\x00\x00\x00\x00" "abc.", "'abc'");
	READS("B\x03\x00\x00\x00" "abc.", "'abc'");
	READS("C\x03" "abc.", "'abc'");
	READS("\x8e\x03\x00\x00\x00\x00\x00\x00\x00" "abc.", "'abc'");
	READS("\x96\x03\x00\x00\x00\x00\x00\x00\x00" "abc.", "'abc'");
}

static void containers_of_all_protocols(void **unused)
{
	(void)unused;
	READS("(K\x01K\x02l.", "[1,2,]");
	READS("(C\x01" "aK\x01" "d.", "{'a':1,}");
	READS("(K\x01K\x02t.", "[1,2,]");
	READS(").", "[]");
	READS("K\x01\x85.", "[1,]");
	READS("K\x01K\x02\x86.", "[1,2,]");
	READS("K\x01K\x02K\x03\x87.", "[1,2,3,]");
	READS("](K\x01K\x02" "e.", "[1,2,]");
	READS("](e.", "[]");
	READS("}(K\x01K\x02u.", "{1:2,}");
	READS("}(u.", "{}");
	READS("\x8f(K\x01\x90.", "[1,]");
	READS("(K\x01\x91.", "[1,]");
	READS("\x80\x04\x95\x04\x00\x00\x00\x00\x00\x00\x00]K\x01" "a.", "[1,]");
	READS("](](K\x01" "e}(K\x02K\x03ue.", "[[1,],{2:3,},]");
}

static void memos_of_all_protocols(void **unused)
{
	(void)unused;
	READS("]q\x00(X\x02\x00\x00\x00" "abq\x01h\x01" "e.", "['ab','ab',]");
	READS("]r\x00\x00\x00\x00(X\x01\x00\x00\x00"
	      "ar\x01\x00\x00\x00j\x01\x00\x00\x00"
	      "e.",
	      "['a','a',]");
	READS("]\x94(\x8c\x01" "a\x94h\x01h\x01" "e.", "['a','a','a',]");
	READS("](K\x05q\x00h\x00" "e.", "[5,5,]");
	READS("](\x88q\x00h\x00\x89q\x01h\x01Nq\x02h\x02" "e.",
	      "[True,True,False,False,None,None,]");
}

/* Lists of the same bytes are the same list: memoised or not, after one another or not. Not where
 * a memo was set anew in between. */
#define SAVED "X\1\0\0\0aq\0X\1\0\0\0bq\1" "00"
static void lists_written_again(void **unused)
{
	static const char plain[] = "\x80\2" SAVED "(](h\0h\1e](h\1e](h\0h\1e](h\1et.",
			  memoised[] = "\x80\4" SAVED "(]\x94(h\0h\1e]\x94(h\0h\1e]r\x04\0\0\0("
				       "j\0\0\0\0h\1eh\2h\3h\4t.",
			  anew[] = "\x80\2" SAVED "(](h\0h\1eh\1q\0](h\0h\1et.",
			  longer[] = "\x80\2" SAVED "(](h\0e](h\0e(h\1e](h\0et.";

	(void)unused;
	assert_int_equal(repeats(plain, sizeof(plain) - 1,
				 "[['a','b',],['b',],['a','b',],['b',],]"), 2);
	assert_int_equal(repeats(memoised, sizeof(memoised) - 1,
				 "[['a','b',],['a','b',],['a','b',],['a','b',],['a','b',],"
				 "['a','b',],]"), 1);
	assert_int_equal(repeats(anew, sizeof(anew) - 1, "[['a','b',],'b',['b','b',],]"), 0);
	assert_int_equal(repeats(longer, sizeof(longer) - 1, "[['a',],['a','b',],['a',],]"), 2);
}

static void stack_operations(void **unused)
{
	(void)unused;
	READS("K\x01K\x02" "0.", "1");
	READS("K\x01(K\x02K\x03" "1.", "1");
	READS("](K\x01" "2e.", "[1,1,]");
	READS("K\x01(0.", "1");
}

static void code_is_refused_by_name(void **unused)
{
	(void)unused;
	REFUSES("cos\nsystem\n(C\x02idtR.", "os.system");
	REFUSES("\x80\x04\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x02id\x94\x85\x94R\x94.",
		"posix.system");
	REFUSES("(ios\nsystem\n.", "os.system");
	REFUSES("]K\x01" "cos\nsystem\n.", "os.system (byte 3)");
	REFUSES("K\x01)R.", "REDUCE");
	REFUSES("}}b.", "BUILD");
	REFUSES("(o.", "OBJ");
	REFUSES("))\x81.", "NEWOBJ");
	REFUSES(")))\x92.", "NEWOBJ");
	REFUSES("Pid\n.", "persistent id");
	REFUSES("NQ.", "persistent id");
	REFUSES("\x82\x01.", "extension");
	REFUSES("\x97.", "buffer");
}

static void damage_is_one_sentence(void **unused)
{
	(void)unused;
	REFUSES("", "ends too early");
	REFUSES("\x80\x09.", "protocol 9");
	REFUSES(".", "too few values");
	REFUSES("\xff", "no pickle operation");
	REFUSES("h\x05.", "never set");
	REFUSES("K\x01r\xff\xff\xff\xff.", "out of all proportion");
	REFUSES("X\xff\xff\xff\xff" "abc.", "claims 4294967295 bytes");
	REFUSES("\x8d\xff\xff\xff\xff\xff\xff\xff\xff" "abc.", "claims 18446744073709551615 bytes");
	REFUSES("\x8b\xff\xff\xff\x7f" "abc.", "thousands of bytes");
	REFUSES("e.", "never began");
	REFUSES("(e.", "without a container");
	REFUSES("](e](u.", "holds none");
	REFUSES("}(K\x01u.", "without a value");
	REFUSES("I42\n.", "save it with protocol 2");
	REFUSES("(lp0\n.", "protocol 0 or 1, byte 2");
	REFUSES("(K\x01" "a.", "too few");
}

static void depth_is_bounded(void **unused)
{
	struct vc_error err = { 0 };
	char *deep = malloc(100000), out[64];

	(void)unused;
	memset(deep, '(', 100000);
	assert_int_not_equal(parse(deep, 100000, out, sizeof(out), &err), 0);
	assert_non_null(strstr(err.message, "nested too deeply"));
	free(deep);
}

static void what_follows_the_stop_stays_in_the_input(void **unused)
{
	struct vc_error err = { 0 };
	struct echo e = { 0 };
	const struct vc_pickle_builder b = { &e,     on_text, on_name,   on_new,
					    on_new, on_set,  on_append, NULL };
	struct vc_input *in = vc_input_memory("K\x01.K\x02.", 6, &err);
	struct vc_pickle_value v;

	(void)unused;
	assert_int_equal(vc_pickle_read(in, &b, &v, &err), 0);
	assert_int_equal(v.i, 1);
	assert_int_equal(vc_pickle_read(in, &b, &v, &err), 0);
	assert_int_equal(v.i, 2);
	vc_input_close(in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_all_widths),
		cmocka_unit_test(texts_of_all_protocols),
		cmocka_unit_test(containers_of_all_protocols),
		cmocka_unit_test(memos_of_all_protocols),
		cmocka_unit_test(lists_written_again),
		cmocka_unit_test(stack_operations),
		cmocka_unit_test(code_is_refused_by_name),
		cmocka_unit_test(damage_is_one_sentence),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(what_follows_the_stop_stays_in_the_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
