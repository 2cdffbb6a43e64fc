/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Unpacking leaves the compressed bytes as they are in the file, so their pages may be dropped: the
 * kernel reads them again if they are touched. A section is hidden by the type in its header, in
 * our private copy: libdw skips sections without bits, as in a stripped file.
 */

#include "daemon/namer/debug_sections.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The maximum of an ELF file without extensions. */
#define SECTIONS_MAX 65536

static bool for_debuggers_only(const char *name)
{
	static const char *const names[] = {".debug_loc", ".debug_loclists", ".debug_macinfo",
		".debug_macro", ".debug_pubnames", ".debug_pubtypes", ".debug_gnu_pubnames",
		".debug_gnu_pubtypes", ".debug_names", ".debug_aranges", ".debug_frame"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* Whole pages only: the first and the last may hold something else as well. */
static void pages_drop(char *bytes, size_t n, uint64_t offset, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (offset > n || size > n - offset)
		return;
	uint64_t first = (offset + page - 1) / page * page, end = (offset + size) / page * page;
	if (first < end)
		madvise(bytes + first, end - first, MADV_DONTNEED);
}

void debug_sections_unpack(Elf *elf, void *bytes, size_t n)
{
	size_t names, n_seen = 0;
	if (elf_getshdrstrndx(elf, &names))
		return;

	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s)) && n_seen < SECTIONS_MAX; n_seen++) {
		GElf_Shdr header;
		if (!gelf_getshdr(s, &header) || !(header.sh_flags & SHF_COMPRESSED))
			continue;
		const char *name = elf_strptr(elf, names, header.sh_name);
		if (!name || strncmp(name, ".debug_", 7) != 0)
			continue;
		uint64_t offset = header.sh_offset, size = header.sh_size;
		if (for_debuggers_only(name)) {
			header.sh_type = SHT_NOBITS;
			gelf_update_shdr(s, &header);
		} else if (elf_compress(s, 0, 0) == 1) {
			pages_drop(bytes, n, offset, size);
		}
	}
}
