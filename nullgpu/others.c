/* SPDX-License-Identifier: Apache-2.0 */
/* others.c - the other processes of a dry run: what they hold of a card now, out of the reports
 * that they keep mapped (usage.h). */
#define _GNU_SOURCE
#include "nullgpu/null.h"
#include "nullgpu/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 64 };

static struct {
	pthread_mutex_t lock;
	int pid; /* of the process that looked: a forked child looks again */
	struct timespec changed;
	const struct vc_null_report *at[MOST];
	int n;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void add(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *p = MAP_FAILED;
	struct stat s;
	if (fd >= 0 && fstat(fd, &s) == 0 && s.st_size >= (off_t)sizeof **known.at)
		p = mmap(NULL, sizeof **known.at, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p != MAP_FAILED)
		known.at[known.n++] = p;
}

/* Those that came since the folder was looked at. */
static void look(const char *folder)
{
	char path[1200];
	struct dirent *entry;
	struct stat s;
	DIR *d;
	if (stat(folder, &s) || (known.pid == getpid() &&
				 s.st_mtim.tv_sec == known.changed.tv_sec &&
				 s.st_mtim.tv_nsec == known.changed.tv_nsec))
		return;
	known.pid = getpid();
	known.changed = s.st_mtim;
	for (; known.n; known.n--)
		munmap((void *)known.at[known.n - 1], sizeof **known.at);
	d = opendir(folder);
	while (d && known.n < MOST && (entry = readdir(d)) != NULL) {
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (strncmp(entry->d_name, "report.", 7) == 0 &&
		    strtol(entry->d_name + 7, NULL, 10) != getpid())
			add(path);
	}
	if (d)
		closedir(d);
}

/* What it holds of that card, its context included; a page of its file may still be empty. */
static uint64_t held_by(const struct vc_null_report *r, int card)
{
	if (r->magic != VC_REPORT_MAGIC || r->ended || kill(r->pid, 0) < 0)
		return 0;
	for (int i = 0; i < VC_REPORT_DEVICES; i++)
		if (r->number[i] == card && r->device[i].peak)
			return r->device[i].used + vc_null_card()->context;
	return 0;
}

void vc_null_meet(int device)
{
	const char *folder = getenv("VRAMCAST_NULL_REPORT");
	struct vc_null_report *own = vc_null_report();
	uint64_t sum = 0;
	if (!folder || !*folder || own->number[device] < 0)
		return;
	pthread_mutex_lock(&known.lock);
	look(folder);
	for (int i = 0; i < known.n; i++)
		sum += held_by(known.at[i], own->number[device]);
	pthread_mutex_unlock(&known.lock);
	sum += sum ? own->device[device].used + vc_null_card()->context : 0;
	if (sum > own->device[device].together)
		own->device[device].together = sum;
}
