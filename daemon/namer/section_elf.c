/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The file in memory has headers and names. Each section first has one byte of that file, and gets its own
 * bytes after libelf has read that byte. */

#include "daemon/namer/section_elf.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/namer/debug_sections.h"

#define NAME_BYTES 32

struct section_elf {
	Elf *elf;
	struct {
		Elf64_Ehdr file;
		Elf64_Shdr section[SECTION_ELF_MAX + 2];
		char name[SECTION_ELF_MAX + 2][NAME_BYTES];
	} bytes;
};

#define OF_NAMES offsetof(struct section_elf, bytes.name) - offsetof(struct section_elf, bytes)

static void add_section(struct section_elf *e, const char *name, uint32_t type, uint64_t n)
{
	uint16_t i = e->bytes.file.e_shnum++;

	strncpy(e->bytes.name[i], name, NAME_BYTES - 1);
	e->bytes.section[i] = (Elf64_Shdr){
		.sh_name = i * NAME_BYTES,
		.sh_type = type,
		.sh_addralign = 1,
		.sh_offset = OF_NAMES,
		.sh_size = n,
	};
}

static void begin_file(struct section_elf *e)
{
	const uint16_t order = 1;
	bool little = *(const char *)&order == 1;

	e->bytes.file = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			little ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT},
		.e_type = ET_REL,
		.e_version = EV_CURRENT,
		.e_shoff = sizeof(Elf64_Ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 1,
	};
}

int section_elf_new(const struct named_bytes *section, size_t n, struct section_elf **ret_elf)
{
	struct section_elf *e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;

	begin_file(e);
	for (size_t i = 0; i < n && i < SECTION_ELF_MAX; i++)
		if (section[i].bytes.at && section[i].bytes.n)
			add_section(e, section[i].name, SHT_PROGBITS, 1);
	e->bytes.file.e_shstrndx = e->bytes.file.e_shnum;
	add_section(e, ".shstrtab", SHT_STRTAB, sizeof(e->bytes.name));

	e->elf = elf_memory((char *)&e->bytes, sizeof(e->bytes));
	if (!e->elf) {
		free(e);
		return -ENOMEM;
	}
	Elf_Scn *s = NULL;
	for (size_t i = 0; i < n && i < SECTION_ELF_MAX; i++)
		if (section[i].bytes.at && section[i].bytes.n && (s = elf_nextscn(e->elf, s)))
			section_set_bytes(s, section[i].bytes);
	*ret_elf = e;
	return 0;
}

Elf *section_elf_elf(const struct section_elf *e)
{
	return e->elf;
}

struct section_elf *section_elf_free(struct section_elf *e)
{
	if (!e)
		return NULL;
	elf_end(e->elf);
	free(e);
	return NULL;
}
