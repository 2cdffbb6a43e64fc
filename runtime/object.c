/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * An object is opened when it registers. Before it is closed no thread may use it any more:
 * we first hide its blocks from the threads, then wait for the busy words. Its areas are not
 * unmapped, so a destructor that runs late still counts somewhere.
 *
 * We find an object's build id in its memory: the program headers follow the ELF header, and one of
 * them says where the notes are. Its addresses count from that of the segment with file offset 0,
 * where the header is. Source: elf(5), gABI chapter 5.
 */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "runtime/confined.h"
#include "runtime/executable.h"
#include "runtime/object.h"
#include "runtime/state.h"
#include "runtime/table.h"

#define HEADERS_MAX 64u       /* program headers examined; linkers make about a dozen */
#define NOTES_BYTES_MAX 4096u /* size of a note segment; typically tens of bytes */
#define BUSY_WAIT_NS 50000    /* a thread stays busy only for a few stores, or a page fault */
#define BUSY_WAITS_MAX 20000u /* a second; then we give up on a thread killed while busy */

/* The descriptor of the build id's note among bytes of notes; its size, or 0. */
static size_t find_note(const uint8_t *notes, size_t bytes, const uint8_t **ret_id)
{
	Elf64_Nhdr note;
	while (bytes >= sizeof(note)) {
		memcpy(&note, notes, sizeof(note));
		size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		size_t desc = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name > bytes - sizeof(note) || desc > bytes - sizeof(note) - name)
			return 0;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
			memcmp(notes + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
			*ret_id = notes + sizeof(note) + name;
			return note.n_descsz;
		}
		notes += sizeof(note) + name + desc;
		bytes -= sizeof(note) + name + desc;
	}
	return 0;
}

size_t mperf_object_build_id(const void *elf, uint8_t id[MPERF_BUILD_ID_BYTES_MAX])
{
	const uint8_t *at = elf;
	const Elf64_Ehdr *header = elf;
	if (!elf || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
		header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_phnum > HEADERS_MAX)
		return 0;

	const Elf64_Phdr *headers = (const Elf64_Phdr *)(at + header->e_phoff);
	uint64_t base = 0;
	for (unsigned i = 0; i < header->e_phnum; i++)
		if (headers[i].p_type == PT_LOAD && headers[i].p_offset == 0)
			base = headers[i].p_vaddr;
	for (unsigned i = 0; i < header->e_phnum; i++) {
		const uint8_t *found = NULL;
		if (headers[i].p_type != PT_NOTE || headers[i].p_memsz > NOTES_BYTES_MAX)
			continue;
		size_t n = find_note(at + (headers[i].p_vaddr - base), headers[i].p_memsz, &found);
		if (n == 0 || n > MPERF_BUILD_ID_BYTES_MAX)
			continue;
		memcpy(id, found, n);
		return n;
	}
	return 0;
}

static bool module_ours(const struct mperf_module *m, const struct mperf_object *o)
{
	return m->abi == MPERF_ABI_VERSION && m->counters >= o->counters &&
	       m->counters <= o->counters_end &&
	       m->n_counters <= (uint64_t)(o->counters_end - m->counters);
}

const struct mperf_module *mperf_object_module(const struct object *object, uint32_t n)
{
	const struct mperf_module *m = object->registration->modules;
	for (; m != object->registration->modules_end; m++)
		if (module_ours(m, object->registration) && n-- == 0)
			break;
	return m;
}

const uint8_t *mperf_object_uses(struct object *object)
{
	if (object->uses)
		return object->uses;
	uint8_t *uses = mmap(NULL, object->n_counters, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (uses == MAP_FAILED)
		return NULL;

	const struct mperf_object *o = object->registration;
	for (const struct mperf_module *m = o->modules; m != o->modules_end; m++)
		if (module_ours(m, o)) /* a broken table is not sent: nobody could read it */
			mperf_table_uses(m->table, m->table_bytes,
				uses + (m->counters - o->counters), m->n_counters);
	object->uses = uses;
	return uses;
}

/* A free record. */
static struct object *object_take(struct state *s)
{
	for (struct object *i = s->objects; i; i = i->next)
		if (!i->open)
			return i;
	struct object *i =
		mmap(NULL, sizeof(*i), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (i == MAP_FAILED)
		return NULL;
	i->next = s->objects;
	s->objects = i;
	return i;
}

void mperf_object_open(struct state *s, struct mperf_object *o)
{
	size_t n = (size_t)(o->counters_end - o->counters);
	struct area *lost = mperf_area_take(&s->areas, n);
	struct object *i = lost ? object_take(s) : NULL;
	if (!i) {
		if (lost)
			mperf_area_give(&s->areas, lost);
		return;
	}
	*i = (struct object){.next = i->next,
		.open = true,
		.id = s->n_objects++,
		.registration = o,
		.counters = o->counters,
		.n_counters = (uint32_t)n,
		.stays = mperf_executable_is(o->elf),
		.lost = lost};
	for (const struct mperf_module *m = o->modules; m != o->modules_end; m++)
		if (module_ours(m, o)) {
			i->n_modules++;
			i->has_gs_base |= (m->flags & MPERF_MODULE_SEGMENT) != 0;
		}
	/* The kernel refuses a negative base. A static PIE lies above other mappings, so its base would be one. Source:
	 * Linux, arch/x86/kernel/process_64.c, do_arch_prctl_64. */
	if (i->has_gs_base && !s->may_write_gs_base)
		mperf_area_above(&s->areas, o->counters_end);
	o->id = i->id;
	__atomic_store_n(&o->runtime, i, __ATOMIC_RELEASE);
}

/* Hide the object's blocks from a thread, and collect their areas. */
static void blocks_part(struct state *s, struct thread *t, const struct object *object)
{
	for (struct entered *e = __atomic_load_n(&t->entered, __ATOMIC_ACQUIRE); e; e = e->next)
		if (__atomic_load_n(&e->object, __ATOMIC_RELAXED) == object)
			__atomic_store_n(&e->object, NULL, __ATOMIC_SEQ_CST);

	for (struct region_instance *instance = __atomic_load_n(&t->instances, __ATOMIC_ACQUIRE);
		instance; instance = instance->next)
		for (struct block *b = __atomic_load_n(&instance->blocks, __ATOMIC_ACQUIRE); b;
			b = b->next)
			if (__atomic_load_n(&b->object, __ATOMIC_ACQUIRE) == object) {
				struct area *a = b->area;
				__atomic_store_n(&b->object, NULL, __ATOMIC_SEQ_CST);
				mperf_area_give(&s->areas, a);
			}
}

static void busy_wait(const struct thread *t)
{
	struct timespec pause = {.tv_nsec = BUSY_WAIT_NS};
	for (unsigned i = 0; i < BUSY_WAITS_MAX; i++) {
		if (!__atomic_load_n(&t->busy, __ATOMIC_SEQ_CST))
			break;
		nanosleep(&pause, NULL);
	}
}

/* Twice, since a thread that enters a region meanwhile may still make blocks for the object. */
static void thread_part(struct state *s, struct thread *t, const struct object *object)
{
	blocks_part(s, t, object);
	busy_wait(t);
	blocks_part(s, t, object);
}

void mperf_object_close(struct state *s, struct object *object, struct mperf_object *o)
{
	__atomic_store_n(&o->runtime, NULL, __ATOMIC_SEQ_CST);
	if (!object->has_gs_base && !mperf_confined(s)) /* which may ask for memory */
		*o->bias() =
			0; /* this thread's later destructors count into the object's own words */
	for (struct thread *t = __atomic_load_n(&s->threads, __ATOMIC_ACQUIRE); t; t = t->next)
		if (__atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == MPERF_THREAD_LIVES)
			thread_part(s, t, object);
	if (object->uses && !mperf_confined(s))
		munmap(object->uses, object->n_counters);
	object->uses = NULL;
	mperf_area_give(&s->areas, object->lost);
	object->open = false;
}
