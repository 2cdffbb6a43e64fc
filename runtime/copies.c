/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each executable and library that was linked with the archive holds a copy of the runtime, and one
 * of them has to serve all, or each would have half of the program and write the same file. Where
 * names are visible the dynamic linker sees to it: all find the first copy's. But a library may
 * hide them (a version script that ends in `local: *`, -Bsymbolic, --exclude-libs) or be opened so
 * that others do not see it. So each copy leaves a note that the program headers lead to, and hands
 * on whatever it is called for to the first copy in the order of loading.
 *
 * That order only grows at its end, so who was first stays so. Only a library that serves others
 * and is closed would leave them with nothing; it is kept.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "runtime/abi.h"
#include "runtime/copies.h"
#include "runtime/state.h"

#define NOTE_TYPE 1u
#define NOTE_NAME "mperf"

/* A static program has none, and must not be made to want one. */
extern __typeof__(dlopen) dlopen __attribute__((weak));

/* Names that are visible are the first visible copy's; who is first of all is that one himself. */
__attribute__((used, visibility("hidden"))) const struct copy mperf_copy_here = {
	.abi = MPERF_ABI_VERSION,
	.start = __mperf_start,
	.object_register = __mperf_object_register,
	.object_unregister = __mperf_object_unregister,
	.thread_enter = __mperf_thread_enter,
	.nest_begin = __mperf_nest_begin,
	.nest_end = __mperf_nest_end,
	.region_begin = __mperf_region_begin,
	.region_end = __mperf_region_end,
};

/* Its descriptor is the distance from itself to the struct. */
__asm__(".pushsection .note.mperf,\"a\",%note\n"
	".balign 4\n"
	".long 6, 8, 1\n"
	".asciz \"" NOTE_NAME "\"\n"
	".balign 4\n"
	"1: .quad mperf_copy_here - 1b\n"
	".popsection\n");
_Static_assert(NOTE_TYPE == 1 && sizeof(NOTE_NAME) == 6, "as the note has it");

const struct copy *mperf_elsewhere;

/* A copy that these notes lead to; NULL: none of our ABI. */
static const struct copy *notes_copy(const char *at, size_t n)
{
	while (n >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		size_t name_bytes = (note->n_namesz + 3u) & ~3u;
		size_t bytes = sizeof(*note) + name_bytes + ((note->n_descsz + 3u) & ~3u);
		if (bytes > n)
			break;
		const char *desc = at + sizeof(*note) + name_bytes;
		if (note->n_type == NOTE_TYPE && note->n_namesz == sizeof(NOTE_NAME) &&
			note->n_descsz == sizeof(int64_t) &&
			memcmp(at + sizeof(*note), NOTE_NAME, sizeof(NOTE_NAME)) == 0) {
			int64_t distance;
			memcpy(&distance, desc, sizeof(distance));
			const struct copy *copy = (const void *)(desc + distance);
			return copy->abi == MPERF_ABI_VERSION ? copy : NULL;
		}
		at += bytes;
		n -= bytes;
	}
	return NULL;
}

struct first {
	const struct copy *copy;
	const char *name;
};

static int object_look(struct dl_phdr_info *info, size_t n, void *result)
{
	(void)n;
	struct first *first = result;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_NOTE || p->p_align > 4) /* ours is of words */
			continue;
		const char *notes = (const char *)(uintptr_t)(info->dlpi_addr + p->p_vaddr);
		first->copy = notes_copy(notes, p->p_memsz);
		first->name = info->dlpi_name;
		if (first->copy)
			return 1;
	}
	return 0;
}

void mperf_copies_look(void)
{
	static bool looked;
	if (looked)
		return;
	looked = true;
	struct first first = {0};
	dl_iterate_phdr(object_look, &first);
	if (!first.copy || first.copy == &mperf_copy_here)
		return;
	/* The executable has no name, and stays. */
	if (first.name && *first.name && dlopen)
		(void)dlopen(first.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	mperf_elsewhere = first.copy;
}
