/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * An object finds its build id where the loader mapped it: the program headers stand behind the ELF
 * header, one of them says where the notes are. Addresses in it count from that of the segment
 * which holds file offset 0, which is where the header is. Source: elf(5), gABI chapter 5.
 */
#include <elf.h>
#include <string.h>

#include "runtime/image.h"

#define HEADERS_MAX 64u       /* program headers looked at; linkers make about a dozen */
#define NOTES_BYTES_MAX 4096u /* of a segment of notes; they are some tens */

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

size_t mperf_image_build_id(const void *elf, uint8_t id[MPERF_BUILD_ID_BYTES_MAX])
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
