/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c - what data is really there: small copies and fills are made, large ones dropped.
 *
 * Host memory always gets defined contents: a large copy to the host reads as zeros. Pinned host
 * memory is real memory. */
#define _GNU_SOURCE
#include "nullgpu/null.h"
#include "nullgpu/space.h"

#include <pthread.h>
#include <sys/mman.h>

#define HOST_PAGE 4096ull
/* Pinned memory appears in recordings: it lies at a fixed place, in the order of requests, and
 * places are not used again. Children that inherit it take what lies behind. */
#define HOST_PLACE 0x2e0000000000ull
#define HOST_SPAN  0x008000000000ull

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vc_ranges pinned; /* tag 1: ours to unmap, 0: registered by the program */

/* The python side of the values mode knows how many results an operation has before PyTorch
 * asks the device for the count; the next copy of that width answers with it. */
static __thread uint64_t told_count;
static __thread bool has_told_count;

VC_SHARED void vc_null_count_is(uint64_t count);
VC_SHARED int vc_null_count_unused(void);

void vc_null_count_is(uint64_t count)
{
	told_count = count;
	has_told_count = true;
}

int vc_null_count_unused(void)
{
	bool unused = has_told_count;
	has_told_count = false;
	return unused;
}

static void (*before_read)(const void *from, size_t size);

void vc_null_on_read(void (*fetch)(const void *from, size_t size))
{
	__atomic_store_n(&before_read, fetch, __ATOMIC_RELEASE);
}

void vc_null_settle(const void *from, size_t size)
{
	vc_null_wash(from, size);
	void (*fetch)(const void *, size_t) = __atomic_load_n(&before_read, __ATOMIC_ACQUIRE);
	if (fetch)
		fetch(from, size);
}

/* On the device with the copy (`to`), or read on the host. */
static void pass_mark(const void *to, const void *from, size_t size)
{
	const char *what = from ? vc_null_is_made_up(from, size) : NULL;
	if (to)
		vc_null_made_up(to, size, what);
	else if (what)
		vc_null_read_made_up(what);
}

void vc_null_copy(void *to, const void *from, size_t size)
{
	if (!size || !to || !from || to == from)
		return;
	bool to_device = vc_null_owner((uint64_t)to) >= 0;
	bool from_device = vc_null_owner((uint64_t)from) >= 0;
	if (has_told_count && from_device && !to_device && (size == 4 || size == 8)) {
		has_told_count = false;
		memcpy(to, &told_count, size);
	} else if (size <= vc_null_card()->copy_max || (!to_device && !from_device)) {
		if (from_device)
			vc_null_settle(from, size);
		if (to_device)
			vc_null_wash(to, size);
		memmove(to, from, size);
		pass_mark(to_device ? to : NULL, from_device ? from : NULL, size);
	} else if (!to_device) {
		memset(to, 0, size);
	}
}

void vc_null_fill(void *to, const void *value, size_t width, size_t count)
{
	bool to_device = vc_null_owner((uint64_t)to) >= 0;
	if (to_device && width * count > vc_null_card()->copy_max)
		return;
	if (to_device) {
		vc_null_wash(to, width * count);
		vc_null_made_up(to, width * count, NULL);
	}
	for (size_t i = 0; i < count; i++)
		memcpy((char *)to + i * width, value, width);
}

/* What a range of `pinned` is: the program's own, ours, or managed, which may lie on the card but
 * makes room there for whatever else is asked for. */
enum { REGISTERED, PINNED, MANAGED };

static void tell_host(enum vc_null_activity_kind kind, uint64_t tag, const void *p, uint64_t size)
{
	if (vc_null_heard())
		vc_null_tell(&(struct vc_null_activity){ .kind = kind, .address = (uint64_t)p,
			.size = size, .memory = tag == MANAGED ? 3 : 1,
			.device = (uint32_t)vc_null_current() });
}

/* The host of the card may have more memory than this one: only what is written takes some. */
static void *host_memory(size_t size)
{
	static uint64_t used;
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	uint64_t at = __atomic_fetch_add(&used, size + HOST_PAGE, __ATOMIC_SEQ_CST);
	void *p = MAP_FAILED;
	if (at + size <= HOST_SPAN)
		p = mmap((void *)(HOST_PLACE + at), size, PROT_READ | PROT_WRITE,
			 flags | MAP_FIXED_NOREPLACE, -1, 0);
	return p == MAP_FAILED ? mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0) : p;
}

static int host_alloc(size_t size, uint64_t tag, void **out)
{
	size = (size + HOST_PAGE - 1) / HOST_PAGE * HOST_PAGE;
	if (!size)
		size = HOST_PAGE;
	void *p = host_memory(size);
	*out = NULL;
	if (p == MAP_FAILED)
		return VC_NULL_MEMORY;
	pthread_mutex_lock(&lock);
	int rc = vc_ranges_add(&pinned, (uint64_t)p, size, tag);
	pthread_mutex_unlock(&lock);
	if (rc) {
		munmap(p, size);
		return VC_NULL_MEMORY;
	}
	*out = p;
	tell_host(VC_NULL_ALLOC, tag, p, size);
	return 0;
}

int vc_null_host_alloc(size_t size, void **out)
{
	return host_alloc(size, PINNED, out);
}

int vc_null_managed_alloc(size_t size, void **out)
{
	return host_alloc(size, MANAGED, out);
}

static int forget_pinned(void *p, uint64_t tag, uint64_t *size)
{
	pthread_mutex_lock(&lock);
	long i = vc_ranges_find(&pinned, (uint64_t)p);
	bool known = i >= 0 && pinned.v[i].at == (uint64_t)p && pinned.v[i].tag == tag;
	if (known) {
		*size = pinned.v[i].size;
		vc_ranges_remove(&pinned, (size_t)i);
	}
	pthread_mutex_unlock(&lock);
	return known ? 0 : VC_NULL_INVALID;
}

int vc_null_host_free(void *p)
{
	uint64_t size = 0;
	if (!p)
		return 0;
	uint64_t tag = vc_null_is_managed(p) ? MANAGED : PINNED;
	if (forget_pinned(p, tag, &size))
		return VC_NULL_INVALID;
	munmap(p, size);
	tell_host(VC_NULL_FREE, tag, p, size);
	return 0;
}

int vc_null_host_register(void *p, size_t size)
{
	pthread_mutex_lock(&lock);
	int rc = vc_ranges_add(&pinned, (uint64_t)p, size, REGISTERED);
	pthread_mutex_unlock(&lock);
	return rc ? VC_NULL_MEMORY : 0;
}

int vc_null_host_unregister(void *p)
{
	uint64_t size;
	return forget_pinned(p, REGISTERED, &size);
}

bool vc_null_is_host(const void *p)
{
	pthread_mutex_lock(&lock);
	bool known = vc_ranges_find(&pinned, (uint64_t)p) >= 0;
	pthread_mutex_unlock(&lock);
	return known;
}

bool vc_null_is_managed(const void *p)
{
	pthread_mutex_lock(&lock);
	long i = vc_ranges_find(&pinned, (uint64_t)p);
	bool managed = i >= 0 && pinned.v[i].tag == MANAGED;
	pthread_mutex_unlock(&lock);
	return managed;
}
