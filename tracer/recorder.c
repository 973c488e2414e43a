/* SPDX-License-Identifier: Apache-2.0 */
/* recorder.c - see recorder.h: a shared file, a ring per thread, one number for the order of all.
 */
#define _GNU_SOURCE
#include "tracer/recorder.h"

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/retired.h"
#include "tracer/room.h"

enum { RESIDENT = 4, /* large rings that may stay in the program's memory; of more, PART each */
       PART = 16384, /* records between two looks at how many there are: 1 MiB */
       SPARE = 2, /* a ring grows where the file system has so many times as much room */
       RETRY = 4096, /* dropped records between two attempts to find room */
       OPTION_WORDS = 64 /* of eight characters */ };

static struct {
	_Atomic(struct vc_journal *) journal;
	char *text[VC_JOURNAL_CHUNKS];
	_Atomic bool configured;
	bool keyed;
	_Atomic bool refused;            /* no more attempts in this process */
	char dir[PATH_MAX];
	_Atomic uint64_t options[OPTION_WORDS]; /* a text: others read it while it changes */
	pthread_key_t key;               /* tells us that a thread has ended */
	pthread_mutex_t lock;            /* slow paths only */
	void *map[VC_JOURNAL_RINGS];
	_Atomic uint32_t large;          /* rings of the large size; read without the lock */
	uint32_t spilled;                /* those of them made because one was full */
	_Atomic uint32_t era;            /* of attaching and detaching: threads find out by it */
	_Atomic uint64_t quiet;          /* 0, or one more than the events that went by so far */
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* initial-exec: the library is preloaded, so its thread variables are at a fixed offset. */
static __thread __attribute__((tls_model("initial-exec"))) struct {
	struct vc_journal *journal; /* that the ring is in */
	struct vc_ring *ring;
	struct vc_record *slot, *held;
	uint64_t head, limit; /* head == limit: full as far as we know */
	uint64_t mask, began; /* records of the ring less one; its head when this thread came */
	bool busy;            /* between begin and commit, or in a slow path */
	uint32_t patience;    /* events to drop before another ring is looked for */
	uint32_t era;
	bool refused; /* there was no ring for this thread: asking again would cost too much */
} self;

static void publish_held(void)
{
	self.held = NULL;
	atomic_store_explicit(&self.ring->head, ++self.head, memory_order_release);
	self.limit = self.head; /* for all we know */
}

static void thread_ended(void *key)
{
	struct vc_ring *ring = self.ring;

	if (self.era != atomic_load(&g.era) || !ring)
		return;
	if (self.held)
		publish_held();
	self.ring = NULL;
	self.head = self.limit = 0;
	atomic_store_explicit(&ring->state, VC_RING_LEFT, memory_order_release);
}

static void set_options(const char *text)
{
	union { uint64_t word[OPTION_WORDS]; char text[OPTION_WORDS * 8]; } all = { { 0 } };

	snprintf(all.text, sizeof(all.text), "%s", text);
	for (size_t i = 0; i < OPTION_WORDS; i++)
		atomic_store_explicit(&g.options[i], all.word[i], memory_order_relaxed);
}

void vc_recorder_init(void)
{
	const char *dir = getenv("VC_DIR"), *options = getenv("VC_OPTIONS");

	vc_clock_init();
	if (!dir || !*dir || strlen(dir) >= sizeof(g.dir))
		return;
	snprintf(g.dir, sizeof(g.dir), "%s", dir);
	set_options(options ? options : "");
	vc_room_folder(g.dir);
	g.configured = true;
}

const char *vc_recorder_option(const char *key, char *buf, size_t n)
{
	uint64_t words[OPTION_WORDS];
	const char *text = (const char *)words;
	size_t k = strlen(key);

	for (size_t i = 0; i < OPTION_WORDS; i++)
		words[i] = atomic_load_explicit(&g.options[i], memory_order_relaxed);
	buf[0] = '\0';
	for (const char *p = text; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, key, k) == 0 && p[k] == '=') {
			size_t len = strcspn(p + k + 1, ",");

			snprintf(buf, n, "%.*s", (int)len, p + k + 1);
			return buf;
		}
	return buf;
}

bool vc_recorder_wanted(void)
{
	return g.configured && !g.refused;
}

/* The first chunk of names comes with the header. */
static bool add_chunk(struct vc_journal *j)
{
	uint32_t k = atomic_load(&j->chunks);
	void *p;

	if (k == VC_JOURNAL_CHUNKS)
		return false;
	p = vc_room_map(vc_text_size(k), k ? SPARE : 0, &j->text_at[k]);
	if (!p)
		return false;
	g.text[k] = p;
	atomic_store_explicit(&j->chunks, k + 1, memory_order_release);
	return true;
}

static bool add_ring(struct vc_journal *j, uint32_t records, unsigned spare)
{
	uint32_t n = atomic_load(&j->rings);
	struct vc_ring *r;

	if (n == VC_JOURNAL_RINGS)
		return false;
	r = &j->ring[n];
	r->records = records;
	g.map[n] = vc_room_map(vc_ring_bytes(r), spare, &r->at);
	if (!g.map[n])
		return false;
	g.large += records == VC_RING_RECORDS;
	atomic_store_explicit(&r->state, VC_RING_LEFT, memory_order_release);
	atomic_store_explicit(&j->rings, n + 1, memory_order_release);
	return true;
}

/* A small ring that runs full has the recorder store what it has, when it gets to it: two dry runs
 * of a program would differ in that. */
static uint32_t first_records(uint32_t rings)
{
	return rings < VC_RING_SMALL && !vc_clock_is_null() ? VC_RING_FIRST : VC_RING_RECORDS;
}

static struct vc_journal *create_file(void)
{
	uint64_t now = vc_clock_ns(), at;
	struct vc_journal *j;

	if (!vc_room_open(now))
		return NULL;
	j = vc_room_map(VC_JOURNAL_HEAD, 0, &at);
	if (!j || !add_chunk(j) ||
	    !(add_ring(j, first_records(0), SPARE) || add_ring(j, VC_RING_FIRST, 0))) {
		vc_room_drop();
		return NULL;
	}
	j->version = VC_JOURNAL_VERSION;
	j->header_bytes = sizeof(*j);
	j->start_mono_ns = now;
	j->start_unix_ns = vc_clock_wall_ns();
	j->pid = getpid();
	j->parent = getppid();
	atomic_store(&j->text_used, 1); /* offset 0 means "none" */
	atomic_thread_fence(memory_order_release);
	*(volatile uint64_t *)&j->magic = VC_JOURNAL_MAGIC;
	return j;
}

static void environment_fact(const char *name)
{
	const char *v = getenv(name);

	if (v && *v)
		vc_recorder_fact(name, v);
}

static void first_facts(void)
{
	char host[256] = "";
	static const char *const wanted[] = { "RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID",
		"SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
		"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "CUDA_VISIBLE_DEVICES" };

	gethostname(host, sizeof(host) - 1);
	vc_recorder_fact("host", host);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		environment_fact(wanted[i]);
	environment_fact("VRAMCAST_NULL_NAME");
}

/* The journal of this process, made on first use. Call with the lock held. */
static struct vc_journal *journal_locked(void)
{
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);

	if (j || g.refused || !g.configured)
		return j;
	if (!g.keyed && pthread_key_create(&g.key, thread_ended) == 0)
		g.keyed = true;
	j = create_file();
	g.refused = !j;
	atomic_store_explicit(&g.journal, j, memory_order_release);
	if (j)
		first_facts();
	return j;
}

bool vc_recorder_open(void)
{
	if (atomic_load_explicit(&g.journal, memory_order_acquire))
		return true;
	pthread_mutex_lock(&g.lock);
	struct vc_journal *j = journal_locked();
	pthread_mutex_unlock(&g.lock);
	return j != NULL;
}

/* The emptiest ring of at least so many records that nobody writes to any more; -1: none.
 * `half`: it must be at least half empty, because what it holds stays in front. */
static int find_left(struct vc_journal *j, uint32_t n, uint32_t records, bool half)
{
	uint64_t best = 0;
	int found = -1;

	for (uint32_t i = 0; i < n; i++) {
		const struct vc_ring *r = &j->ring[i];

		if (r->records < records ||
		    atomic_load_explicit(&r->state, memory_order_acquire) != VC_RING_LEFT)
			continue;
		uint64_t used = atomic_load(&r->head) - atomic_load(&r->tail);
		uint64_t empty = (r->records - used) * VC_RING_RECORDS / r->records;
		if (empty > best && (!half || empty > VC_RING_RECORDS / 2)) {
			best = empty;
			found = (int)i;
		}
	}
	return found;
}

/* For a thread that has none yet; -1: none. */
static int first_ring(struct vc_journal *j)
{
	uint32_t n = atomic_load(&j->rings);
	int i = find_left(j, n, 0, 1);

	if (i >= 0)
		return i;
	if (add_ring(j, first_records(n), SPARE) ||
	    add_ring(j, VC_RING_FIRST, 0))
		return (int)n;
	return find_left(j, n, 0, 0);
}

/* For a thread whose own is full: a larger one, as long as there are larger ones; where room is
 * short, one that is less large. */
static int next_ring(struct vc_journal *j, uint32_t records)
{
	uint32_t n = atomic_load(&j->rings);
	bool again = records == VC_RING_RECORDS;
	uint32_t wanted = again || records > VC_RING_RECORDS / VC_RING_GROWTH ? VC_RING_RECORDS :
			  records * VC_RING_GROWTH;
	int i = find_left(j, n, wanted, 1);

	if (i >= 0 || (again && g.spilled == VC_JOURNAL_SPILL))
		return i;
	for (; wanted > records || again; wanted /= 2) {
		if (add_ring(j, wanted, SPARE)) {
			g.spilled += again;
			return (int)n;
		}
		if (again)
			break;
	}
	return -1;
}

/* What was written stays in the file; only the recorded process maps it no more. */
static void forget_pages(struct vc_record *slot, uint64_t mask)
{
	madvise(slot, (mask + 1) * sizeof(*slot), MADV_DONTNEED);
}

static bool attach_thread(struct vc_journal *j, int i)
{
	if (i < 0)
		return false;
	self.journal = j;
	self.ring = &j->ring[i];
	self.slot = g.map[i];
	self.mask = self.ring->records - 1;
	self.head = self.began = atomic_load(&self.ring->head);
	self.limit = self.head; /* for all we know */
	atomic_store(&self.ring->thread, (uint32_t)syscall(SYS_gettid));
	atomic_store_explicit(&self.ring->state, VC_RING_USED, memory_order_release);
	if (g.keyed)
		pthread_setspecific(g.key, self.ring);
	return true;
}

/* The ring is full because it is small, or because the recorder gets no processor: the thread goes
 * on in another one. */
static bool spill(void)
{
	struct vc_ring *full = self.ring;
	struct vc_record *slot = self.slot;
	uint64_t mask = self.mask;
	bool ok;

	if (self.patience && self.patience--)
		return false; /* there was none a moment ago */
	pthread_mutex_lock(&g.lock);
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);
	ok = j && atomic_load(&j->state) != VC_JOURNAL_CLOSED &&
	     attach_thread(j, next_ring(j, full->records));
	if (ok)
		atomic_store_explicit(&full->state, VC_RING_LEFT, memory_order_release);
	pthread_mutex_unlock(&g.lock);
	if (ok)
		forget_pages(slot, mask);
	else
		self.patience = RETRY;
	return ok;
}

/* Where the ring ends: what the recorder has not stored yet must stay. */
static uint64_t end_of_ring(void)
{
	return atomic_load_explicit(&self.ring->tail, memory_order_acquire) + self.mask + 1;
}

static bool make_room_in_ring(void)
{
	if (self.held)
		publish_held();
	if (self.mask + 1 < VC_RING_RECORDS && self.head - self.began > self.mask && !spill())
		self.began = self.head; /* it stays small until it is full once more */
	if (self.head == end_of_ring() && !spill()) {
		atomic_fetch_add_explicit(&self.ring->dropped, 1, memory_order_relaxed);
		return false;
	}
	if (g.large > RESIDENT && self.mask + 1 == VC_RING_RECORDS)
		forget_pages(self.slot, self.mask);
	self.limit = end_of_ring();
	if (self.limit - self.head > PART)
		self.limit = self.head + PART;
	return true;
}

/* Until the heap of a program that was found running has been read, its events only count. */
static bool passes_by(void)
{
	uint64_t n = atomic_load(&g.quiet);

	while (n && !atomic_compare_exchange_weak(&g.quiet, &n, n + 1))
		;
	return n != 0;
}

static void begin_anew(void)
{
	self.journal = NULL;
	self.ring = NULL;
	self.slot = self.held = NULL;
	self.head = self.limit = 0;
	self.patience = 0;
	self.refused = false;
	self.era = atomic_load(&g.era);
}

/* The first record of a thread, or a ring that looks full. */
static __attribute__((noinline, cold)) bool make_room(void)
{
	if (self.era != atomic_load(&g.era))
		begin_anew();
	if (passes_by())
		return false;
	if (self.ring)
		return make_room_in_ring();
	if (self.refused)
		vc_recorder_lost(1);
	if (self.refused || !g.configured)
		return false;
	pthread_mutex_lock(&g.lock);
	struct vc_journal *j = journal_locked();
	bool ok = j && atomic_load(&j->state) != VC_JOURNAL_CLOSED &&
		  attach_thread(j, first_ring(j));
	pthread_mutex_unlock(&g.lock);
	self.refused = !ok;
	if (!ok)
		vc_recorder_lost(1);
	return ok && make_room_in_ring();
}

struct vc_record *vc_record_begin(void)
{
	if (self.busy) /* a signal handler in the middle of a record */
		return NULL;
	self.busy = true;
	if ((self.head == self.limit ||
	     self.era != atomic_load_explicit(&g.era, memory_order_relaxed)) && !make_room()) {
		self.busy = false;
		return NULL;
	}
	struct vc_record *r = &self.slot[self.head & self.mask];

	/* The number is taken before the caller acts on the memory: see vc_record_commit. */
	r->seq = 0;
	r->text = 0;
	r->flags = 0;
	return r;
}

void vc_record_commit(struct vc_record *r)
{
	/* Numbers have no holes: only a record that will be published takes one. */
	r->seq = atomic_fetch_add_explicit(&self.journal->seq, 1, memory_order_relaxed) + 1;
	atomic_store_explicit(&self.ring->head, ++self.head, memory_order_release);
	self.busy = false;
}

bool vc_record_put(struct vc_record what)
{
	struct vc_record *r = vc_record_begin();

	if (!r)
		return false;
	if (!what.time_ns)
		what.time_ns = vc_clock_ns();
	*r = what;
	vc_record_commit(r);
	return true;
}

/* Whoever reads waits for the number: common/journal.h, enum vc_journal_way. */
void vc_record_hold(struct vc_record *r)
{
	r->seq = atomic_fetch_add_explicit(&self.journal->seq, 1, memory_order_relaxed) + 1;
	self.held = r;
	self.limit = self.head; /* so that the next one finds out */
	self.busy = false;
}

bool vc_record_release(uint32_t text)
{
	if (!self.held || self.busy)
		return false;
	self.held->text = text;
	publish_held();
	return true;
}

/* Makes chunks up to that one; false: no room. */
static bool reach_chunk(struct vc_journal *j, uint32_t k)
{
	bool ok = true;

	if (k < atomic_load_explicit(&j->chunks, memory_order_acquire))
		return true;
	pthread_mutex_lock(&g.lock);
	while (ok && atomic_load(&j->chunks) <= k)
		ok = add_chunk(j);
	pthread_mutex_unlock(&g.lock);
	return ok;
}

uint32_t vc_recorder_text(const char *s, size_t n)
{
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);
	uint32_t used, at, k;
	char *chunk;

	if (!j || !n)
		return 0;
	if (n > 65536)
		n = 65536;
	used = atomic_load(&j->text_used);
	do { /* whole in one chunk, and not in its last byte */
		at = used;
		while (at + n + 1 >= vc_text_start(vc_text_chunk(at) + 1))
			at = vc_text_start(vc_text_chunk(at) + 1);
		k = vc_text_chunk(at);
		if (k >= VC_JOURNAL_CHUNKS || !reach_chunk(j, k)) {
			atomic_fetch_add(&j->textless, 1);
			return 0;
		}
	} while (!atomic_compare_exchange_weak(&j->text_used, &used, (uint32_t)(at + n + 1)));
	chunk = g.text[k];
	if (!chunk) /* the recording ends at this moment */
		return 0;
	at -= vc_text_start(k);
	memcpy(chunk + at, s, n);
	chunk[at + n] = '\0';
	return at + vc_text_start(k);
}

const char *vc_recorder_stored(uint32_t offset)
{
	uint32_t k = vc_text_chunk(offset);

	return offset && g.text[k] ? g.text[k] + (offset - vc_text_start(k)) : "";
}

void vc_recorder_fact(const char *key, const char *value)
{
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);

	if (j)
		vc_journal_put_fact(j, key, value);
}

void vc_recorder_capability(enum vc_capability c, enum vc_how how)
{
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);

	if (j)
		atomic_store(&j->how[c], (uint8_t)how);
}

enum vc_how vc_recorder_how(enum vc_capability c)
{
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);

	return j ? (enum vc_how)atomic_load(&j->how[c]) : VC_HOW_ABSENT;
}

void vc_recorder_lost(uint64_t n)
{
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);

	if (j)
		atomic_fetch_add(&j->ringless, n);
	else if (g.refused)
		vc_room_lost(n);
}

bool vc_recorder_mine(void)
{
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);

	return j && j->pid == getpid();
}

void vc_recorder_end(void)
{
	struct vc_journal *j = atomic_load_explicit(&g.journal, memory_order_acquire);
	uint32_t live = VC_JOURNAL_LIVE;

	if (j)
		atomic_compare_exchange_strong(&j->state, &live, VC_JOURNAL_ENDED);
}

/* ---- a program that was found running ---- */

bool vc_recorder_attach(const char *dir, const char *options)
{
	bool ok;

	pthread_mutex_lock(&g.lock);
	ok = !g.configured && strlen(dir) < sizeof(g.dir);
	if (ok) {
		snprintf(g.dir, sizeof(g.dir), "%s", dir);
		set_options(options);
		vc_room_folder(g.dir);
		g.refused = false;
		atomic_store(&g.quiet, 1);
		atomic_fetch_add(&g.era, 1);
		g.configured = true;
	}
	pthread_mutex_unlock(&g.lock);
	return ok && vc_recorder_open();
}

uint64_t vc_recorder_passed(void)
{
	return atomic_load(&g.quiet);
}

/* The heap has the first numbers. Nobody else takes one while it is quiet. */
bool vc_recorder_live(const struct vc_record *heap, size_t n, uint64_t passed)
{
	struct vc_journal *j = atomic_load(&g.journal);
	uint64_t now = vc_clock_ns();

	atomic_store(&j->seq, n);
	if (!atomic_compare_exchange_strong(&g.quiet, &passed, 0)) {
		atomic_store(&j->seq, 0);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		struct vc_record *r = vc_record_begin();

		for (int wait = 0; !r && wait < 1000; wait++) { /* for the recorder to read */
			usleep(1000);
			r = vc_record_begin();
		}
		if (!r)
			break;
		*r = heap[i];
		r->time_ns = now;
		r->seq = i + 1;
		atomic_store_explicit(&self.ring->head, ++self.head, memory_order_release);
		self.busy = false;
	}
	return true;
}

void vc_recorder_detach(void)
{
	struct vc_journal *j;

	vc_recorder_end();
	pthread_mutex_lock(&g.lock);
	j = atomic_load(&g.journal);
	g.configured = false;
	atomic_store(&g.journal, NULL);
	atomic_fetch_add(&g.era, 1);
	atomic_store(&g.quiet, 0);
	vc_retired_reclaim();
	for (uint32_t i = 0; j && i < VC_JOURNAL_RINGS && g.map[i]; i++)
		vc_retired_put(g.map[i], vc_ring_bytes(&j->ring[i]));
	for (uint32_t i = 0; j && i < VC_JOURNAL_CHUNKS && g.text[i]; i++)
		vc_retired_put(g.text[i], vc_text_size(i));
	if (j)
		vc_retired_put(j, VC_JOURNAL_HEAD);
	memset(g.map, 0, sizeof(g.map));
	memset(g.text, 0, sizeof(g.text));
	g.large = g.spilled = 0;
	vc_room_forget();
	pthread_mutex_unlock(&g.lock);
}

void vc_recorder_before_fork(void)
{
	pthread_mutex_lock(&g.lock);
}

/* The mappings are shared with the parent: a child that wrote would spoil the parent's journal. */
void vc_recorder_after_fork(bool child)
{
	struct vc_journal *j = atomic_load(&g.journal);

	if (child)
		g.refused = false; /* it tries for itself */
	if (child && j) {
		for (uint32_t i = 0; i < VC_JOURNAL_RINGS && g.map[i]; i++)
			munmap(g.map[i], vc_ring_bytes(&j->ring[i]));
		for (uint32_t i = 0; i < VC_JOURNAL_CHUNKS && g.text[i]; i++)
			munmap(g.text[i], vc_text_size(i));
		atomic_store(&g.journal, NULL);
		munmap(j, VC_JOURNAL_HEAD);
		memset(g.map, 0, sizeof(g.map));
		memset(g.text, 0, sizeof(g.text));
		g.large = g.spilled = 0;
		memset(&self, 0, sizeof(self));
		self.era = atomic_load(&g.era);
		if (g.keyed)
			pthread_setspecific(g.key, NULL);
		vc_room_forget();
	} else if (child) {
		self.refused = false;
	}
	pthread_mutex_unlock(&g.lock);
}
