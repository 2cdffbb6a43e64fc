/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "daemon/code/elf.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/array.h"

#ifndef EM_RISCV
#define EM_RISCV 243
#endif

#define SECTIONS_MAX 100000 /* linked files have some dozens */
#define NESTED_MAX 16       /* functions that begin within another one, before it goes on */

static int isa_of(const GElf_Ehdr *h, enum isa *ret_isa)
{
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
		return CODE_NO_ISA;
	if (h->e_machine == EM_X86_64)
		*ret_isa = ISA_X86_64;
	else if (h->e_machine == EM_AARCH64)
		*ret_isa = ISA_AARCH64;
	else if (h->e_machine == EM_RISCV)
		*ret_isa = ISA_RISCV64;
	else
		return CODE_NO_ISA;
	return 0;
}

/* Find the offset of the address in the file. */
static bool offset_of(const struct code_file *f, uint64_t address, uint64_t *ret_offset)
{
	size_t n = 0;
	if (elf_getphdrnum(f->file.elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n && i < SECTIONS_MAX; i++) {
		GElf_Phdr p;
		if (gelf_getphdr(f->file.elf, (int)i, &p) && p.p_type == PT_LOAD &&
			(p.p_flags & PF_X) && address >= p.p_vaddr &&
			address - p.p_vaddr < p.p_filesz) {
			*ret_offset = address - p.p_vaddr + p.p_offset;
			return true;
		}
	}
	return false;
}

static int add(struct code_file *f, uint64_t address, uint64_t bytes)
{
	uint64_t offset;
	if (bytes == 0 || f->n == CODE_FUNCTIONS_MAX || !offset_of(f, address, &offset) ||
		offset > f->file.n || bytes > f->file.n - offset)
		return 0;
	int r = array_grow(&f->function, &f->size, f->n + 1, sizeof(*f->function));
	if (r < 0)
		return r;
	f->function[f->n++] = (struct code_function){offset, bytes};
	return 0;
}

static int add_symbols(struct code_file *f, Elf_Data *data)
{
	GElf_Sym s;
	for (int i = 0; gelf_getsym(data, i, &s); i++) {
		if (GELF_ST_TYPE(s.st_info) != STT_FUNC || s.st_shndx == SHN_UNDEF)
			continue;
		int r = add(f, s.st_value, s.st_size);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- .eh_frame -------------------------------------------------------------------------------- */

/* The encoding of addresses, from its CIE. Source: Linux Standard Base Core 5.0, 10.6. */
static bool encoding_of(const Dwarf_CIE *cie, uint8_t *ret_encoding)
{
	const uint8_t *at = cie->augmentation_data;
	const uint8_t *end = at + cie->augmentation_data_size;
	*ret_encoding = DW_EH_PE_absptr;
	if (!cie->augmentation || *cie->augmentation != 'z')
		return true;
	for (const char *c = cie->augmentation + 1; *c; c++) {
		if (*c == 'S' || *c == 'B')
			continue;
		if (!at || at >= end)
			return false;
		uint8_t encoding = *at++;
		if (*c == 'R') {
			*ret_encoding = encoding;
			return true;
		}
		if (*c != 'P' && *c != 'L')
			return false;
		if (*c == 'P')
			at += (encoding & 7) == DW_EH_PE_udata4 ? 4 : 8;
	}
	return true;
}

/* Read the start and length of a function from `at`, which is loaded at `address`. */
static bool read_range(const uint8_t *at, const uint8_t *end, uint8_t encoding, uint64_t address,
	uint64_t *ret_start, uint64_t *ret_bytes)
{
	uint8_t format = encoding & 0x0f;
	bool is_short = format == DW_EH_PE_sdata4 || format == DW_EH_PE_udata4;
	size_t n = is_short ? 4 : 8;
	int32_t start4 = 0, bytes4 = 0;
	if ((size_t)(end - at) < 2 * n || (encoding & 0x70 & ~DW_EH_PE_pcrel) ||
		(encoding & DW_EH_PE_indirect))
		return false;
	if (is_short) {
		memcpy(&start4, at, 4);
		memcpy(&bytes4, at + 4, 4);
		*ret_start =
			format == DW_EH_PE_sdata4 ? (uint64_t)(int64_t)start4 : (uint32_t)start4;
		*ret_bytes = (uint32_t)bytes4;
	} else {
		memcpy(ret_start, at, 8);
		memcpy(ret_bytes, at + 8, 8);
	}
	if (encoding & DW_EH_PE_pcrel)
		*ret_start += address;
	return true;
}

static int add_frames(
	struct code_file *f, const GElf_Ehdr *header, const GElf_Shdr *section, Elf_Data *data)
{
	Dwarf_Off next = 0, cie_at = (Dwarf_Off)-1;
	uint8_t encoding = 0;
	bool known = false;
	for (Dwarf_Off at = 0; at != (Dwarf_Off)-1; at = next) {
		Dwarf_CFI_Entry e, cie;
		Dwarf_Off behind;
		int r = dwarf_next_cfi(header->e_ident, data, true, at, &next, &e);
		if (r != 0 || (next != (Dwarf_Off)-1 && next <= at))
			return 0;
		if (dwarf_cfi_cie_p(&e))
			continue;
		if (e.fde.CIE_pointer != cie_at) {
			cie_at = e.fde.CIE_pointer;
			known = dwarf_next_cfi(
					header->e_ident, data, true, cie_at, &behind, &cie) == 0 &&
				dwarf_cfi_cie_p(&cie) && encoding_of(&cie.cie, &encoding);
		}
		uint64_t start, bytes;
		uint64_t address =
			section->sh_addr + (uint64_t)(e.fde.start - (const uint8_t *)data->d_buf);
		if (!known ||
			!read_range(e.fde.start, e.fde.end, encoding, address, &start, &bytes))
			continue;
		r = add(f, start, bytes);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- all of them ------------------------------------------------------------------------------ */

static int add_section(struct code_file *f, const GElf_Ehdr *header, Elf_Scn *section, size_t names)
{
	GElf_Shdr s;
	if (!gelf_getshdr(section, &s) || (s.sh_flags & SHF_COMPRESSED))
		return 0;
	const char *name = elf_strptr(f->file.elf, names, s.sh_name);
	bool symbols = s.sh_type == SHT_SYMTAB || s.sh_type == SHT_DYNSYM;
	bool frames = s.sh_type != SHT_NOBITS && name && strcmp(name, ".eh_frame") == 0;
	Elf_Data *data = symbols || frames ? elf_getdata(section, NULL) : NULL;
	if (!data || !data->d_buf || data->d_size == 0)
		return 0;
	return symbols ? add_symbols(f, data) : add_frames(f, header, &s, data);
}

static int compare(const void *a, const void *b)
{
	const struct code_function *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Sort them; of functions with the same start, keep only the longest. */
static void sort(struct code_file *f)
{
	uint32_t n = 0;
	if (f->n > 0)
		qsort(f->function, f->n, sizeof(*f->function), compare);
	for (uint32_t i = 0; i < f->n; i++)
		if (i + 1 == f->n || f->function[i].offset != f->function[i + 1].offset)
			f->function[n++] = f->function[i];
	f->n = n;
}

int code_file_open(struct code_file *f, int fd)
{
	GElf_Ehdr header;
	size_t names;
	*f = (struct code_file){.n = 0};
	int r = elf_file_map(&f->file, fd);
	if (r != 0)
		return r < 0 ? r : CODE_NO_ELF;
	if (!gelf_getehdr(f->file.elf, &header) ||
		(header.e_type != ET_EXEC && header.e_type != ET_DYN) ||
		elf_getshdrstrndx(f->file.elf, &names) < 0)
		r = CODE_NO_ELF;
	if (r == 0)
		r = isa_of(&header, &f->isa);
	Elf_Scn *section = NULL;
	for (size_t i = 0;
		r == 0 && i < SECTIONS_MAX && (section = elf_nextscn(f->file.elf, section)); i++)
		r = add_section(f, &header, section, names);
	sort(f);
	if (r != 0)
		code_file_close(f);
	return r;
}

const struct code_function *code_file_function(const struct code_file *f, uint64_t offset)
{
	uint32_t low = 0, high = f->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (f->function[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	for (uint32_t i = 0; i < NESTED_MAX && low > 0; i++) {
		const struct code_function *found = &f->function[--low];
		if (offset - found->offset < found->bytes)
			return found;
	}
	return NULL;
}

void code_file_close(struct code_file *f)
{
	elf_file_close(&f->file);
	free(f->function);
	*f = (struct code_file){.n = 0};
}
