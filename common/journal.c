/* SPDX-License-Identifier: Apache-2.0 */
/* journal.c - see journal.h: merges the rings of a journal by the number that orders all records.
 */
#define _GNU_SOURCE
#include "common/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/vec.h"

struct ring { const struct vc_record *slot; uint64_t mask; };

/* No descriptor is kept, so that thousands of processes can be recorded at the same time. */
struct vc_journal_reader {
	char *path;
	ino_t inode;
	bool writable;
	struct vc_journal *j;
	const char *text[VC_JOURNAL_CHUNKS];
	uint32_t chunks;        /* that are mapped */
	struct ring ring[VC_JOURNAL_RINGS];
	uint64_t at[VC_JOURNAL_RINGS]; /* next record of each ring */
	uint64_t seq;           /* largest number handed out */
	uint64_t late[VC_JOURNAL_LATE]; /* smaller ones that were not there; 0: none */
	uint64_t lates;
	uint32_t rings, last;   /* rings mapped; the one the last record came from */
};

static int map_header(struct vc_journal_reader *r, int fd, struct vc_error *err)
{
	struct vc_journal head;
	struct stat st;
	void *p;

	if (fstat(fd, &st) < 0 || pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    head.magic != VC_JOURNAL_MAGIC)
		return vc_fail(err, VC_EFORMAT, "%s: not a recording journal", r->path);
	if (head.version != VC_JOURNAL_VERSION || head.header_bytes != sizeof(head))
		return vc_fail(err, VC_ENOSUP, "%s: a journal of another version of vramcast",
			       r->path);
	p = mmap(NULL, sizeof(head), r->writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		 fd, 0);
	if (p == MAP_FAILED)
		return vc_fail(err, VC_EIO, "%s: cannot map: %s", r->path, strerror(errno));
	r->j = p;
	r->inode = st.st_ino;
	return 0;
}

struct vc_journal_reader *vc_journal_open(const char *path, bool writable, struct vc_error *err)
{
	struct vc_journal_reader *r = calloc(1, sizeof(*r));
	int fd = -1, failed;

	if (r)
		r->path = strdup(path);
	if (!r || !r->path) {
		vc_nomem(err, "a journal");
		free(r);
		return NULL;
	}
	r->writable = writable;
	fd = open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	failed = fd < 0 ? vc_fail(err, VC_EIO, "cannot open %s: %s", path, strerror(errno)) :
			  map_header(r, fd, err);
	if (fd >= 0)
		close(fd);
	if (failed < 0) {
		vc_journal_close(r);
		return NULL;
	}
	return r;
}

void vc_journal_close(struct vc_journal_reader *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->rings; i++)
		munmap((void *)r->ring[i].slot, (r->ring[i].mask + 1) * sizeof(struct vc_record));
	for (uint32_t i = 0; i < r->chunks; i++)
		munmap((void *)r->text[i], vc_text_size(i));
	if (r->j)
		munmap(r->j, sizeof(*r->j));
	VC_FREE(r->path, r);
}

struct vc_journal *vc_journal_header(struct vc_journal_reader *r)
{
	return r->j;
}

/* A part of the file, which may have grown since the last look. NULL: it is not there (a cut file),
 * or there is no descriptor for it at the moment. */
static void *map_part(const struct vc_journal_reader *r, uint64_t at, uint64_t bytes)
{
	int fd = open(r->path, O_RDONLY | O_CLOEXEC);
	void *p = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && at % 4096 == 0 && at <= (uint64_t)st.st_size &&
	    bytes <= (uint64_t)st.st_size - at)
		p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)at);
	if (fd >= 0)
		close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* The chunk that holds the offset, and the bytes from there to its end; NULL: none does. */
static const char *text_at(struct vc_journal_reader *r, uint32_t offset, uint32_t *left)
{
	uint32_t n = atomic_load_explicit(&r->j->chunks, memory_order_acquire);
	uint32_t k = vc_text_chunk(offset);

	for (; r->chunks <= k && r->chunks < n && n <= VC_JOURNAL_CHUNKS; r->chunks++) {
		uint32_t size = vc_text_size(r->chunks);
		const char *p = map_part(r, r->j->text_at[r->chunks], size);

		if (!p)
			return NULL;
		r->text[r->chunks] = p;
	}
	if (!offset || k >= r->chunks ||
	    offset >= atomic_load_explicit(&r->j->text_used, memory_order_acquire))
		return NULL;
	*left = vc_text_start(k + 1) - offset;
	return r->text[k] + (offset - vc_text_start(k));
}

void vc_journal_hold(struct vc_journal_reader *r)
{
	uint32_t left, used = atomic_load_explicit(&r->j->text_used, memory_order_acquire);

	text_at(r, used ? used - 1 : 0, &left);
}

const char *vc_journal_text(struct vc_journal_reader *r, uint32_t offset)
{
	uint32_t left;
	const char *s = text_at(r, offset, &left);

	return s && s[left - 1] == '\0' ? s : "";
}

bool vc_journal_frame(struct vc_journal_reader *r, uint32_t offset, struct vc_journal_frame *out)
{
	uint32_t left;
	const char *p = text_at(r, offset, &left);

	if (!p || left < sizeof(*out))
		return false;
	memcpy(out, p, sizeof(*out));
	return out->caller < offset; /* so callers never go round in a circle */
}

/* The value of the which-th line with that key, the last one for SIZE_MAX. */
static const char *find_fact(struct vc_journal_reader *r, const char *key, size_t which, char *buf,
			     size_t n)
{
	uint32_t used = atomic_load_explicit(&r->j->facts_used, memory_order_acquire);
	const char *p = r->j->facts, *end, *found = NULL;
	size_t k = strlen(key), seen = 0;

	end = p + (used < VC_JOURNAL_FACTS ? used : VC_JOURNAL_FACTS);
	while (p < end) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));

		if (!stop)
			break;
		if ((size_t)(stop - p) > k && memcmp(p, key, k) == 0 && p[k] == ' ' &&
		    (which == SIZE_MAX || seen++ == which)) {
			snprintf(buf, n, "%.*s", (int)(stop - p - k - 1), p + k + 1);
			found = buf;
		}
		p = stop + 1;
	}
	return found;
}

const char *vc_journal_fact(struct vc_journal_reader *r, const char *key, char *buf, size_t n)
{
	return find_fact(r, key, SIZE_MAX, buf, n);
}

const char *vc_journal_note(struct vc_journal_reader *r, size_t i, char *buf, size_t n)
{
	return find_fact(r, "note", i, buf, n);
}

/* Rings appear while the program runs. One whose file part is missing (a cut file) stays out. */
static void map_new_rings(struct vc_journal_reader *r)
{
	uint32_t n = atomic_load_explicit(&r->j->rings, memory_order_acquire);

	if (n == r->rings || n > VC_JOURNAL_RINGS)
		return;
	for (; r->rings < n; r->rings++) {
		const struct vc_ring *is = &r->j->ring[r->rings];
		uint32_t records = is->records;
		void *p = NULL;

		if (records >= VC_RING_FIRST && records <= VC_RING_RECORDS &&
		    !(records & (records - 1)))
			p = map_part(r, is->at, records * sizeof(struct vc_record));
		if (!p)
			return;
		r->ring[r->rings] = (struct ring){ p, records - 1 };
		/* a damaged head would be read for ever: see head_of */
		r->at[r->rings] = atomic_load_explicit(&is->tail, memory_order_relaxed);
	}
}

/* A head that no writer can have reached is damage: the ring counts as empty. */
static uint64_t head_of(const struct vc_journal_reader *r, uint32_t i)
{
	uint64_t head = atomic_load_explicit(&r->j->ring[i].head, memory_order_acquire);

	return head - r->at[i] <= r->ring[i].mask + 1 ? head : r->at[i];
}

static const struct vc_record *record_at(const struct vc_journal_reader *r, uint32_t i)
{
	return &r->ring[i].slot[r->at[i] & r->ring[i].mask];
}

static void read_heads(const struct vc_journal_reader *r, uint64_t *head)
{
	for (uint32_t i = 0; i < r->rings; i++)
		head[i] = head_of(r, i);
}

static uint64_t next_seq(const struct vc_journal_reader *r, uint32_t i)
{
	return record_at(r, i)->seq;
}

/* The ring whose next record has the smallest number; -1 when all are empty. */
static int earliest(const struct vc_journal_reader *r, const uint64_t *head)
{
	uint64_t best = UINT64_MAX;
	int ring = -1;

	for (uint32_t i = 0; i < r->rings; i++)
		if (r->at[i] != head[i] && next_seq(r, i) < best) {
			best = next_seq(r, i);
			ring = (int)i;
		}
	return ring;
}

static uint64_t *late(struct vc_journal_reader *r, uint64_t seq)
{
	for (size_t i = 0; i < VC_JOURNAL_LATE; i++)
		if (r->late[i] == seq)
			return &r->late[i];
	return NULL;
}

/* Go on at `seq` without the numbers before it. */
static bool go_on(struct vc_journal_reader *r, uint64_t seq)
{
	size_t room = 0;

	for (size_t i = 0; i < VC_JOURNAL_LATE; i++)
		room += !r->late[i];
	if (seq - r->seq - 1 > room)
		return false;
	for (uint64_t n = r->seq + 1; n < seq; n++)
		*late(r, 0) = n;
	r->lates += seq - r->seq - 1;
	return true;
}

/* May the record of that number be next? */
static bool take(struct vc_journal_reader *r, uint64_t seq, enum vc_journal_way way,
		 uint64_t *missing)
{
	if (seq <= r->seq) {
		uint64_t *was = late(r, seq);

		if (was && seq) {
			*was = 0;
			r->lates--;
		}
		return true;
	}
	if (way == VC_JOURNAL_WAIT || (way == VC_JOURNAL_HURRY && !go_on(r, seq)))
		return seq == r->seq + 1;
	if (way == VC_JOURNAL_DEAD && r->seq)
		*missing += seq - r->seq - 1;
	return true;
}

/* Those that were waited for will not come. */
static void give_up(struct vc_journal_reader *r, uint64_t *missing)
{
	for (size_t i = 0; i < VC_JOURNAL_LATE; i++) {
		*missing += r->late[i] != 0;
		r->late[i] = 0;
	}
	r->lates = 0;
}

/* Heads are read twice. What depends on a record was published after it: so whatever the records
 * before `sure` depend on lies before `head`, and a late one is found there in time. */
size_t vc_journal_next(struct vc_journal_reader *r, struct vc_record *out, size_t cap,
		       enum vc_journal_way way, uint64_t *missing)
{
	uint64_t sure[VC_JOURNAL_RINGS], head[VC_JOURNAL_RINGS];
	size_t n = 0;

	map_new_rings(r);
	read_heads(r, sure);
	atomic_thread_fence(memory_order_seq_cst);
	read_heads(r, head);
	while (n < cap) {
		uint32_t i = r->last;

		if (r->lates || i >= r->rings || r->at[i] >= sure[i] ||
		    next_seq(r, i) != r->seq + 1) {
			int found = earliest(r, head);

			if (found < 0)
				break;
			i = (uint32_t)found;
			if (r->at[i] >= sure[i] && next_seq(r, i) > r->seq)
				break; /* next time */
			if (!take(r, next_seq(r, i), way, missing))
				break; /* somebody is between taking a number and publishing */
		}
		out[n++] = *record_at(r, i);
		r->at[i]++;
		if (out[n - 1].seq > r->seq)
			r->seq = out[n - 1].seq;
		r->last = i;
	}
	if (!n && way == VC_JOURNAL_DEAD)
		give_up(r, missing);
	return n;
}

void vc_journal_commit(struct vc_journal_reader *r, uint64_t bytes)
{
	uint32_t next = !atomic_load(&r->j->stored_at);

	if (!r->writable)
		return;
	atomic_store(&r->j->stored[next].bytes, bytes);
	atomic_store(&r->j->stored[next].seq, r->seq);
	for (size_t i = 0; i < VC_JOURNAL_LATE; i++)
		atomic_store_explicit(&r->j->stored[next].late[i], r->late[i],
				      memory_order_relaxed);
	atomic_store(&r->j->stored_at, next);
	for (uint32_t i = 0; i < r->rings; i++)
		atomic_store_explicit(&r->j->ring[i].tail, r->at[i], memory_order_release);
}

uint64_t vc_journal_stored(struct vc_journal_reader *r)
{
	uint32_t at = atomic_load(&r->j->stored_at) & 1;

	r->seq = atomic_load(&r->j->stored[at].seq);
	for (size_t i = 0; i < VC_JOURNAL_LATE; i++)
		r->lates += (r->late[i] = atomic_load(&r->j->stored[at].late[i])) != 0;
	map_new_rings(r);
	for (uint32_t i = 0; i < r->rings; i++) { /* the tails may not have been moved in time */
		uint64_t head = head_of(r, i);

		while (r->at[i] != head && next_seq(r, i) <= r->seq && !late(r, next_seq(r, i)))
			r->at[i]++;
	}
	return atomic_load(&r->j->stored[at].bytes);
}

/* A lock can be lost while the writer lives (a program that closes all descriptors), so an
 * unlocked journal counts as left only when the process no longer maps it. */
bool vc_journal_alive(struct vc_journal_reader *r)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[64], line[8192]; /* a path in it */
	bool found = false;
	int fd = open(r->path, O_RDONLY | O_CLOEXEC), asked;
	FILE *f;

	asked = fd < 0 ? -1 : fcntl(fd, F_GETLK, &lock);
	if (fd >= 0)
		close(fd);
	if (asked == 0 && lock.l_type != F_UNLCK)
		return true;
	snprintf(path, sizeof(path), "/proc/%ld/maps", (long)r->j->pid);
	f = fopen(path, "re");
	if (!f)
		return errno == EMFILE || errno == ENFILE; /* nobody can say */
	while (!found && fgets(line, sizeof(line), f)) {
		unsigned long inode = 0;

		found = sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == r->inode &&
			strstr(line, ".vcj");
	}
	fclose(f);
	return found;
}

uint64_t vc_journal_dropped(struct vc_journal_reader *r)
{
	uint64_t sum = atomic_load(&r->j->ringless);

	for (uint32_t i = 0; i < r->rings; i++)
		sum += atomic_load(&r->j->ring[i].dropped);
	return sum;
}

/* As if every ring were a large one. */
static uint64_t scaled(const struct vc_journal_reader *r, uint32_t i, uint64_t n)
{
	return n * (VC_RING_RECORDS / (r->ring[i].mask + 1));
}

uint64_t vc_journal_pressure(struct vc_journal_reader *r)
{
	uint64_t most = 0;

	map_new_rings(r);
	for (uint32_t i = 0; i < r->rings; i++) {
		/* Tail first: it never passes a head read later. */
		uint64_t tail = atomic_load_explicit(&r->j->ring[i].tail, memory_order_acquire);
		uint64_t head = atomic_load_explicit(&r->j->ring[i].head, memory_order_acquire);
		uint64_t waits = scaled(r, i, head - tail);

		if (waits > most)
			most = waits;
	}
	return most;
}

uint64_t vc_journal_uncommitted(struct vc_journal_reader *r)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < r->rings; i++) {
		uint64_t n = scaled(r, i, r->at[i] - atomic_load_explicit(&r->j->ring[i].tail,
									  memory_order_relaxed));

		if (n > most)
			most = n;
	}
	return most;
}
