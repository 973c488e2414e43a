/* SPDX-License-Identifier: Apache-2.0 */
/* test_plans_wire.c - messages about plans: what is read is what was written, and no more; the
 * graph that a row of a table becomes. */
#include "tests/support/test.h"

#include <sys/socket.h>
#include <unistd.h>

#include "nullgpu/plans_rows.c"
#include "nullgpu/plans_wire.c"

static void fields(void **state)
{
	struct vc_wire w = { 0 };
	char text[8], all[64];
	uint64_t wide = 0;

	(void)state;
	vc_wire_put_u32(&w, 0x01020304);
	vc_wire_put_text(&w, "a shape");
	vc_wire_put_text(&w, "as long.");
	vc_wire_put_text(&w, "longer than that");
	vc_wire_put_text(&w, "");
	vc_wire_put(&w, NULL, 0);
	vc_wire_put(&w, &(uint64_t){ 77 }, 8);
	assert_false(w.bad);
	assert_int_equal(w.n, 4 + 4 + 7 + 4 + 8 + 4 + 16 + 4 + 8);
	assert_int_equal(vc_wire_get_u32(&w), 0x01020304);
	vc_wire_get_text(&w, text, sizeof(text)); /* it fits with its end, and no more does */
	assert_string_equal(text, "a shape");
	text[7] = 'x';
	vc_wire_get_text(&w, text, sizeof(text));
	assert_int_equal(text[7], '\0');
	assert_string_equal(text, "as long");
	vc_wire_get_text(&w, text, sizeof(text));
	assert_string_equal(text, "longer ");
	vc_wire_get_text(&w, all, sizeof(all));
	assert_string_equal(all, "");
	vc_wire_get(&w, &wide, sizeof(wide));
	assert_int_equal(wide, 77);
	assert_false(w.bad);
	assert_int_equal(w.read, w.n);
	assert_int_equal(vc_wire_get_u32(&w), 0); /* behind the end */
	assert_true(w.bad);
	free(w.at);
}

/* A text that says to be longer than the message is none, and nothing behind it is. */
static void damaged(void **state)
{
	struct vc_wire w = { 0 };
	char text[8] = "before";
	uint32_t one = 1;

	(void)state;
	vc_wire_put_u32(&w, 5);
	vc_wire_put(&w, "four", 4);
	vc_wire_get_text(&w, text, sizeof(text));
	assert_true(w.bad);
	assert_string_equal(text, "");
	assert_int_equal(w.read, 4);
	vc_wire_get(&w, &one, sizeof(one));
	assert_int_equal(one, 0);
	vc_wire_put_u32(&w, 1); /* what is bad stays so */
	assert_int_equal(w.n, 8);
	w.bad = false;
	w.read = 0;
	w.n = 8;
	w.at[0] = 4;
	vc_wire_get_text(&w, text, sizeof(text));
	assert_string_equal(text, "four");
	assert_false(w.bad);
	free(w.at);
}

static void messages(void **state)
{
	struct vc_wire out = { 0 }, in = { 0 };
	uint32_t n;
	int s[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, s), 0);
	for (uint32_t k = 1; k <= 2; k++) { /* the second replaces the first */
		out.n = 0;
		vc_wire_put_text(&out, k == 1 ? "the first message" : "another");
		assert_true(vc_wire_send(s[0], &out));
		assert_true(vc_wire_receive(s[1], &in));
		assert_int_equal(in.n, out.n);
		assert_int_equal(in.read, 0);
		assert_memory_equal(in.at, out.at, out.n);
	}
	out.n = 0;
	assert_true(vc_wire_send(s[0], &out)); /* an empty one */
	assert_true(vc_wire_receive(s[1], &in));
	assert_int_equal(in.n, 0);
	out.bad = true;
	assert_false(vc_wire_send(s[0], &out));
	out.bad = false;
	assert_int_equal(recv(s[1], &n, sizeof(n), MSG_DONTWAIT), -1); /* nothing of it */
	out.n = VC_PLANS_MESSAGE + 1;
	assert_false(vc_wire_send(s[0], &out));
	for (uint32_t k = 0; k < 2; k++) { /* too long; cut off */
		n = k ? 10 : VC_PLANS_MESSAGE + 1;
		assert_int_equal(send(s[0], &n, sizeof(n), 0), sizeof(n));
		if (k)
			close(s[0]);
		assert_false(vc_wire_receive(s[1], &in));
		assert_true(in.bad);
		assert_int_equal(in.n, 0);
	}
	out.n = 4;
	assert_false(vc_wire_send(s[1], &out)); /* nobody is there: no signal either */
	close(s[1]);
	free(out.at);
	free(in.at);
}

static void widths(void **state)
{
	(void)state;
	assert_int_equal(vc_plans_width(VC_CUDNN_HANDLE), 8);
	assert_int_equal(vc_plans_width(1), 4);
	assert_int_equal(vc_plans_width(2), 1);
	assert_int_equal(vc_plans_width(VC_CUDNN_POINTER), 8);
	assert_int_equal(vc_plans_width(VC_CUDNN_DESCRIPTOR), 8);
	assert_int_equal(vc_plans_width(24), 1);
	assert_int_equal(vc_plans_width(26), 16);
	assert_int_equal(vc_plans_width(30), 4);
	assert_int_equal(vc_plans_width(31), 8);
	assert_int_equal(vc_plans_width(-1), 8);
}

/* The graph as text: descriptors by type, attributes with their values. */
static void read_graph(struct vc_wire *w, char *to, size_t room)
{
	size_t at = 0;

	for (uint32_t n = vc_wire_get_u32(w); n; n--) {
		at += (size_t)snprintf(to + at, room - at, "[%u", vc_wire_get_u32(w));
		for (uint32_t k = vc_wire_get_u32(w); k; k--) {
			uint32_t name = vc_wire_get_u32(w), type = vc_wire_get_u32(w);
			uint32_t count = vc_wire_get_u32(w);

			at += (size_t)snprintf(to + at, room - at, " %u:", name);
			for (uint32_t i = 0; i < count; i++) {
				int64_t value = 0;
				double wide = 0;
				float single = 0;

				if (type == T_DOUBLE)
					vc_wire_get(w, &wide, 8);
				else if (type == T_FLOAT)
					vc_wire_get(w, &single, 4);
				else
					vc_wire_get(w, &value, vc_plans_width((int)type));
				value = type == T_DOUBLE ? (int64_t)wide :
					type == T_FLOAT ? (int64_t)single : value;
				at += (size_t)snprintf(to + at, room - at, "%s%lld", i ? "," : "",
						       (long long)value);
			}
		}
		at += (size_t)snprintf(to + at, room - at, "]\n");
		assert_true(at < room);
	}
	assert_int_equal(w->read, w->n);
	assert_false(w->bad);
	free(w->at);
	*w = (struct vc_wire){ 0 };
}

static void rows(void **state)
{
	struct vc_wire w = { 0 };
	enum vc_plans_mode mode;
	char text[2048];

	(void)state;
	assert_true(vc_rows_graph("forward f32 nhwc 8x16x32x30 24x16x3x3 8x24x15x14 2x3 1x0 1x2",
				  &w, &mode));
	assert_int_equal(mode, VC_MODE_INSTANT);
	read_graph(&w, text, sizeof(text));
	assert_string_equal(text,
		"[17 906:120 901:0 900:32 902:8,16,32,30 903:15360,1,480,16]\n"
		"[17 906:119 901:0 900:32 902:24,16,3,3 903:144,1,48,16]\n"
		"[17 906:121 901:0 900:32 902:8,24,15,14 903:5040,1,336,24]\n"
		"[1 106:2 100:0 101:1 105:1,0 104:1,0 102:1,2 103:2,3]\n"
		"[10 702:3 704:0 703:1 705:2 700:1 701:0]\n"
		"[15 801:4]\n");
	assert_true(vc_rows_graph("data/fallback f64 nchw 2x4x5x6x7 3x4x1x1x1 2x3x5x6x7 1x1x1 "
				  "0x0x0 1x1x1", &w, &mode));
	assert_int_equal(mode, VC_MODE_FALLBACK);
	read_graph(&w, text, sizeof(text));
	assert_string_equal(text,
		"[17 906:120 901:1 900:32 902:2,4,5,6,7 903:840,210,42,7,1]\n"
		"[17 906:119 901:1 900:32 902:3,4,1,1,1 903:4,1,1,1,1]\n"
		"[17 906:121 901:1 900:32 902:2,3,5,6,7 903:630,210,42,7,1]\n"
		"[1 106:3 100:1 101:1 105:0,0,0 104:0,0,0 102:1,1,1 103:1,1,1]\n"
		"[12 708:3 710:0 709:1 711:2 706:1 707:0]\n"
		"[15 801:4]\n");
	assert_true(vc_rows_graph("filter/b f16 nchw 1x1x4x4 1x1x3x3 1x1x4x4 1x1 1x1 1x1", &w,
				  &mode));
	assert_int_equal(mode, VC_MODE_B);
	read_graph(&w, text, sizeof(text));
	assert_non_null(strstr(text, "[11 714:3 716:0 715:1 717:2 712:1 713:0]"));
	assert_non_null(strstr(text, "[17 906:120 901:2 "));
	assert_non_null(strstr(text, "[1 106:2 100:0 "));
	assert_false(vc_rows_graph("filter/c f16 nchw 1x1x4x4 1x1x3x3 1x1x4x4 1x1 1x1 1x1", &w,
				   &mode));
	assert_int_equal(w.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(fields), cmocka_unit_test(damaged),
					    cmocka_unit_test(messages), cmocka_unit_test(widths),
					    cmocka_unit_test(rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
