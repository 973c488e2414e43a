/* SPDX-License-Identifier: Apache-2.0 */
/* test_plans_wire.c - messages about plans: what is read is what was written, and no more. */
#include "tests/support/test.h"

#include <sys/socket.h>
#include <unistd.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(fields), cmocka_unit_test(damaged),
					    cmocka_unit_test(messages), cmocka_unit_test(widths) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
