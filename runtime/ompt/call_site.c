/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The daemon names addresses of running programs itself. The file that we report is for addresses that
 * it does not find, and for MPERF_OUTPUT. We look it up when we first meet a place, since a library may
 * be closed later; by _dl_find_object, which takes no lock of the dynamic linker:
 * a constructor that runs a parallel region holds it, while its workers come here. Libraries that are
 * mapped one after the other at the same address share their places.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "runtime/message.h"
#include "runtime/object.h"
#include "runtime/ompt/call_site.h"
#include "runtime/state.h"

/* Source: glibc 2.35 has it first; dlfcn.h. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

static struct place slots[PLACES_SLOTS + 1] = {
	[PLACES_SLOTS] = {.kind = MPERF_PLACE_PARALLEL, .ready = 1}, /* the other regions */
};
static uint32_t n_places; /* atomic */
static struct place_file files[PLACES_FILES_MAX];

_Static_assert(MPERF_PLACE_KINDS <= 16, "a kind has four bits of a key");
_Static_assert(PLACES_SLOTS <= 4095, "an id has twelve bits of a key");

uint32_t place_id(const struct place *p)
{
	return (uint32_t)(p - slots) + 1;
}

/* All that distinguishes places. Addresses of user code have 48 bits, unless a program asks for memory
 * above, with five levels of page tables. Never 0, since no kind is. Source: Linux, Documentation/arch/x86/x86_64/mm.rst. */
static uint64_t key_of(uint32_t kind, const void *address, const struct place *parent)
{
	uint64_t around = parent ? (uint64_t)(parent - slots) + 1 : 0;
	return (uint64_t)(uintptr_t)address << 16 | (around & 0xfff) << 4 | kind;
}

/* --- files ------------------------------------------------------------------------------------ */

static void path_set(struct place_file *f, const char *name)
{
	char exe[4096];
	if (!name || !*name) { /* the executable's */
		ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
		exe[n > 0 ? n : 0] = '\0';
		name = exe;
	}
	size_t n = strlen(name);
	if (n >= sizeof(f->path))
		name += n - (sizeof(f->path) - 1);
	strcpy(f->path, name);
}

/* The record of a file that is mapped there; NULL: there are too many. Another thread may be filling it. */
static const struct place_file *file_get(const struct dl_find_object *found)
{
	uint64_t start = (uintptr_t)found->dlfo_map_start;
	for (uint32_t i = 0; i < PLACES_FILES_MAX; i++) {
		struct place_file *f = &files[i];
		uint64_t free = 0;
		if (__atomic_compare_exchange_n(
			    &f->start, &free, start, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			f->build_id_bytes =
				(uint32_t)mperf_object_build_id(found->dlfo_map_start, f->build_id);
			path_set(f, found->dlfo_link_map->l_name);
			__atomic_store_n(&f->ready, 1, __ATOMIC_RELEASE);
			return f;
		}
		if (free == start)
			return f;
	}
	return NULL;
}

/* Is this the header of an ELF file, mapped from its beginning? */
static bool is_elf(const void *start)
{
	return memcmp(start, ELFMAG, SELFMAG) == 0;
}

/* The offset in its file of an address in a mapped object; 0: it is in no segment. */
static uint64_t offset_of(const struct dl_find_object *found, uint64_t address)
{
	const ElfW(Ehdr) *elf = found->dlfo_map_start;
	const ElfW(Phdr) *p = (const void *)((const char *)elf + elf->e_phoff);
	uint64_t there = address - found->dlfo_link_map->l_addr;
	for (unsigned i = 0; i < elf->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && there >= p[i].p_vaddr &&
			there - p[i].p_vaddr < p[i].p_filesz)
			return there - p[i].p_vaddr + p[i].p_offset;
	return 0;
}

static void look_up(struct place *p)
{
	struct dl_find_object found;
	if (!p->address || !_dl_find_object ||
		_dl_find_object((void *)(uintptr_t)p->address, &found) != 0 ||
		!found.dlfo_link_map || !is_elf(found.dlfo_map_start))
		return;
	p->offset = offset_of(&found, p->address);
	p->file = file_get(&found);
}

/* --- places ----------------------------------------------------------------------------------- */

static struct place *fill(struct place *p, uint32_t kind, const void *address, struct place *parent)
{
	p->kind = kind;
	p->address = (uintptr_t)address;
	p->parent = parent;
	look_up(p);
	__atomic_store_n(&p->ready, 1, __ATOMIC_RELEASE);
	return p;
}

struct place *place_other(void)
{
	return &slots[PLACES_SLOTS];
}

struct place *place_get(uint32_t kind, const void *address, struct place *parent)
{
	if (parent == place_other())
		return kind == MPERF_PLACE_PARALLEL ? parent : NULL;
	uint64_t key = key_of(kind, address, parent);
	/* Source of the constant: 2^64 divided by the golden ratio, odd. */
	uint32_t at = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 40);
	for (uint32_t i = 0; i < PLACES_SLOTS; i++) {
		struct place *p = &slots[(at + i) % PLACES_SLOTS];
		uint64_t there = __atomic_load_n(&p->key, __ATOMIC_ACQUIRE);
		if (there == 0 && __atomic_load_n(&n_places, __ATOMIC_RELAXED) >= PLACES_MAX)
			break;
		if (there == 0 && __atomic_compare_exchange_n(&p->key, &there, key, 0,
					  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			__atomic_add_fetch(&n_places, 1, __ATOMIC_RELAXED);
			return fill(p, kind, address, parent);
		}
		if (there == key)
			return p;
	}
	return kind == MPERF_PLACE_PARALLEL ? place_other() : NULL;
}

/* --- announcing ------------------------------------------------------------------------------- */

static int put(struct state *s, const struct place *p)
{
	const struct place_file *f = p->file;
	const char *path = f ? f->path : "";
	size_t id_bytes = f ? f->build_id_bytes : 0, path_bytes = strlen(path) + 1;
	const struct mperf_feed_place m = {
		.place = place_id(p),
		.parent = p->parent ? place_id(p->parent) : 0,
		.kind = p->kind,
		.build_id_bytes = (uint32_t)id_bytes,
		.address = p->address,
		.offset = p->offset,
		.path_bytes = (uint32_t)path_bytes,
	};
	memcpy(s->packet, &m, sizeof(m));
	if (id_bytes)
		memcpy(s->packet + sizeof(m), f->build_id, id_bytes);
	memcpy(s->packet + sizeof(m) + id_bytes, path, path_bytes);
	return mperf_message_put(s, MPERF_PLACE, sizeof(m) + id_bytes + path_bytes);
}

static bool is_ready(const struct place *p)
{
	return __atomic_load_n(&p->ready, __ATOMIC_ACQUIRE) &&
	       (!p->file || __atomic_load_n(&p->file->ready, __ATOMIC_ACQUIRE));
}

int place_announce(struct state *s, struct place *p)
{
	while (p->serial != s->sink.serial) {
		struct place *first = p;
		while (is_ready(first) && first->parent && first->parent->serial != s->sink.serial)
			first = first->parent;
		if (!is_ready(first))
			return MPERF_SINK_LATER;
		int r = put(s, first);
		if (r != 0)
			return r;
		first->serial = s->sink.serial;
	}
	return 0;
}
