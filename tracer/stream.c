/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - see stream.h.
 *
 * A record stays in its ring until the block that holds it has been written, so that nothing is
 * lost whichever process dies when: the journal says how many bytes of the partial trace are
 * valid. */
#define _GNU_SOURCE
#include "tracer/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/vec.h"

/* TURN: batches of one process before the next one has its turn; four full rings. WHOLE: all that a
 * journal can hold. */
enum { BATCH = 1024, TURN = 4 * VC_RING_RECORDS / BATCH,
       WHOLE = VC_JOURNAL_RINGS * (VC_RING_RECORDS / BATCH + 1) };

int vc_stream_open(struct vc_stream *s, const char *journal, struct vc_error *err)
{
	s->journal = strdup(journal);
	VC_HAVE(s->journal, "a file name", err);
	s->reader = vc_journal_open(journal, true, err);
	if (!s->reader)
		return VC_EIO;
	s->start = vc_journal_header(s->reader)->start_mono_ns;
	s->pid = vc_journal_header(s->reader)->pid;
	return vc_trace_file_init(&s->file, err);
}

/* A finished stream keeps what the summary says of it. */
static void release(struct vc_stream *s)
{
	vc_flight_free(s->flight);
	vc_live_free(s->live);
	s->flight = NULL;
	s->live = NULL;
	vc_trace_file_release(&s->file);
	vc_journal_close(s->reader);
	s->reader = NULL;
}

void vc_stream_free(struct vc_stream *s)
{
	release(s);
	vc_trace_file_fini(&s->file);
	for (size_t i = 0; i < s->seals; i++)
		free(s->seal[i].path);
	VC_FREE(s->seal, s->journal, s);
}

void vc_stream_stop(struct vc_stream *s, const char *why)
{
	vc_trace_file_stop(&s->file, why);
	atomic_store(&vc_journal_header(s->reader)->state, VC_JOURNAL_CLOSED);
}

static void describe(struct vc_stream *s)
{
	char buf[64];

	vc_trace_file_describe(&s->file, s->reader, s->journal);
	memcpy(s->how, s->file.meta->how, sizeof(s->how));
	s->dropped = s->file.meta->dropped;
	s->cpu = vc_journal_fact(s->reader, "plane", buf, sizeof(buf)) && strcmp(buf, "cpu") == 0;
}

static void tell_journal(struct vc_stream *s, const char *key, const char *path, size_t without)
{
	char *real = realpath(path, NULL);

	if (real) {
		real[strlen(real) - without] = '\0';
		vc_journal_put_fact(vc_journal_header(s->reader), key, real);
	}
	free(real);
}

/* The names go into the journal too, so that recovery needs nothing else. */
int vc_stream_name(struct vc_stream *s, char *path, const struct vc_drain_options *o,
		   struct vc_error *err)
{
	struct vc_journal *j = vc_journal_header(s->reader);
	char key[32];

	s->named = true;
	if (o->command)
		vc_journal_put_fact(j, "command", o->command);
	for (size_t i = 0; i < o->params && i < 64; i++) {
		snprintf(key, sizeof(key), "param%zu", i);
		vc_journal_put_fact(j, key, o->param[i]);
	}
	describe(s);
	s->watch = o->watch;
	s->live = vc_live_new(s->journal, j, s->file.meta->rank);
	if (o->ring) {
		s->flight = vc_flight_new(s->journal, &o->flight, err);
		if (!s->flight)
			return VC_ENOMEM;
		vc_watch_begin(s->watch, &s->watching, j->start_mono_ns);
	}
	if (vc_trace_file_begin(&s->file, path, ".part", err) < 0)
		return VC_EIO;
	tell_journal(s, "part", s->file.part, 0);
	tell_journal(s, "trace", s->file.part, strlen(".part"));
	return 0;
}

static void note_nameless(struct vc_stream *s)
{
	uint64_t n = atomic_load(&vc_journal_header(s->reader)->textless);

	if (n)
		vc_meta_note(s->file.meta, "%llu names of marks, kernels or call sites found no "
			     "room in the journal: what bears them is there without a name",
			     (unsigned long long)n);
}

/* ---- sealing: in a process of our own, so that rings are emptied all the while ---- */

enum { SEALS = 8 /* of one kind; a search for the largest batch is refused often */ };

static char *seal_name(const struct vc_stream *s, const char *word)
{
	size_t same = 0;
	char more[64];

	for (size_t i = 0; i < s->seals; i++)
		same += strcmp(s->seal[i].word, word) == 0;
	if (same >= SEALS && *word)
		return NULL;
	if (!*word && !same)
		return strdup(s->file.path);
	if (same)
		snprintf(more, sizeof(more), *word ? ".%s.%zu" : "%s.%zu", word, same + 1);
	else
		snprintf(more, sizeof(more), ".%s", word);
	return vc_name_with(s->file.path, more);
}

/* A window that never opened, or was closed by the program, leaves nothing to write. */
static bool has_something(const struct vc_stream *s)
{
	return s->file.encoder && (!s->flight || !s->watching.window || s->whole ||
				   s->watching.window == VC_WINDOW_OPEN ||
				   s->watching.window == VC_WINDOW_OVER);
}

static void leave_out(struct vc_stream *s, const char *path)
{
	unlink(path);
	VC_FREE(s->file.path, s->file.part);
	s->file.path = s->file.part = NULL;
}

static void write_whole(struct vc_stream *s)
{
	bool any = has_something(s);
	char *next;

	if (any && s->watch && s->watch->paused && s->seals) { /* the last of several windows */
		next = seal_name(s, "");
		if (next) {
			free(s->file.path);
			s->file.path = next;
		}
	}
	if (s->flight && any)
		vc_flight_seal(s->flight, s->reader, &s->file);
	describe(s);
	note_nameless(s);
	s->totals = vc_journal_totals(s->file.decoder);
	if (any) {
		s->stored = vc_trace_file_finish(&s->file, s->missing != 0) ? s->put - s->torn :
			    s->stored;
		if (!s->file.bytes) /* a full disk from the start */
			leave_out(s, s->file.path);
	} else if (s->file.part) {
		leave_out(s, s->file.part);
	}
}

static int seal_now(struct vc_stream *s, const char *path, int tell)
{
	struct vc_trace_file f = { 0 };
	struct vc_error err = { 0 };

	vc_journal_hold(s->reader);
	if (vc_flight_hold(s->flight) < 0 || write(tell, "", 1) != 1 ||
	    vc_trace_file_init(&f, &err) < 0 ||
	    vc_trace_file_begin(&f, strdup(path), ".seal", &err) < 0)
		return 1;
	close(tell);
	vc_trace_file_describe(&f, s->reader, s->journal);
	vc_flight_seal(s->flight, s->reader, &f);
	vc_trace_file_finish(&f, false);
	return f.stopped != NULL;
}

/* What is kept becomes a trace of its own, NAME.WORD.vct, while the recording goes on. The journal
 * and the files of the ring may go as soon as the other process has opened them. */
static void seal(struct vc_stream *s, const char *word)
{
	struct vc_seal new = { .word = word };
	int tell[2];
	char c;

	vc_flight_store(s->flight);
	s->wanted = NULL;
	new.path = s->named && !s->file.stopped ? seal_name(s, word) : NULL;
	if (!new.path || !vc_vec_one(s->seal, s->seals) || pipe2(tell, O_CLOEXEC) < 0) {
		s->unsealed++;
		free(new.path);
		return;
	}
	new.pid = fork();
	if (new.pid == 0)
		_exit(seal_now(s, new.path, tell[1]));
	close(tell[1]);
	while (new.pid > 0 && read(tell[0], &c, 1) < 0 && errno == EINTR)
		;
	close(tell[0]);
	if (new.pid < 0) {
		new.failed = true;
		new.pid = 0;
	}
	s->seal[s->seals++] = new;
}

void vc_stream_want(struct vc_stream *s, const char *word)
{
	if (s->flight && !s->whole && !s->file.stopped)
		s->wanted = word;
}

void vc_stream_reap(struct vc_stream *s, bool wait)
{
	for (size_t i = 0; i < s->seals; i++) {
		struct vc_seal *seal = &s->seal[i];
		int status = 0;
		pid_t got = seal->pid ? waitpid((pid_t)seal->pid, &status, wait ? 0 : WNOHANG) : 0;

		if (!seal->pid || got == 0 || (got < 0 && errno == EINTR))
			continue;
		seal->pid = 0;
		seal->failed = got < 0 || status != 0;
	}
}

/* The window of the recording is over: so is the recording, but for what CUPTI tells later. */
static void close_window(struct vc_stream *s, uint64_t now)
{
	if (s->watch->paused) {
		seal(s, "");
		vc_flight_pin(s->flight, false);
		return;
	}
	if (s->watch->late) {
		s->over_ns = now;
		return;
	}
	atomic_store(&vc_journal_header(s->reader)->state, VC_JOURNAL_CLOSED);
	write_whole(s);
	s->whole = true;
}

static void act(struct vc_stream *s, enum vc_turn turn, uint64_t now)
{
	switch (turn) {
	case VC_TURN_OOM:
		s->refused = true;
		seal(s, "oom");
		break;
	case VC_TURN_WHEN:
		seal(s, "when");
		break;
	case VC_TURN_DUMP:
		seal(s, "dump");
		break;
	case VC_TURN_OPEN:
		vc_flight_store(s->flight);
		vc_flight_pin(s->flight, true);
		break;
	case VC_TURN_CLOSE:
		vc_flight_store(s->flight);
		close_window(s, now);
		break;
	case VC_TURN_STOP:
		vc_stream_stop(s, "memory ran out, and --on-oom stop says that this is the end");
		break;
	case VC_TURN_NONE: break;
	}
}

static bool is_work(const struct vc_record *rec)
{
	return rec->kind == VC_EV_KERNEL || rec->kind == VC_EV_COPY || rec->kind == VC_EV_LAUNCH ||
	       rec->kind == VC_EV_OVERHEAD;
}

static void keep(struct vc_stream *s, const struct vc_record *rec, size_t n)
{
	for (size_t i = 0; i < n && !s->whole && !s->file.stopped; i++) {
		struct vc_fold_totals t = { 0 };

		if (s->over_ns && !(is_work(&rec[i]) && rec[i].time_ns <= s->over_ns))
			continue;
		vc_flight_put(s->flight, &rec[i]);
		if (s->watch->when)
			t = vc_flight_totals(s->flight);
		act(s, vc_watch_look(s->watch, &s->watching, &rec[i], &t), rec[i].time_ns);
		if (s->wanted && vc_record_is_whole(&rec[i]))
			seal(s, s->wanted);
		if (vc_flight_full(s->flight))
			vc_flight_store(s->flight);
	}
}

static void write_records(struct vc_stream *s, const struct vc_record *rec, size_t n)
{
	size_t last = 0;

	if (s->watch && s->watch->on_oom == VC_OOM_STOP)
		for (size_t i = 0; i < n && !last; i++)
			last = rec[i].kind == VC_EV_OOM ? i + 1 : 0;
	vc_trace_file_put(&s->file, s->reader, rec, last ? last : n);
	s->put += s->file.stopped ? 0 : last ? last : n;
	if (last)
		act(s, VC_TURN_STOP, 0);
}

/* Moves what is there; true when something was. */
static bool move(struct vc_stream *s, enum vc_journal_way way, vc_stream_namer *name, void *who)
{
	struct vc_record rec[BATCH];
	struct vc_error err = { 0 };
	size_t n = vc_journal_next(s->reader, rec, BATCH, way, &s->missing);

	if (n && !s->named && !s->file.stopped && name && name(who, s, &err) < 0)
		vc_trace_file_stop(&s->file, "the trace could not be created");
	for (size_t i = 0; s->live && i < n; i++)
		vc_live_put(s->live, &rec[i]);
	if (s->flight)
		keep(s, rec, n);
	else
		write_records(s, rec, n);
	if (s->file.stopped)
		vc_stream_stop(s, s->file.stopped);
	return n > 0;
}

static void store(struct vc_stream *s, bool flush)
{
	bool was = s->file.stopped;
	uint64_t bytes = 0;

	if (s->flight) {
		bytes = vc_flight_store(s->flight);
	} else if (s->file.out) {
		vc_trace_file_store(&s->file, flush);
		bytes = s->file.bytes;
		if (flush && !s->file.stopped)
			s->stored = s->put;
		else if (flush && !was)
			s->torn = s->put - s->stored;
	}
	vc_journal_commit(s->reader, bytes);
	if (s->flight)
		vc_flight_committed(s->flight);
	if (s->flight && vc_flight_stopped(s->flight))
		vc_trace_file_stop(&s->file, vc_flight_stopped(s->flight));
	if (s->file.stopped)
		vc_stream_stop(s, s->file.stopped);
}

/* What is there, but no more than so many batches: a process that never stops must not keep us for
 * ever. */
void vc_stream_drain(struct vc_stream *s, bool dead, bool whole, vc_stream_namer *name, void *who)
{
	enum vc_journal_way way = dead ? VC_JOURNAL_DEAD : VC_JOURNAL_WAIT;
	bool any = false;

	if (!dead && vc_journal_pressure(s->reader) > VC_RING_RECORDS / 4)
		way = VC_JOURNAL_HURRY;
	for (int i = 0; i < (whole ? WHOLE : TURN) && move(s, way, name, who); i++) {
		any = true;
		if ((s->flight && vc_flight_ahead(s->flight)) ||
		    (vc_journal_uncommitted(s->reader) > VC_RING_RECORDS / 8 &&
		     vc_journal_pressure(s->reader) > VC_RING_RECORDS / 4))
			store(s, true);
	}
	if (any && s->live)
		vc_live_show(s->live, s->reader);
	if (s->wanted && !any)
		seal(s, s->wanted);
}

void vc_stream_finish(struct vc_stream *s, bool dead, vc_stream_namer *name, void *who)
{
	if (s->finished)
		return;
	vc_stream_drain(s, true, dead, name, who);
	s->finished = true;
	s->orderly = atomic_load(&vc_journal_header(s->reader)->state) == VC_JOURNAL_ENDED;
	if (!dead && !s->whole)
		vc_stream_stop(s, "the process was still running when the recording ended");
	if (s->flight)
		store(s, true);
	if (!s->whole)
		write_whole(s);
	if (s->file.stopped && !s->flight) /* whatever the process has published, or would have */
		s->unwritten = atomic_load(&vc_journal_header(s->reader)->seq) - s->stored;
	unlink(s->journal); /* first: a ring without a journal is known to be of no use */
	if (s->flight)
		vc_flight_remove(s->flight);
	release(s);
}
