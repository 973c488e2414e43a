/* SPDX-License-Identifier: Apache-2.0 */
/* inject.c - see inject.h.
 *
 * The main thread is stopped (ptrace), made to call mmap and Py_AddPendingCall, and goes on where
 * it was. Both may be called at any instruction: what is called later, when the interpreter comes
 * around to it, is PyRun_SimpleString with a line of ours. So nothing is allocated, loaded or
 * locked in the middle of something else. CPython has both functions since 2.7; the remote
 * debugging of 3.14 needs the same rights and does the same. */
#define _GNU_SOURCE
#include "tracer/inject.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 16384, XSTATE = 16384 /* of the registers of vectors: AVX-512 and AMX fit */,
       KEPT = 8 /* signals that come meanwhile, and are sent again */ };

/* ---- what the process is ---- */

/* A line "name: value" of /proc/PID/status; -1: there is none. */
static long status_of(pid_t pid, const char *name)
{
	char path[64], line[256];
	size_t n = strlen(name);
	long value = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, name, n) == 0 && line[n] == ':')
			value = strtol(line + n + 1, NULL, 10);
	if (f)
		fclose(f);
	return value;
}

/* Does it see the same files? */
static bool is_contained(pid_t pid)
{
	char path[64], theirs[64] = "", ours[64] = "";

	snprintf(path, sizeof(path), "/proc/%ld/ns/mnt", (long)pid);
	return readlink(path, theirs, sizeof(theirs) - 1) > 0 &&
	       readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) > 0 &&
	       strcmp(theirs, ours) != 0;
}

static int refuse(pid_t pid, struct vc_error *err)
{
	char text[16] = "";
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	long scope = fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 ? strtol(text, NULL, 10) : 0;

	if (fd >= 0)
		close(fd);
	if (scope == 3)
		return vc_fail(err, VC_EIO, "this system lets no process be attached to "
			       "(kernel.yama.ptrace_scope is 3); start the program under vramcast "
			       "record");
	if (scope)
		return vc_fail(err, VC_EIO, "this system does not let process %ld be attached to "
			       "(kernel.yama.ptrace_scope is %ld): run vramcast as root%s",
			       (long)pid, scope, scope == 1 ?
			       ", or set it to 0 with 'sysctl kernel.yama.ptrace_scope=0'" : "");
	return vc_fail(err, VC_EIO, "the kernel does not let process %ld be attached to; a "
		       "container needs the right SYS_PTRACE (docker run --cap-add SYS_PTRACE)",
		       (long)pid);
}

/* ---- functions of it, by name ---- */

static bool ends_in(const char *path, const char *part)
{
	const char *slash = strrchr(path, '/');

	return strstr(slash ? slash + 1 : path, part) != NULL;
}

/* The value of a symbol that the file exports, and the lowest address that it asks for. */
static uint64_t symbol_in(const unsigned char *p, size_t size, const char *name)
{
	const Elf64_Ehdr *e = (const void *)p;
	const Elf64_Shdr *s;
	uint64_t lowest = UINT64_MAX;

	if (size < sizeof(*e) || memcmp(p, ELFMAG, SELFMAG) || p[EI_CLASS] != ELFCLASS64 ||
	    e->e_shoff > size || e->e_shnum * sizeof(*s) > size - e->e_shoff ||
	    e->e_phoff > size || e->e_phnum * sizeof(Elf64_Phdr) > size - e->e_phoff)
		return 0;
	for (int i = 0; i < e->e_phnum; i++) {
		const Elf64_Phdr *h = (const Elf64_Phdr *)(const void *)(p + e->e_phoff) + i;

		if (h->p_type == PT_LOAD && h->p_vaddr - h->p_offset < lowest)
			lowest = h->p_vaddr - h->p_offset;
	}
	s = (const void *)(p + e->e_shoff);
	for (int i = 0; i < e->e_shnum; i++) {
		const Elf64_Sym *y = (const void *)(p + s[i].sh_offset);
		const Elf64_Shdr *t = s[i].sh_link < e->e_shnum ? &s[s[i].sh_link] : NULL;

		if (s[i].sh_type != SHT_DYNSYM || !t || s[i].sh_offset > size ||
		    s[i].sh_size > size - s[i].sh_offset || t->sh_offset > size ||
		    t->sh_size > size - t->sh_offset)
			continue;
		for (size_t k = 0; k < s[i].sh_size / sizeof(*y); k++)
			if (y[k].st_shndx != SHN_UNDEF && y[k].st_name < t->sh_size &&
			    strcmp((const char *)p + t->sh_offset + y[k].st_name, name) == 0)
				return y[k].st_value - lowest;
	}
	return 0;
}

static uint64_t offset_of(const char *path, const char *name)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t found = 0;
	struct stat st;
	void *p;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (p != MAP_FAILED) {
			found = symbol_in(p, (size_t)st.st_size, name);
			munmap(p, (size_t)st.st_size);
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}

/* Where the function is in the process: in a library whose name has that part, or in the program
 * itself. 0: nowhere. */
static uint64_t find(pid_t pid, const char *name, const char *part)
{
	char path[64], line[PATH_MAX + 256], exe[PATH_MAX] = "", file[PATH_MAX];
	uint64_t found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/exe", (long)pid);
	if (readlink(path, exe, sizeof(exe) - 1) < 0)
		exe[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		unsigned long long at, offset;
		int end = 0;

		if (sscanf(line, "%llx-%*x %*s %llx %*s %*s %n", &at, &offset, &end) < 2 ||
		    !end || offset || line[end] != '/')
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(file, sizeof(file), "%s", line + end);
		if (!ends_in(file, part) && strcmp(file, exe) != 0)
			continue;
		found = offset_of(file, name);
		found = found ? found + at : 0;
	}
	if (f)
		fclose(f);
	return found;
}

/* Without the right to attach to it, what it has mapped cannot be seen either. */
static bool is_visible(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/maps", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int vc_inject_check(pid_t pid, struct vc_error *err)
{
	long uid = status_of(pid, "Uid"), tracer = status_of(pid, "TracerPid");

	if (pid <= 0 || uid < 0)
		return vc_fail(err, VC_EIO, "there is no process %ld", (long)pid);
	if ((uid_t)uid != geteuid())
		return vc_fail(err, VC_EIO, "process %ld belongs to another user (%ld): run "
			       "vramcast as that user", (long)pid, uid);
	if (is_contained(pid))
		return vc_fail(err, VC_EIO, "process %ld runs in a container: run vramcast inside "
			       "of it, where the same files are", (long)pid);
	if (tracer > 0)
		return vc_fail(err, VC_EIO, "process %ld is being traced by process %ld (a "
			       "debugger, strace): that has to end first", (long)pid, tracer);
#ifndef __x86_64__
	return vc_fail(err, VC_ENOSUP, "attaching is for x86-64 alone");
#endif
	if (!find(pid, "Py_AddPendingCall", "python") || !find(pid, "mmap", "libc."))
		return !is_visible(pid) ? refuse(pid, err) :
		       vc_fail(err, VC_EIO, "process %ld has no Python, through which PyTorch is "
			       "asked for its heap; start it under vramcast record", (long)pid);
	return 0;
}

/* ---- calls in it ---- */

#ifdef __x86_64__

struct stopped {
	pid_t pid;
	struct user_regs_struct regs;
	unsigned char vectors[XSTATE];
	size_t vector_bytes;
	int kept[KEPT], signals;
};

static int set_vectors(const struct stopped *s)
{
	struct iovec v = { (void *)(uintptr_t)s->vectors, s->vector_bytes };

	return s->vector_bytes ? (int)ptrace(PTRACE_SETREGSET, s->pid, NT_X86_XSTATE, &v) : 0;
}

static int lost(const struct stopped *s, const char *doing, struct vc_error *err)
{
	return vc_fail(err, VC_EIO, "process %ld could not be attached to: %s: %s", (long)s->pid,
		       doing, strerror(errno));
}

/* Until it stops; signals that were on their way to it are kept for later. */
static int wait_stop(struct stopped *s, int *stop, struct vc_error *err)
{
	int status;

	for (;;) {
		if (waitpid(s->pid, &status, __WALL) < 0) {
			if (errno == EINTR)
				continue;
			return lost(s, "waiting for it", err);
		}
		if (!WIFSTOPPED(status))
			return vc_fail(err, VC_EIO, "process %ld ended", (long)s->pid);
		*stop = WSTOPSIG(status);
		if (status >> 16 == PTRACE_EVENT_STOP || *stop == SIGSEGV || *stop == SIGTRAP)
			return 0;
		if (s->signals < KEPT)
			s->kept[s->signals++] = *stop;
		if (ptrace(PTRACE_CONT, s->pid, NULL, NULL) < 0)
			return lost(s, "letting it go on", err);
	}
}

static int stop(struct stopped *s, struct vc_error *err)
{
	struct iovec v = { s->vectors, sizeof(s->vectors) };
	int how;

	if (ptrace(PTRACE_SEIZE, s->pid, NULL, NULL) < 0)
		return refuse(s->pid, err);
	if (ptrace(PTRACE_INTERRUPT, s->pid, NULL, NULL) < 0)
		return lost(s, "stopping it", err);
	VC_TRY(wait_stop(s, &how, err));
	if (ptrace(PTRACE_GETREGS, s->pid, NULL, &s->regs) < 0)
		return lost(s, "reading its registers", err);
	if (ptrace(PTRACE_GETREGSET, s->pid, NT_X86_XSTATE, &v) == 0)
		s->vector_bytes = v.iov_len;
	return 0;
}

/* Where it was, with the signals that came; a system call that was interrupted begins again. */
static int go_on(struct stopped *s, struct vc_error *err)
{
	int rc = 0;

	if (ptrace(PTRACE_SETREGS, s->pid, NULL, &s->regs) < 0 || set_vectors(s) < 0)
		rc = lost(s, "restoring its registers", err);
	if (ptrace(PTRACE_DETACH, s->pid, NULL, NULL) < 0 && !rc)
		rc = lost(s, "leaving it", err);
	for (int i = 0; i < s->signals; i++)
		kill(s->pid, s->kept[i]);
	return rc;
}

static int write_memory(const struct stopped *s, uint64_t at, const void *p, size_t n,
			struct vc_error *err)
{
	struct iovec from = { (void *)(uintptr_t)p, n }, to = { (void *)(uintptr_t)at, n };

	return process_vm_writev(s->pid, &from, 1, &to, 1, 0) == (ssize_t)n ? 0 :
	       lost(s, "writing to its memory", err);
}

/* System V ABI: arguments in registers, the stack aligned as at a call, 128 bytes below it spared.
 * The function returns to address 0, which stops the thread again. */
static int call(struct stopped *s, uint64_t function, const uint64_t *arg, uint64_t *result,
		struct vc_error *err)
{
	struct user_regs_struct r = s->regs;
	const uint64_t nowhere = 0;
	int how;

	r.rsp = ((r.rsp - 128 - 256) & ~15ull) - 8;
	VC_TRY(write_memory(s, r.rsp, &nowhere, sizeof(nowhere), err));
	r.rip = function;
	r.rax = 0;
	r.orig_rax = (uint64_t)-1; /* no system call is to be begun again */
	r.rdi = arg[0];
	r.rsi = arg[1];
	r.rdx = arg[2];
	r.rcx = arg[3];
	r.r8 = arg[4];
	r.r9 = arg[5];
	r.eflags &= ~0x400ull; /* the direction flag */
	if (ptrace(PTRACE_SETREGS, s->pid, NULL, &r) < 0 ||
	    ptrace(PTRACE_CONT, s->pid, NULL, NULL) < 0)
		return lost(s, "calling a function", err);
	do {
		VC_TRY(wait_stop(s, &how, err));
		if (ptrace(PTRACE_GETREGS, s->pid, NULL, &r) < 0)
			return lost(s, "reading its registers", err);
		if (how != SIGSEGV && ptrace(PTRACE_CONT, s->pid, NULL, NULL) < 0)
			return lost(s, "letting it go on", err);
	} while (how != SIGSEGV);
	if (r.rip != 0)
		return vc_fail(err, VC_EIO, "a function of process %ld failed at %#llx",
			       (long)s->pid, (unsigned long long)r.rip);
	*result = r.rax;
	return 0;
}

/* The file's name as digits: no character of it can end the text. */
static int make_line(char *line, size_t n, const char *file, uint64_t page)
{
	int used = snprintf(line, n, "try:\n exec(compile(open(bytes.fromhex('");

	for (const char *p = file; *p && (size_t)used + 3 < n; p++)
		used += snprintf(line + used, n - (size_t)used, "%02x", (unsigned char)*p);
	used += snprintf(line + used, n - (size_t)used, "')).read(),'vramcast','exec'),"
			 "{'page':%llu,'size':%d})\nexcept BaseException:\n pass\n",
			 (unsigned long long)page, PAGE);
	return (size_t)used < n ? 0 : -1;
}

static int inject(struct stopped *s, const char *file, struct vc_error *err)
{
	uint64_t add = find(s->pid, "Py_AddPendingCall", "python"),
		 run = find(s->pid, "PyRun_SimpleString", "python"),
		 map = find(s->pid, "mmap", "libc."), page, result;
	char line[PAGE];

	if (!add || !run || !map)
		return vc_fail(err, VC_EIO, "process %ld has no Python", (long)s->pid);
	VC_TRY(call(s, map, (uint64_t[]){ 0, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1, 0 }, &page, err));
	if (page == (uint64_t)(uintptr_t)MAP_FAILED || make_line(line, sizeof(line), file, page))
		return vc_fail(err, VC_EIO, "process %ld has no memory left", (long)s->pid);
	VC_TRY(write_memory(s, page, line, strlen(line) + 1, err));
	VC_TRY(call(s, add, (uint64_t[]){ run, page, 0, 0, 0, 0 }, &result, err));
	if ((int)result)
		return vc_fail(err, VC_EIO, "the Python of process %ld has too much to do",
			       (long)s->pid);
	return 0;
}

int vc_inject_python(pid_t pid, const char *file, struct vc_error *err)
{
	struct stopped *s = calloc(1, sizeof(*s));
	struct vc_error second = { 0 };
	int rc;

	VC_HAVE(s, "registers", err);
	s->pid = pid;
	rc = stop(s, err);
	if (rc == 0) {
		rc = inject(s, file, err);
		if (go_on(s, rc ? &second : err) < 0 && !rc)
			rc = VC_EIO;
	} else {
		ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	free(s);
	return rc;
}

#else

int vc_inject_python(pid_t pid, const char *file, struct vc_error *err)
{
	return vc_fail(err, VC_ENOSUP, "attaching is for x86-64 alone");
}

#endif
