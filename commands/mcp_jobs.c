/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_jobs.c - see mcp_jobs.h. What goes in and comes out lies in files, so that nothing blocks. */
#define _GNU_SOURCE
#include "commands/mcp_jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/json.h"
#include "common/vec.h"

/* Replays use all cores; of an answer for people the end is kept. */
enum { RUNNING = 4, LONGEST = 12000, TELL_MS = 1000, GRACE_MS = 300 };

struct vc_mcp_job {
	struct vc_mcp_call call;
	char *id, *progress;
	FILE *out, *err;
	char report[64];   /* "": it writes none */
	pid_t pid;         /* 0: it waits */
	int code;
	bool late;         /* it took too long */
	double began, told;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- a process ---- */

static void become(const struct vc_mcp_job *j, FILE *in, pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(127);
	dup2(fileno(in), 0);
	dup2(fileno(j->out), 1);
	dup2(fileno(j->call.runs_program ? j->out : j->err), 2);
	execv("/proc/self/exe", j->call.at);
	_exit(127);
}

/* The file that a dry run's report goes to: empty, it says that there was no run. */
static bool place_report(struct vc_mcp_job *j)
{
	const char *folder = getenv("TMPDIR");

	for (size_t i = 0; i < j->call.n; i++) {
		if (strcmp(j->call.at[i], "--report=" VC_MCP_REPORT) != 0)
			continue;
		int n = snprintf(j->report, sizeof(j->report) - 6, "%.40s/vramcast-",
				 folder && *folder && strlen(folder) <= 40 ? folder : "/tmp");
		memset(j->report + n, 'X', 6); /* mkstemp's template */
		int fd = mkstemp(j->report);
		if (fd < 0) {
			j->report[0] = '\0';
			return false;
		}
		close(fd);
		free(j->call.at[i]);
		return asprintf(&j->call.at[i], "--report=%s", j->report) >= 0;
	}
	return true;
}

/* A file of no name, which other calls do not inherit. */
static FILE *scratch(void)
{
	FILE *f = tmpfile();

	if (f)
		fcntl(fileno(f), F_SETFD, FD_CLOEXEC);
	return f;
}

static int start(struct vc_mcp_job *j, struct vc_error *err)
{
	FILE *in = scratch();
	pid_t self = getpid();

	j->out = scratch();
	j->err = scratch();
	if (!in || !j->out || !j->err || !place_report(j) ||
	    (j->call.input && (fputs(j->call.input, in) < 0 || fputc('\n', in) < 0 ||
			       fflush(in)))) {
		if (in)
			fclose(in);
		return vc_fail(err, VC_EIO, "cannot make a temporary file: %s", strerror(errno));
	}
	rewind(in);
	j->pid = fork();
	if (j->pid == 0)
		become(j, in, self);
	fclose(in);
	if (j->pid < 0)
		return vc_fail(err, VC_EIO, "cannot start %s: %s", j->call.name, strerror(errno));
	setpgid(j->pid, j->pid);
	j->began = j->told = now();
	return VC_OK;
}

/* With all that it started. A dry run takes its folder away when it is asked to end. */
static void end(struct vc_mcp_job *j)
{
	const struct timespec while_ms = { 0, 10 * 1000000 };
	bool over = j->pid <= 0;

	if (!over)
		kill(-j->pid, SIGTERM);
	for (int i = 0; i < GRACE_MS / 10 && !over; i++) {
		over = waitpid(j->pid, NULL, WNOHANG) != 0;
		if (!over)
			nanosleep(&while_ms, NULL);
	}
	if (j->pid > 0)
		kill(-j->pid, SIGKILL);
	while (!over && waitpid(j->pid, NULL, 0) < 0 && errno == EINTR)
		;
	j->pid = 0;
}

static void drop(struct vc_mcp_jobs *jobs, size_t i)
{
	struct vc_mcp_job *j = &jobs->at[i];

	end(j);
	if (j->out)
		fclose(j->out);
	if (j->err)
		fclose(j->err);
	if (j->report[0])
		unlink(j->report);
	vc_mcp_call_fini(&j->call);
	VC_FREE(j->id, j->progress);
	memmove(j, j + 1, (--jobs->n - i) * sizeof(*j));
}

/* ---- answers ---- */

/* All of the file, or its last `most` bytes. */
static char *text_of(FILE *f, long most)
{
	long n = fseek(f, 0, SEEK_END) ? 0 : ftell(f), from = most && n > most ? n - most : 0;
	char *text = malloc((size_t)(n - from) + 1);

	if (!text)
		return NULL;
	fseek(f, from, SEEK_SET);
	size_t got = fread(text, 1, (size_t)(n - from), f);
	while (got && text[got - 1] == '\n')
		got--;
	text[got] = '\0';
	return text;
}

/* Is the code an answer, or did something go wrong? Of a dry run it is the program's. */
static bool has_failed(const struct vc_mcp_job *j)
{
	struct stat report;

	if (j->late || j->code < 0)
		return true;
	if (j->report[0])
		return stat(j->report, &report) < 0 || !report.st_size;
	return j->code == 1 || j->code == 2 || j->code > 6;
}

static int answer(const struct vc_mcp_job *j, struct vc_output *out, struct vc_error *err)
{
	bool failed = has_failed(j);
	char *text = text_of(failed && !j->call.runs_program ? j->err : j->out,
			     j->call.json ? 0 : LONGEST), *late = NULL;

	if (text && j->late && asprintf(&late, "%s%svramcast mcp: %s was ended after %.6g s; the "
					"argument '" VC_MCP_TIMEOUT "' says how long it may take",
					text, *text ? "\n" : "", j->call.name,
					j->call.seconds) < 0)
		late = NULL;
	const char *said = late ? late : text;
	if (!said)
		return vc_nomem(err, "an answer");
	vc_output_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":"
			 "[{\"type\":\"text\",\"text\":", j->id);
	vc_json_quote(out, said, strlen(said));
	vc_output_printf(out, "}],\"isError\":%s", failed ? "true" : "false");
	if (j->call.json && !failed) { /* one line is one message */
		for (char *p = text; (p = strchr(p, '\n')); p++)
			*p = ' ';
		vc_output_text(out, ",\"structuredContent\":");
		vc_output_text(out, text);
	}
	vc_output_text(out, "}}\n");
	VC_FREE(text, late);
	return VC_OK;
}

/* How long it has run, and the last line that it wrote. */
static int tell(struct vc_mcp_job *j, struct vc_output *out, struct vc_error *err)
{
	char *text = text_of(j->call.runs_program ? j->out : j->err, 400);

	if (!text)
		return vc_nomem(err, "a notification");
	const char *last = strrchr(text, '\n');
	last = last ? last + 1 : *text ? text : "running";
	j->told = now();
	vc_output_printf(out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
			 "\"params\":{\"progressToken\":%s,\"progress\":%.3f,\"message\":",
			 j->progress, j->told - j->began);
	vc_json_quote(out, last, strlen(last));
	vc_output_text(out, "}}\n");
	free(text);
	return VC_OK;
}

/* ---- all of them ---- */

int vc_mcp_jobs_add(struct vc_mcp_jobs *jobs, struct vc_mcp_call *call, const char *id,
		    const char *progress, struct vc_error *err)
{
	struct vc_mcp_job j = { .call = *call };

	*call = (struct vc_mcp_call){ 0 };
	j.id = strdup(id);
	j.progress = progress ? strdup(progress) : NULL;
	if (!j.id || (progress && !j.progress) || !vc_vec_room(jobs->at, jobs->cap, jobs->n + 1)) {
		vc_mcp_call_fini(&j.call);
		VC_FREE(j.id, j.progress);
		return vc_nomem(err, "a call");
	}
	jobs->at[jobs->n++] = j;
	return VC_OK;
}

void vc_mcp_jobs_cancel(struct vc_mcp_jobs *jobs, const char *id)
{
	for (size_t i = jobs->n; i-- > 0;)
		if (!strcmp(jobs->at[i].id, id))
			drop(jobs, i);
}

/* Is it over? Then it is answered for. */
static int look_at(struct vc_mcp_job *j, bool *over, struct vc_output *out, struct vc_error *err)
{
	int status = 0;
	pid_t seen = waitpid(j->pid, &status, WNOHANG);

	*over = seen != 0;
	if (seen > 0) {
		j->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		kill(-j->pid, SIGKILL); /* what it left behind */
		j->pid = 0;
	} else if (seen < 0) {
		j->code = -1;
		j->pid = 0;
	} else if (now() - j->began >= j->call.seconds) {
		end(j);
		j->late = *over = true;
	} else if (j->progress && now() - j->told >= TELL_MS / 1e3) {
		return tell(j, out, err);
	}
	return *over ? answer(j, out, err) : VC_OK;
}

int vc_mcp_jobs_look(struct vc_mcp_jobs *jobs, struct vc_output *out, struct vc_error *err)
{
	size_t running = 0;

	for (size_t i = 0; i < jobs->n;) {
		struct vc_mcp_job *j = &jobs->at[i];
		bool over = false;

		if (!j->pid && running < RUNNING && start(j, err) < 0) {
			vc_output_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":"
					 "{\"code\":-32603,\"message\":", j->id);
			vc_json_quote(out, err->message, strlen(err->message));
			vc_output_text(out, "}}\n");
			drop(jobs, i);
			continue;
		}
		if (j->pid > 0)
			VC_TRY(look_at(j, &over, out, err));
		running += j->pid > 0;
		if (over)
			drop(jobs, i);
		else
			i++;
	}
	return VC_OK;
}

int vc_mcp_jobs_wait(const struct vc_mcp_jobs *jobs)
{
	double ms = TELL_MS, at = now();

	for (size_t i = 0; i < jobs->n; i++) {
		const struct vc_mcp_job *j = &jobs->at[i];
		double left = j->pid ? 1e3 * (j->began + j->call.seconds - at) : 0;
		ms = left < ms && (j->pid || i < RUNNING) ? left : ms;
	}
	return !jobs->n ? -1 : ms < 1 ? 1 : (int)ms;
}

void vc_mcp_jobs_fini(struct vc_mcp_jobs *jobs)
{
	while (jobs->n)
		drop(jobs, jobs->n - 1);
	free(jobs->at);
	*jobs = (struct vc_mcp_jobs){ 0 };
}
