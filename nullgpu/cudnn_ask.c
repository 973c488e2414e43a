/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_ask.c - asks the process that has the real cuDNN loaded, which `vramcast dryrun` keeps
 * ready at the socket VRAMCAST_NULL_PLANS.
 *
 * Each process of the program has a connection of its own, made at its first question; a forked
 * child makes another. Where nobody listens, or the other end ends, the rules answer, and the
 * report says why. */
#define _GNU_SOURCE
#include "common/vec.h"
#include "nullgpu/cudnn_graph.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE = 60 }; /* seconds; a first answer takes half a second */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int connection = -1;
static bool given_up;
static char silent[96];

/* The connection is the parent's: two that read from it would take each other's answers. */
static void forget(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	if (connection >= 0)
		close(connection);
	connection = -1;
}

__attribute__((constructor)) static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget);
}

const char *vc_cudnn_silent(void)
{
	const char *said = getenv("VRAMCAST_NULL_PLANS_NOT");
	return *silent ? silent : said ? said : "";
}

/* The folder may have a name that is longer than that of a socket can be. */
static int reach(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = PATIENCE };
	const char *name = strrchr(path, '/');
	char folder[1024];
	snprintf(folder, sizeof folder, "%.*s", name ? (int)(name - path) : 0, path);
	int dir = open(name ? folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = dir < 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d/%.64s", dir,
		 name ? name + 1 : path);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) < 0) {
		close(fd);
		fd = -1;
	}
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (dir >= 0)
		close(dir);
	return fd;
}

/* ---- the graph in writing ---- */

struct listed {
	const struct vc_cudnn_node **at;
	size_t n;
};

static size_t place_of(const struct listed *l, const struct vc_cudnn_node *d)
{
	size_t i = 0;
	while (i < l->n && l->at[i] != d)
		i++;
	return i;
}

/* Those that a descriptor refers to come before it. */
static bool list(struct listed *l, const struct vc_cudnn_node *d, int depth)
{
	if (place_of(l, d) < l->n)
		return true;
	if (depth > 16)
		return false;
	for (const struct vc_cudnn_value *a = d->attributes; a; a = a->next)
		for (int64_t i = 0; a->type == VC_CUDNN_DESCRIPTOR && i < a->count; i++)
			if (!vc_cudnn_linked(a, i) || !list(l, vc_cudnn_linked(a, i), depth + 1))
				return false;
	if (!vc_vec_one(l->at, l->n))
		return false;
	l->at[l->n++] = d;
	return true;
}

/* Handles and pointers mean nothing elsewhere. */
static bool travels(const struct vc_cudnn_value *a)
{
	return a->type != VC_CUDNN_HANDLE && a->type != VC_CUDNN_POINTER;
}

/* In the order in which the program set them: the list has the newest first. */
static void put_attributes(struct vc_wire *w, const struct vc_cudnn_value *a,
			   const struct listed *l)
{
	if (!a)
		return;
	put_attributes(w, a->next, l);
	if (!travels(a))
		return;
	vc_wire_put_u32(w, (uint32_t)a->name);
	vc_wire_put_u32(w, (uint32_t)a->type);
	vc_wire_put_u32(w, (uint32_t)a->count);
	for (int64_t i = 0; a->type == VC_CUDNN_DESCRIPTOR && i < a->count; i++) {
		uint64_t place = place_of(l, vc_cudnn_linked(a, i));
		vc_wire_put(w, &place, sizeof place);
	}
	if (a->type != VC_CUDNN_DESCRIPTOR)
		vc_wire_put(w, a->value, a->bytes);
}

void vc_cudnn_graph_put(const struct vc_cudnn_node *graph, struct vc_wire *w)
{
	struct listed l = { 0 };
	w->bad |= !list(&l, graph, 0);
	vc_wire_put_u32(w, (uint32_t)l.n);
	for (size_t i = 0; i < l.n; i++) {
		uint32_t n = 0;
		for (const struct vc_cudnn_value *a = l.at[i]->attributes; a; a = a->next)
			n += travels(a);
		vc_wire_put_u32(w, (uint32_t)l.at[i]->type);
		vc_wire_put_u32(w, n);
		put_attributes(w, l.at[i]->attributes, &l);
	}
	free(l.at);
}

/* ---- a question ---- */

static void give_up(const char *why)
{
	if (!*silent)
		snprintf(silent, sizeof silent, "%s", why);
	if (vc_null_card()->log > 0)
		vc_null_log("cuDNN's algorithms: %s", why);
}

/* Sends it and waits; false: there is no answer. The caller holds the lock. */
static bool exchange(const char *path, struct vc_wire *question, struct vc_wire *reply)
{
	errno = 0;
	if (connection < 0)
		connection = reach(path);
	if (connection >= 0 && vc_wire_send(connection, question) &&
	    vc_wire_receive(connection, reply))
		return true;
	if (connection < 0) {
		given_up = true; /* nobody listens any more */
		give_up("the process that asks cuDNN has ended");
	} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
		given_up = true;
		give_up("cuDNN did not answer within a minute");
	} else { /* the next question may find another */
		close(connection);
		connection = -1;
		give_up("cuDNN ended the process that asked it");
	}
	return false;
}

bool vc_cudnn_ask(const struct vc_cudnn_node *graph, enum vc_plans_mode mode, const char *key,
		  struct vc_cudnn_plans *out)
{
	const char *path = getenv("VRAMCAST_NULL_PLANS");
	struct vc_wire question = { 0 }, reply = { 0 };
	struct vc_cudnn_plans plans = { 0 };
	char why[96];
	bool answered = false;
	if (!path || !*path || given_up)
		return false;
	vc_wire_put_u32(&question, mode);
	vc_wire_put_text(&question, key);
	vc_cudnn_graph_put(graph, &question);
	pthread_mutex_lock(&lock);
	if (exchange(path, &question, &reply)) {
		answered = vc_wire_get_u32(&reply) == 1;
		if (answered)
			vc_wire_get(&reply, &plans, sizeof plans);
		else
			vc_wire_get_text(&reply, why, sizeof why);
		if (!answered || reply.bad || plans.n < 0 || plans.n > VC_PLANS_MOST) {
			give_up(answered ? "cuDNN's answer was not understood" : why);
			answered = false;
		} else if (!plans.n) {
			give_up("cuDNN named no algorithm");
		}
	}
	pthread_mutex_unlock(&lock);
	VC_FREE(question.at, reply.at);
	if (answered && plans.n)
		*out = plans;
	return answered && plans.n;
}
