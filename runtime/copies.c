/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each executable and library linked with the archive contains a copy of the runtime, and one of
 * them has to serve all, or each would have half of the program and write the same file. If names
 * are visible the dynamic linker does it: all find the first copy's. But a library may hide them (a
 * version script that ends in `local: *`, -Bsymbolic, --exclude-libs) or be opened so that others
 * do not see it. So each copy leaves a note that the program headers lead to, and forwards every
 * call to the first copy in load order.
 *
 * That order only grows at its end, so the first copy stays first. If a library that serves others
 * were closed, they would have no runtime; so it stays loaded.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "runtime/abi.h"
#include "runtime/copies.h"

/* A static program has none, and must not start to need one. */
extern __typeof__(dlopen) dlopen __attribute__((weak));

const struct copy *mperf_elsewhere;
bool mperf_copy_stays = true;

/* The copy that these notes point to; NULL: there is none of our ABI. */
static const struct copy *notes_copy(const char *at, size_t n)
{
	while (n >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		size_t name_bytes = (note->n_namesz + 3u) & ~3u;
		size_t bytes = sizeof(*note) + name_bytes + ((note->n_descsz + 3u) & ~3u);
		if (bytes > n)
			break;
		const char *desc = at + sizeof(*note) + name_bytes;
		if (note->n_type == MPERF_COPY_NOTE_TYPE &&
			note->n_namesz == sizeof(MPERF_COPY_NOTE_NAME) &&
			note->n_descsz == sizeof(int64_t) &&
			memcmp(at + sizeof(*note), MPERF_COPY_NOTE_NAME,
				sizeof(MPERF_COPY_NOTE_NAME)) == 0) {
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
		if (p->p_type != PT_NOTE || p->p_align > 4) /* our note has 4-byte words */
			continue;
		const char *notes = (const char *)(uintptr_t)(info->dlpi_addr + p->p_vaddr);
		first->copy = notes_copy(notes, p->p_memsz);
		first->name = info->dlpi_name;
		if (first->copy)
			return 1;
	}
	return 0;
}

void mperf_copies_look(const struct copy *here)
{
	static bool looked;
	if (looked)
		return;
	looked = true;
	struct first first = {0};
	dl_iterate_phdr(object_look, &first);
	if (!first.copy || first.copy == here) {
		mperf_copy_stays = !first.name || !*first.name;
		return;
	}
	/* The executable has no name, and stays loaded. */
	if (first.name && *first.name && dlopen)
		(void)dlopen(first.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	mperf_elsewhere = first.copy;
}
