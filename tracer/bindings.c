/* SPDX-License-Identifier: Apache-2.0 */
/* bindings.c - see bindings.h.
 *
 * A library calls a function of another one through a slot of its global offset table, which the
 * dynamic linker has filled in. The slots of functions that this library exports too are found by
 * the relocations that name them (System V ABI, x86-64: JUMP_SLOT and GLOB_DAT). Libraries that
 * are loaded later are not seen. */
#define _GNU_SOURCE
#include "tracer/bindings.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracer/torch.h"

enum { NAMES = 64 };

struct binding { void *_Atomic *slot; void *before; bool sealed; /* read-only since start-up */ };

/* What the dynamic section of an object says. */
struct object {
	uintptr_t base, sealed, sealed_end;
	const ElfW(Sym) *symbol;
	const char *string;
	const ElfW(Rela) *table[2]; /* of calls; of data */
	size_t entries[2];
	const uint32_t *hash;
};

static struct {
	pthread_mutex_t lock;
	const char *name[NAMES]; /* functions of ours that others may call */
	void *function[NAMES];
	size_t names;
	bool cupti; /* its functions, too */
	struct binding *binding; /* mmap'ed */
	size_t bindings, room;
} g = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The dynamic linker has added the base to addresses of most objects, not of the kernel's. */
static const void *address(const struct object *o, uintptr_t p)
{
	return (const void *)(p < o->base ? p + o->base : p);
}

static bool read_object(const struct dl_phdr_info *info, struct object *o)
{
	const ElfW(Dyn) *d = NULL;
	uintptr_t rela = 0, calls = 0;

	*o = (struct object){ .base = info->dlpi_addr };
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_DYNAMIC)
			d = (const ElfW(Dyn) *)(o->base + p->p_vaddr);
		if (p->p_type == PT_GNU_RELRO) {
			o->sealed = o->base + p->p_vaddr;
			o->sealed_end = o->sealed + p->p_memsz;
		}
	}
	for (; d && d->d_tag != DT_NULL; d++)
		switch (d->d_tag) {
		case DT_SYMTAB: o->symbol = address(o, d->d_un.d_ptr); break;
		case DT_STRTAB: o->string = address(o, d->d_un.d_ptr); break;
		case DT_HASH: o->hash = address(o, d->d_un.d_ptr); break;
		case DT_JMPREL: calls = d->d_un.d_ptr; break;
		case DT_PLTRELSZ: o->entries[0] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
		case DT_RELA: rela = d->d_un.d_ptr; break;
		case DT_RELASZ: o->entries[1] = d->d_un.d_val / sizeof(ElfW(Rela)); break;
		default: break;
		}
	o->table[0] = calls ? address(o, calls) : NULL;
	o->table[1] = rela ? address(o, rela) : NULL;
	return o->symbol && o->string;
}

static bool holds(const struct dl_phdr_info *info, const void *p)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type == PT_LOAD && (uintptr_t)p >= at &&
		    (uintptr_t)p - at < info->dlpi_phdr[i].p_memsz)
			return true;
	}
	return false;
}

/* What this library exports; tracer/build.mk gives it the table that says how many symbols. */
static int find_names(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct object o;

	if (!holds(info, VC_FUNCTION(find_names)) || !read_object(info, &o) || !o.hash)
		return 0;
	for (uint32_t i = 1; i < o.hash[1] && g.names < NAMES; i++) {
		const ElfW(Sym) *s = &o.symbol[i];
		const char *name = o.string + s->st_name;

		if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) != STT_FUNC ||
		    !strncmp(name, "vramcast_", 9) || !strncmp(name, "Initialize", 10))
			continue;
		g.name[g.names] = name;
		g.function[g.names++] = (void *)(o.base + s->st_value);
	}
	return 1;
}

static void *ours(const char *name)
{
	for (size_t i = 0; i < g.names; i++)
		if (strcmp(g.name[i], name) == 0)
			return g.cupti || strncmp(name, "cupti", 5) ? g.function[i] : NULL;
	return NULL;
}

static bool add_room(void)
{
	size_t room = g.room ? 2 * g.room : 4096 / sizeof(*g.binding);
	void *p = g.binding ? mremap(g.binding, g.room * sizeof(*g.binding),
				     room * sizeof(*g.binding), MREMAP_MAYMOVE) :
			      mmap(NULL, room * sizeof(*g.binding), PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	g.binding = p;
	g.room = room;
	return true;
}

static void store(const struct binding *b, void *function)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)b->slot & ~(page - 1);

	if (b->sealed && mprotect((void *)at, page, PROT_READ | PROT_WRITE) < 0)
		return;
	atomic_store(b->slot, function);
	if (b->sealed)
		mprotect((void *)at, page, PROT_READ);
}

static bool bind_one(const struct object *o, const ElfW(Rela) *r)
{
	unsigned long type = ELF64_R_TYPE(r->r_info), symbol = ELF64_R_SYM(r->r_info);
	void *function = NULL;
	struct binding b = { .slot = (void *_Atomic *)(o->base + r->r_offset) };

	if ((type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) && symbol)
		function = ours(o->string + o->symbol[symbol].st_name);
	if (!function)
		return true;
	if (g.bindings == g.room && !add_room())
		return false;
	b.before = atomic_load(b.slot);
	b.sealed = (uintptr_t)b.slot >= o->sealed && (uintptr_t)b.slot < o->sealed_end;
	if (!b.before || b.before == function)
		return true;
	g.binding[g.bindings++] = b;
	store(&b, function);
	return true;
}

static int bind_object(struct dl_phdr_info *info, size_t size, void *ok)
{
	bool *fine = ok;
	struct object o;

	if (holds(info, VC_FUNCTION(bind_object)) || !read_object(info, &o))
		return 0;
	for (int t = 0; t < 2; t++)
		for (size_t i = 0; o.table[t] && i < o.entries[t] && *fine; i++)
			*fine = bind_one(&o, &o.table[t][i]);
	return !*fine;
}

/* A library may be gone by now, or somebody else may have changed the slot after us. */
static void give_back(void)
{
	Dl_info info, home;

	while (g.bindings) {
		const struct binding *b = &g.binding[--g.bindings];

		if (dladdr((void *)b->slot, &info) && dladdr(atomic_load(b->slot), &home) &&
		    dladdr(VC_FUNCTION(give_back), &info) && home.dli_fbase == info.dli_fbase)
			store(b, b->before);
	}
}

bool vc_bindings_take(bool cupti)
{
	bool ok = true;

	pthread_mutex_lock(&g.lock);
	g.cupti = cupti;
	if (!g.names)
		dl_iterate_phdr(find_names, NULL);
	if (!g.bindings)
		dl_iterate_phdr(bind_object, &ok);
	if (!ok)
		give_back();
	pthread_mutex_unlock(&g.lock);
	return ok && g.names;
}

void vc_bindings_give_back(void)
{
	pthread_mutex_lock(&g.lock);
	give_back();
	pthread_mutex_unlock(&g.lock);
}
