/* SPDX-License-Identifier: Apache-2.0 */
/* room.c - see room.h. */
#define _GNU_SOURCE
#include "tracer/room.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct {
	const char *dir;
	char path[PATH_MAX + 64];
	int fd;       /* open as long as the file may grow; never inherited */
	uint64_t end; /* of the file */
	_Atomic(struct vc_journal_lost *) lost;
} g = { .fd = -1 };

void vc_room_folder(const char *dir)
{
	struct vc_journal_lost *l = atomic_exchange(&g.lost, NULL); /* of another folder */

	if (l)
		munmap(l, sizeof(*l));
	g.dir = dir;
}

static struct vc_journal_lost *lost_page(void)
{
	struct vc_journal_lost *l = atomic_load(&g.lost);
	char path[PATH_MAX + 64];
	int fd;
	void *p;

	if (l || !g.dir)
		return l;
	snprintf(path, sizeof(path), "%s/" VC_JOURNAL_LOST, g.dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	p = mmap(NULL, sizeof(*l), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return NULL;
	atomic_store(&g.lost, p);
	return p;
}

static void tell(enum vc_lost_why why)
{
	struct vc_journal_lost *l = lost_page();

	if (!l)
		return;
	atomic_store(&l->pid, (int64_t)getpid());
	atomic_fetch_add(&l->processes[why], 1);
}

void vc_room_lost(uint64_t events)
{
	struct vc_journal_lost *l = lost_page();

	if (l)
		atomic_fetch_add(&l->events, events);
}

/* Two images of one process (exec) may begin at the same moment of a null GPU's clock. */
bool vc_room_open(uint64_t now)
{
	for (int image = 0; image < 1000 && (!image || errno == EEXIST) && g.fd < 0; image++) {
		snprintf(g.path, sizeof(g.path), "%s/%ld-%llu.%d.vcj", g.dir, (long)getpid(),
			 (unsigned long long)now, image);
		g.fd = open(g.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (g.fd < 0) {
		tell(errno == ENOSPC || errno == EDQUOT ? VC_LOST_ROOM : VC_LOST_OPEN);
		return false;
	}
	fcntl(g.fd, F_SETLK, &(struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_SET });
	g.end = 0;
	return true;
}

/* Beyond a limit on file sizes (ulimit -f) the attempt itself would end the program: SIGXFSZ. */
static bool is_beyond(uint64_t end)
{
	struct rlimit most;

	return getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY &&
	       end > most.rlim_cur;
}

static bool is_spare(uint64_t bytes)
{
	struct statvfs disk;

	return fstatvfs(g.fd, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize >= bytes;
}

/* posix_fallocate, because a hole in a full file system would kill the recorded program with SIGBUS
 * at some later store. */
void *vc_room_map(uint64_t bytes, unsigned spare, uint64_t *at)
{
	void *p;

	if (g.fd < 0 || is_beyond(g.end + bytes) || (spare && !is_spare(spare * bytes)) ||
	    posix_fallocate(g.fd, (off_t)g.end, (off_t)bytes) != 0)
		return NULL;
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, g.fd, (off_t)g.end);
	if (p == MAP_FAILED)
		return NULL;
	*at = g.end;
	g.end += bytes;
	return p;
}

void vc_room_drop(void)
{
	tell(is_beyond(VC_JOURNAL_LEAST) ? VC_LOST_LIMIT : VC_LOST_ROOM);
	unlink(g.path);
	vc_room_forget();
}

void vc_room_forget(void)
{
	if (g.fd >= 0)
		close(g.fd);
	g.fd = -1;
}
