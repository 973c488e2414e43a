/* SPDX-License-Identifier: Apache-2.0 */
/* test_cudnn_ask.c - questions to the process that has the real cuDNN: what is sent, and what is
 * done with each answer. The other end is a child that plays it. */
#define _GNU_SOURCE
#include "tests/support/test.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "nullgpu/cudnn_ask.c"
#include "nullgpu/plans_wire.c"

static char socket_path[1400], logged[256];
static struct vc_null_card card = { .log = 1 };

const struct vc_null_card *vc_null_card(void)
{
	return &card;
}

void vc_null_log(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(logged, sizeof logged, fmt, ap);
	va_end(ap);
}

/* ---- the other end ---- */

enum answer { PLANS, AS_MANY_AS_CAN_BE, REFUSES, NONE, TOO_MANY, NEGATIVE, SHORT, HANGS_UP };

static void answer(int fd, enum answer what)
{
	struct vc_wire in = { 0 }, out = { 0 };
	struct vc_cudnn_plans p = { .n = what == NONE ? 0 : what == TOO_MANY ? VC_PLANS_MOST + 1 :
				    what == NEGATIVE ? -1 :
				    what == AS_MANY_AS_CAN_BE ? VC_PLANS_MOST : 2,
				    .at = { { .bytes = 11 } } };

	if (!vc_wire_receive(fd, &in))
		_exit(1);
	p.at[1].bytes = (int64_t)vc_wire_get_u32(&in); /* the mode comes back */
	vc_wire_put_u32(&out, what != REFUSES);
	if (what == REFUSES)
		vc_wire_put_text(&out, "it has no such engine");
	else
		vc_wire_put(&out, &p, what == SHORT ? 8 : sizeof p);
	if (what != HANGS_UP && !vc_wire_send(fd, &out))
		_exit(1);
	free(in.at);
	free(out.at);
}

/* Listens, and answers each connection's questions in that order; a new one after it hung up. */
static pid_t play(const enum answer *list, size_t n)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t child;

	(void)unlink("s");
	snprintf(at.sun_path, sizeof at.sun_path, "s");
	assert_int_equal(bind(s, (const struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(s, 4), 0);
	child = fork();
	if (child) {
		close(s);
		return child;
	}
	alarm(30); /* nobody may ask */
	int fd = accept(s, NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		answer(fd, list[i]);
		if (list[i] == HANGS_UP) {
			close(fd);
			fd = accept(s, NULL, NULL);
		}
	}
	_exit(0);
}

static void ended(pid_t child)
{
	int status = -1;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int begin(void **unused)
{
	const char *tmp = getenv("TMP");

	if (!tmp)
		return -1;
	if (connection >= 0)
		close(connection);
	connection = -1;
	given_up = false;
	*silent = *logged = 0;
	card.log = 1;
	assert_int_equal(chdir(tmp), 0);
	snprintf(socket_path, sizeof socket_path, "%s/s", tmp);
	setenv("VRAMCAST_NULL_PLANS", socket_path, 1);
	unsetenv("VRAMCAST_NULL_PLANS_NOT");
	return 0;
}

static bool ask(struct vc_cudnn_plans *out)
{
	struct vc_cudnn_node graph = { .type = 15, .users = 1 };

	*out = (struct vc_cudnn_plans){ .n = 7 };
	return vc_cudnn_ask(&graph, VC_MODE_FALLBACK, "a key", out);
}

/* ---- what comes back ---- */

#define PLAY(...) play((const enum answer[]){ __VA_ARGS__ }, \
		       sizeof((const enum answer[]){ __VA_ARGS__ }) / sizeof(enum answer))

static void plans_come_back(void **unused)
{
	struct vc_cudnn_plans p;
	pid_t child = PLAY(PLANS, PLANS, AS_MANY_AS_CAN_BE);

	for (int i = 0; i < 2; i++) {
		assert_true(ask(&p));
		assert_true(p.n == 2 && p.at[0].bytes == 11 && p.at[1].bytes == VC_MODE_FALLBACK);
	}
	assert_true(ask(&p) && p.n == VC_PLANS_MOST);
	assert_string_equal(vc_cudnn_silent(), "");
	assert_string_equal(logged, "");
	ended(child);
}

static void answers_that_are_none(void **unused)
{
	static const struct { enum answer is; const char *why; } list[] = {
		{ REFUSES, "it has no such engine" }, { NONE, "cuDNN named no algorithm" },
		{ TOO_MANY, "cuDNN's answer was not understood" },
		{ NEGATIVE, "cuDNN's answer was not understood" },
		{ SHORT, "cuDNN's answer was not understood" } };

	for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
		struct vc_cudnn_plans p;
		char line[128];

		begin(NULL);
		pid_t child = PLAY(list[i].is, PLANS);
		assert_false(ask(&p));
		assert_int_equal(p.n, 7);
		assert_string_equal(vc_cudnn_silent(), list[i].why);
		snprintf(line, sizeof line, "cuDNN's algorithms: %s", list[i].why);
		assert_string_equal(logged, line);
		assert_true(ask(&p)); /* the next question is answered */
		assert_string_equal(vc_cudnn_silent(), list[i].why);
		ended(child);
	}
}

static void who_hangs_up_is_called_again(void **unused)
{
	struct vc_cudnn_plans p;
	pid_t child = PLAY(PLANS, HANGS_UP, REFUSES, PLANS);

	assert_true(ask(&p));
	assert_false(ask(&p));
	assert_string_equal(vc_cudnn_silent(), "cuDNN ended the process that asked it");
	assert_false(ask(&p)); /* the first reason stays */
	assert_string_equal(vc_cudnn_silent(), "cuDNN ended the process that asked it");
	assert_true(ask(&p));
	ended(child);
	card.log = 0;
	*logged = 0;
	(void)unlink(socket_path);
	assert_false(ask(&p)); /* it ended */
	assert_false(given_up);
	assert_false(ask(&p)); /* and nobody listens any more */
	assert_true(given_up);
	assert_string_equal(logged, "");
	pid_t other = PLAY(PLANS);
	assert_false(ask(&p)); /* so nobody is asked again */
	given_up = false;
	assert_true(ask(&p));
	ended(other);
}

static void nobody_listens(void **unused)
{
	struct vc_cudnn_plans p;

	(void)unlink(socket_path);
	assert_false(ask(&p));
	assert_true(given_up);
	assert_string_equal(vc_cudnn_silent(), "the process that asks cuDNN has ended");
	begin(NULL);
	unsetenv("VRAMCAST_NULL_PLANS");
	assert_false(ask(&p));
	setenv("VRAMCAST_NULL_PLANS", "", 1);
	assert_false(ask(&p));
	assert_false(given_up);
	assert_string_equal(vc_cudnn_silent(), "");
	setenv("VRAMCAST_NULL_PLANS_NOT", "there is no cuDNN", 1);
	assert_string_equal(vc_cudnn_silent(), "there is no cuDNN");
	setenv("VRAMCAST_NULL_PLANS", "/nowhere/at/all", 1);
	assert_false(ask(&p));
	assert_string_equal(vc_cudnn_silent(), "the process that asks cuDNN has ended");
}

/* A folder's name may be longer than that of a socket; a name alone is of the current folder. */
static void however_it_is_named(void **unused)
{
	struct vc_cudnn_plans p;
	pid_t child = PLAY(PLANS);

	setenv("VRAMCAST_NULL_PLANS", "s", 1);
	assert_true(ask(&p));
	ended(child);
	begin(NULL);
	child = PLAY(PLANS);
	for (int i = 0; i < 3; i++) {
		size_t n = strlen(socket_path) - 1;

		snprintf(socket_path + n, sizeof socket_path - n, "%060d", i);
		assert_int_equal(mkdir(socket_path, 0700), 0);
		strncat(socket_path, "/s", sizeof socket_path - n - 61);
	}
	assert_int_equal(rename("s", socket_path), 0);
	setenv("VRAMCAST_NULL_PLANS", socket_path, 1);
	assert_true(ask(&p));
	ended(child);
}

/* A child does not speak on its parent's connection. */
static void a_forked_child_has_its_own(void **unused)
{
	connection = dup(0);
	int was = connection;

	pid_t child = fork();
	if (!child)
		_exit(connection != -1 || fcntl(was, F_GETFD) != -1);
	ended(child);
	assert_int_equal(connection, was);
	assert_true(fcntl(was, F_GETFD) != -1);
}

/* ---- the graph in writing ---- */

static struct vc_cudnn_value *attribute(struct vc_cudnn_node *d, int name, int type, int64_t count,
					const void *value, size_t width)
{
	struct vc_cudnn_value *a = calloc(1, sizeof *a + (size_t)count * width);

	*a = (struct vc_cudnn_value){ .name = name, .type = type, .count = count,
		.bytes = (size_t)count * width, .next = d->attributes };
	memcpy(a->value, value, a->bytes);
	d->attributes = a;
	return a;
}

static void drop(struct vc_cudnn_node *d)
{
	while (d->attributes) {
		struct vc_cudnn_value *a = d->attributes;

		d->attributes = a->next;
		free(a);
	}
}

static void those_referred_to_come_first(void **unused)
{
	struct vc_cudnn_node a = { .type = 1 }, b = { .type = 2 }, g = { .type = 15 };
	struct vc_cudnn_node *ab[] = { &a, &b };
	const int64_t sizes[] = { 3, 4 };
	const uint32_t one = 77;
	struct vc_wire w = { 0 };
	uint64_t v;

	attribute(&b, 902, 3, 2, sizes, 8);
	attribute(&b, 5, VC_CUDNN_DESCRIPTOR, 1, ab, 8); /* b refers to a */
	attribute(&g, 6, VC_CUDNN_HANDLE, 1, sizes, 8);  /* means nothing elsewhere */
	attribute(&g, 7, VC_CUDNN_POINTER, 1, sizes, 8);
	attribute(&g, 801, VC_CUDNN_DESCRIPTOR, 2, ab, 8);
	attribute(&g, 8, 1, 1, &one, 4);
	vc_cudnn_graph_put(&g, &w);
	assert_false(w.bad);
	static const uint32_t want[] = { 3, 1, 0, 2, 2, 902, 3, 2 };
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		assert_int_equal(vc_wire_get_u32(&w), want[i]);
	for (int i = 0; i < 2; i++) {
		vc_wire_get(&w, &v, 8);
		assert_int_equal(v, sizes[i]);
	}
	static const uint32_t then[] = { 5, VC_CUDNN_DESCRIPTOR, 1 };
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(vc_wire_get_u32(&w), then[i]);
	vc_wire_get(&w, &v, 8);
	assert_int_equal(v, 0); /* the first of the list: a */
	static const uint32_t last[] = { 15, 2, 801, VC_CUDNN_DESCRIPTOR, 2 };
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(vc_wire_get_u32(&w), last[i]);
	for (uint64_t i = 0; i < 2; i++) {
		vc_wire_get(&w, &v, 8);
		assert_int_equal(v, i);
	}
	assert_true(vc_wire_get_u32(&w) == 8 && vc_wire_get_u32(&w) == 1 &&
		    vc_wire_get_u32(&w) == 1 && vc_wire_get_u32(&w) == 77);
	assert_int_equal(w.read, w.n);
	free(w.at);
	drop(&b);
	drop(&g);
}

/* Sixteen deep at the most, and no descriptor that is none. */
static void what_cannot_be_written(void **unused)
{
	struct vc_cudnn_node chain[19] = { { .type = 1 } }, *none = NULL, *next;

	for (int i = 1; i < 19; i++) {
		next = &chain[i - 1];
		attribute(&chain[i], 1, VC_CUDNN_DESCRIPTOR, 1, &next, 8);
	}
	for (int n = 1; n < 19; n++) {
		struct vc_wire w = { 0 };

		vc_cudnn_graph_put(&chain[n], &w);
		assert_int_equal(w.bad, n > 16);
		free(w.at);
	}
	for (int i = 1; i < 19; i++)
		drop(&chain[i]);
	struct vc_wire w = { 0 };
	attribute(&chain[0], 1, VC_CUDNN_DESCRIPTOR, 1, &none, 8);
	vc_cudnn_graph_put(&chain[0], &w);
	assert_true(w.bad);
	free(w.at);
	drop(&chain[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(plans_come_back, begin),
		cmocka_unit_test_setup(answers_that_are_none, begin),
		cmocka_unit_test_setup(who_hangs_up_is_called_again, begin),
		cmocka_unit_test_setup(nobody_listens, begin),
		cmocka_unit_test_setup(however_it_is_named, begin),
		cmocka_unit_test_setup(a_forked_child_has_its_own, begin),
		cmocka_unit_test(those_referred_to_come_first),
		cmocka_unit_test(what_cannot_be_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
