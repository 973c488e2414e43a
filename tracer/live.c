/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - see live.h.
 *
 * Memory grows when, over the last steps, both what is held between the steps (the floor) and what
 * is held at most (the peak) rise. How much a step is the median of the slopes between all pairs of
 * steps (Theil and Sen), so that a few longer steps do not matter. */
#define _GNU_SOURCE
#include "tracer/live.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/map.h"
#include "common/vec.h"

enum { STEPS = 64, LEAST = 8, /* steps that are looked at, and that are needed */
       WARM = 4,              /* first steps, which allocate what stays */
       SPAN = 8 };            /* steps between two looks at who grows */
#define SECOND 1000000000u

struct block { uint64_t bytes; uint32_t site, next; };
struct site { uint32_t text; uint64_t bytes, then[2]; double growth; }; /* then: at the last two
									  * multiples of SPAN */

struct vc_live {
	char *path;
	struct vc_live_page *page, now;
	struct vc_map at, sites_at;    /* blocks and sites by address and text, index + 1 */
	struct block *block;
	struct site *site;
	size_t blocks, sites;
	uint32_t idle;
	uint64_t peak[STEPS], floor[STEPS]; /* of steps, the last at the end */
	unsigned n;
	uint64_t low, high, step_ns, began_ns, spans;
	uint64_t capacity;             /* what the allocator can reserve at most; 0: unknown */
};

static struct vc_live_page *make_page(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;

	if (fd >= 0 && posix_fallocate(fd, 0, sizeof(struct vc_live_page)) == 0)
		p = mmap(NULL, sizeof(struct vc_live_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			 0);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

struct vc_live *vc_live_new(const char *journal, const struct vc_journal *j, int64_t rank)
{
	struct vc_live *l = calloc(1, sizeof(*l));
	size_t n = strlen(journal) + sizeof(VC_LIVE_SUFFIX);

	if (!l)
		return NULL;
	l->path = malloc(n);
	if (l->path) {
		snprintf(l->path, n, "%s" VC_LIVE_SUFFIX, journal);
		l->page = make_page(l->path);
	}
	l->now.magic = VC_LIVE_MAGIC;
	l->now.pid = j->pid;
	l->now.rank = rank;
	l->now.left = -1;
	l->began_ns = l->step_ns = j->start_mono_ns;
	l->low = UINT64_MAX;
	return l;
}

void vc_live_free(struct vc_live *l)
{
	if (!l)
		return;
	if (l->page)
		munmap(l->page, sizeof(*l->page));
	if (l->path)
		unlink(l->path);
	vc_map_fini(&l->at);
	vc_map_fini(&l->sites_at);
	VC_FREE(l->path, l->block, l->site, l);
}

const struct vc_live_page *vc_live_page(const struct vc_live *l)
{
	return &l->now;
}

/* ---- who holds what ---- */

static uint32_t site_of(struct vc_live *l, uint32_t text)
{
	uint64_t *i = vc_map_get(&l->sites_at, text + 1ull);

	if (i)
		return (uint32_t)*i;
	if (!vc_vec_one(l->site, l->sites) || !vc_map_put(&l->sites_at, text + 1ull, l->sites + 1))
		return 0;
	l->site[l->sites++] = (struct site){ .text = text };
	return (uint32_t)l->sites;
}

static uint64_t key_of(const struct vc_record *rec)
{
	return rec->addr ^ (uint64_t)rec->device << 52;
}

static void release(struct vc_live *l, uint64_t key)
{
	uint64_t i = vc_map_take(&l->at, key);
	struct block *b;

	if (!i)
		return;
	b = &l->block[i - 1];
	l->now.allocated -= b->bytes;
	if (b->site)
		l->site[b->site - 1].bytes -= b->bytes;
	b->next = l->idle;
	l->idle = (uint32_t)i;
}

static void hold(struct vc_live *l, const struct vc_record *rec)
{
	uint32_t i;

	release(l, key_of(rec)); /* a free that nobody saw */
	i = l->idle;
	if (i) {
		l->idle = l->block[i - 1].next;
	} else {
		if (!vc_vec_one(l->block, l->blocks))
			return;
		i = (uint32_t)++l->blocks;
	}
	if (!vc_map_put(&l->at, key_of(rec), i))
		return;
	l->block[i - 1] = (struct block){ rec->extra, site_of(l, rec->text), 0 };
	if (l->block[i - 1].site)
		l->site[l->block[i - 1].site - 1].bytes += rec->extra;
	l->now.allocated += rec->extra;
}

/* ---- what grows ---- */

VC_COMPARE(by_value, double, VC_ORDER(*x, *y))

static double median_slope(const uint64_t *v, unsigned n)
{
	double slope[STEPS * STEPS / 2];
	size_t k = 0;

	for (unsigned i = 0; i < n && n <= STEPS; i++)
		for (unsigned j = i + 1; j < n; j++)
			slope[k++] = ((double)v[j] - (double)v[i]) / (j - i);
	if (!k)
		return 0;
	qsort(slope, k, sizeof(*slope), by_value);
	return slope[k / 2];
}

double vc_live_left(const uint64_t *peak, const uint64_t *floor, unsigned n, uint64_t capacity,
		    double *growth)
{
	double low, last;

	*growth = 0;
	if (n < LEAST)
		return -1;
	low = median_slope(floor, n);
	*growth = median_slope(peak, n);
	if (*growth <= 0 || low <= 0) {
		*growth = 0;
		return -1;
	}
	/* the line through the middle of the steps, not the last one, which may be long */
	last = (double)peak[n / 2] + *growth * (n - 1 - n / 2);
	if (!capacity)
		return -1;
	return last >= (double)capacity ? 0 : ((double)capacity - last) / *growth;
}

static void end_step(struct vc_live *l, uint64_t now_ns)
{
	if (l->now.steps++ < WARM)
		l->n = 0;
	if (l->n == STEPS) {
		memmove(l->peak, l->peak + 1, (STEPS - 1) * sizeof(*l->peak));
		memmove(l->floor, l->floor + 1, (STEPS - 1) * sizeof(*l->floor));
		l->n--;
	}
	l->peak[l->n] = l->now.peak = l->high;
	l->floor[l->n++] = l->now.floor = l->low == UINT64_MAX ? l->now.allocated : l->low;
	l->low = UINT64_MAX;
	l->high = l->now.allocated;
	if (l->now.steps > l->now.marked) /* at the first mark a step ends that nobody saw begin */
		l->now.seconds_a_step = (double)(now_ns - l->began_ns) / SECOND /
					(double)(l->now.steps - l->now.marked);
	l->step_ns = now_ns;
	l->spans += l->now.steps % SPAN == 0;
	for (size_t i = 0; i < l->sites; i++) {
		struct site *is = &l->site[i];
		double steps = (double)(SPAN + l->now.steps % SPAN);

		if (l->now.steps % SPAN == 0) {
			is->then[1] = is->then[0];
			is->then[0] = is->bytes;
		}
		is->growth = l->spans < 2 ? 0 :
			     ((double)is->bytes - (double)is->then[1]) / steps;
	}
}

void vc_live_put(struct vc_live *l, const struct vc_record *rec)
{
	bool step = rec->kind == VC_EV_MARK && rec->flags == VC_MARK_STEP;

	if (rec->kind == VC_EV_ALLOC)
		hold(l, rec);
	else if (rec->kind == VC_EV_FREE)
		release(l, key_of(rec));
	if ((rec->kind == VC_EV_ALLOC || rec->kind == VC_EV_FREE) && rec->reserved)
		l->now.reserved = rec->reserved;
	if (rec->kind == VC_EV_DEVICE_SAMPLE) {
		l->now.free = rec->addr;
		l->now.total = rec->size;
		l->capacity = rec->addr + l->now.reserved;
	}
	if (l->now.allocated < l->low)
		l->low = l->now.allocated;
	if (l->now.allocated > l->high)
		l->high = l->now.allocated;
	if (l->now.allocated > l->now.peak_allocated)
		l->now.peak_allocated = l->now.allocated;
	if (l->now.reserved > l->now.peak_reserved)
		l->now.peak_reserved = l->now.reserved;
	if (step && !l->now.marked) { /* seconds were counted until now */
		l->now.marked = true;
		l->now.steps = l->n = 0;
		l->began_ns = rec->time_ns;
	}
	if (step || (!l->now.marked && rec->time_ns > l->step_ns + SECOND))
		end_step(l, rec->time_ns);
}

/* ---- the page ---- */

static void name_site(struct vc_journal_reader *r, uint32_t text, char *out)
{
	struct vc_journal_frame f;
	const char *file, *slash;

	if (!text || !vc_journal_frame(r, text, &f)) {
		snprintf(out, VC_LIVE_NAME, "what has no call site (--stacks py records them)");
		return;
	}
	file = vc_journal_text(r, f.file);
	slash = strrchr(file, '/');
	snprintf(out, VC_LIVE_NAME, "%.70s:%u %.40s", slash ? slash + 1 : file, f.line,
		 vc_journal_text(r, f.function));
}

/* The sites that grow most, of those that grow by a share of what all grows by. */
static void find_growing(struct vc_live *l, struct vc_journal_reader *r)
{
	l->now.growing = 0;
	for (size_t i = 0; l->now.growth > 0 && i < l->sites; i++) {
		double is = l->site[i].growth;
		uint32_t k = l->now.growing;

		if (is < l->now.growth / 16)
			continue;
		if (k < VC_LIVE_SITES)
			l->now.growing++;
		else if (l->now.site[--k].growth >= is)
			continue;
		for (; k > 0 && l->now.site[k - 1].growth < is; k--)
			l->now.site[k] = l->now.site[k - 1];
		l->now.site[k].growth = is;
		l->now.site[k].bytes = l->site[i].bytes;
		name_site(r, l->site[i].text, l->now.site[k].name);
	}
}

void vc_live_show(struct vc_live *l, struct vc_journal_reader *r)
{
	uint32_t turn;

	/* not in each step: it takes longer than a short one */
	l->now.left = vc_live_left(l->peak, l->floor, l->n, l->capacity, &l->now.growth);
	find_growing(l, r);
	if (!l->page)
		return;
	turn = atomic_load(&l->page->turn);
	atomic_store(&l->page->turn, turn + 1);
	atomic_store(&l->now.turn, turn + 1);
	memcpy(l->page, &l->now, sizeof(l->now));
	atomic_thread_fence(memory_order_release);
	atomic_store(&l->page->turn, turn + 2);
}

bool vc_live_read(const char *path, struct vc_live_page *out)
{
	const struct vc_live_page *p;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool ok = false;

	p = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*p), PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	for (int i = 0; p != MAP_FAILED && i < 1000 && !ok; i++) {
		uint32_t turn = atomic_load(&p->turn);

		memcpy(out, p, sizeof(*out));
		atomic_thread_fence(memory_order_acquire);
		ok = !(turn & 1) && turn == atomic_load(&p->turn) && out->magic == VC_LIVE_MAGIC;
	}
	if (p != MAP_FAILED)
		munmap((void *)(uintptr_t)p, sizeof(*p));
	return ok;
}
