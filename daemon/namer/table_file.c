/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/namer/table_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "proto/base/memory.h"

static Elf *close_elf(Elf *elf)
{
	elf_end(elf);
	return NULL;
}
DEFINE_CLEANUP(Elf *, close_elf)

static int read_segments(
	Elf *elf, struct unwind_segment ret_segment[UNWIND_SEGMENTS_MAX], size_t *ret_n)
{
	size_t n, n_found = 0;

	if (elf_getphdrnum(elf, &n))
		return -EBADMSG;
	for (size_t i = 0; i < n && n_found < UNWIND_SEGMENTS_MAX; i++) {
		GElf_Phdr p;
		if (!gelf_getphdr(elf, (int)i, &p))
			return -EBADMSG;
		if (p.p_type == PT_LOAD && p.p_flags & PF_X)
			ret_segment[n_found++] = (struct unwind_segment){
				.offset = p.p_offset, .n = p.p_filesz, .addr = p.p_vaddr};
	}
	*ret_n = n_found;
	return n_found ? 0 : -EBADMSG;
}

int table_sections(Elf *elf, struct unwind_section ret_section[2])
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return -EBADMSG;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;
		const char *name =
			gelf_getshdr(scn, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (!name || header.sh_type == SHT_NOBITS)
			continue;
		const bool is_eh = strcmp(name, ".eh_frame") == 0;
		if (!is_eh && strcmp(name, ".debug_frame") != 0)
			continue;
		if (header.sh_flags & SHF_COMPRESSED)
			return -EOPNOTSUPP;
		ret_section[is_eh ? 0 : 1] = (struct unwind_section){
			.data = elf_rawdata(scn, NULL), .addr = header.sh_addr, .is_eh = is_eh};
	}
	return ret_section[0].data || ret_section[1].data ? 0 : -EBADMSG;
}

static bool is_build_id(Elf *elf, const uint8_t *build_id, size_t n_build_id)
{
	const void *found;
	ssize_t n = dwelf_elf_gnu_build_id(elf, &found);

	return n == (ssize_t)n_build_id && memcmp(found, build_id, n_build_id) == 0;
}

int table_of_file(int fd, uint16_t machine, const uint8_t *build_id, size_t n_build_id,
	size_t n_bytes_max, struct unwind_table **ret_table)
{
	(void)elf_version(EV_CURRENT); /* without which elf_begin fails */
	/* Read and not mapped: only needed sections take memory, and a file that shrinks cannot kill us. */
	_cleanup_(close_elfp) Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	struct unwind_segment segment[UNWIND_SEGMENTS_MAX];
	struct unwind_section section[2] = {};
	size_t n_segments;
	GElf_Ehdr header;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return n_build_id ? -ENOENT : -EBADMSG;
	if (n_build_id && !is_build_id(elf, build_id, n_build_id))
		return -ENOENT;
	if (header.e_machine != machine || (header.e_type != ET_EXEC && header.e_type != ET_DYN))
		return -EBADMSG;
	int r = read_segments(elf, segment, &n_segments);
	if (r == 0)
		r = table_sections(elf, section);
	return r < 0 ? r
		     : unwind_table_make(section, 2, segment, n_segments, header.e_ident, machine,
			       n_bytes_max, ret_table);
}
