/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A symbol counts if it is in an executable section: functions, and in hand-written assembly plain
 * labels too. Everything else in the table (data, files, sections, mapping symbols that show the
 * disassembler where code begins, leftover local labels) would only give wrong names. No count or
 * offset in the file is trusted: the section's size limits the number of symbols, and a name must
 * end inside its string table.
 *
 * Source: System V ABI, chapter 4, "Symbol Table"; gelf_getsym of elfutils.
 */

#include "daemon/namer/elf_symbols.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

#include "daemon/namer/image.h"

#ifndef EM_RISCV
#define EM_RISCV 243
#endif

/* ld -r with -ffunction-sections makes 100,000; e_shnum beyond 65,279 is in the first header. */
#define SECTIONS_MAX 1000000

/* The string table of a symbol table: bytes of the file, so that names outlive the Elf. */
struct strings {
	const char *bytes;
	size_t n;
};

static const char *strings_at(const struct strings *s, uint64_t offset)
{
	if (offset >= s->n || !memchr(s->bytes + offset, '\0', s->n - offset))
		return NULL;
	return s->bytes + offset;
}

/* Data of a section, or NULL if the file has none. */
static Elf_Data *section_data(Elf_Scn *section, GElf_Shdr *ret_header)
{
	if (!section || !gelf_getshdr(section, ret_header) || ret_header->sh_type == SHT_NOBITS ||
		(ret_header->sh_flags & SHF_COMPRESSED))
		return NULL;

	Elf_Data *data = elf_getdata(section, NULL);
	return data && data->d_buf && data->d_size ? data : NULL;
}

static bool section_strings(Elf *elf, size_t index, struct strings *ret_strings)
{
	GElf_Shdr header;
	size_t n_file = 0;
	Elf_Data *data = section_data(elf_getscn(elf, index), &header);
	uintptr_t file = (uintptr_t)elf_rawfile(elf, &n_file),
		  at = data ? (uintptr_t)data->d_buf : 0;
	/* A section of another type may be a converted copy. */
	if (!data || at < file || at - file > n_file || data->d_size > n_file - (at - file))
		return false;

	*ret_strings = (struct strings){.bytes = data->d_buf, .n = data->d_size};
	return true;
}

static Elf_Scn *section_of_type(Elf *elf, uint32_t type, Elf_Data **ret_data, GElf_Shdr *ret_header)
{
	Elf_Scn *section = NULL;

	for (size_t i = 0; i < SECTIONS_MAX && (section = elf_nextscn(elf, section)); i++) {
		GElf_Shdr header;
		if (!gelf_getshdr(section, &header) || header.sh_type != type)
			continue;
		Elf_Data *data = section_data(section, &header);
		if (!data)
			continue;
		*ret_data = data;
		*ret_header = header;
		return section;
	}
	return NULL;
}

static Elf_Scn *section_named(Elf *elf, const char *name, GElf_Shdr *ret_header)
{
	size_t names_index;
	struct strings names;
	if (elf_getshdrstrndx(elf, &names_index) || !section_strings(elf, names_index, &names))
		return NULL;

	Elf_Scn *section = NULL;
	for (size_t i = 0; i < SECTIONS_MAX && (section = elf_nextscn(elf, section)); i++) {
		GElf_Shdr header;
		if (!gelf_getshdr(section, &header))
			continue;
		const char *found = strings_at(&names, header.sh_name);
		if (found && strcmp(found, name) == 0) {
			*ret_header = header;
			return section;
		}
	}
	return NULL;
}

/* A symbol table being read, with the last section used, which neighbouring symbols share. */
struct table {
	Elf *elf;
	Elf_Data *symbols, *indices; /* indices: SHT_SYMTAB_SHNDX or NULL */
	struct strings names;
	uint16_t machine;
	uint32_t section;
	bool executable;
	uint64_t section_end;
};

static void table_look_at_section(struct table *t, uint32_t index)
{
	GElf_Shdr header;

	t->section = index;
	t->executable = false;

	Elf_Scn *section = elf_getscn(t->elf, index);
	if (!section || !gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
		return;
	t->executable = true;
	if (__builtin_add_overflow(header.sh_addr, header.sh_size, &t->section_end))
		t->section_end = UINT64_MAX;
}

/* Names to ignore: local labels, and the mapping symbols of Arm and RISC-V. Source: ELF for the Arm
 * 64-bit Architecture, "Mapping symbols"; RISC-V ELF psABI, same. */
static bool name_is_noise(const char *name, uint16_t machine)
{
	if (!*name || strncmp(name, ".L", 2) == 0)
		return true;
	if (machine != EM_ARM && machine != EM_AARCH64 && machine != EM_RISCV)
		return false;
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
	       (machine == EM_RISCV || !name[2] || name[2] == '.');
}

static bool type_is_code(unsigned type)
{
	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

/* True if the raw symbol is a function, which is then in ret_symbol. */
static bool table_symbol(struct table *t, int index, struct symbol *ret_symbol)
{
	GElf_Sym raw;
	Elf32_Word extended = 0;

	if (!gelf_getsymshndx(t->symbols, t->indices, index, &raw, &extended))
		return false;
	if (!type_is_code(GELF_ST_TYPE(raw.st_info)) || raw.st_shndx == SHN_UNDEF)
		return false;
	if (raw.st_shndx >= SHN_LORESERVE && raw.st_shndx != SHN_XINDEX)
		return false;

	uint32_t section = raw.st_shndx == SHN_XINDEX ? extended : raw.st_shndx;
	if (section != t->section)
		table_look_at_section(t, section);
	const char *name = t->executable ? strings_at(&t->names, raw.st_name) : NULL;
	if (!name || name_is_noise(name, t->machine))
		return false;

	if (t->machine == EM_ARM && GELF_ST_TYPE(raw.st_info) != STT_NOTYPE)
		raw.st_value &= ~(uint64_t)1; /* Thumb */
	uint64_t end = t->section_end;
	if (raw.st_size && __builtin_add_overflow(raw.st_value, raw.st_size, &end))
		end = UINT64_MAX;

	unsigned binding = GELF_ST_BIND(raw.st_info);
	*ret_symbol = (struct symbol){
		.start = raw.st_value,
		.end = end,
		.name = name,
		.rank = binding == STB_LOCAL  ? SYMBOL_LOCAL
			: binding == STB_WEAK ? SYMBOL_WEAK
					      : SYMBOL_GLOBAL,
		.sized = raw.st_size != 0,
	};
	return true;
}

static Elf_Data *table_indices(Elf *elf, size_t table_index)
{
	Elf_Scn *section = NULL;

	for (size_t i = 0; i < SECTIONS_MAX && (section = elf_nextscn(elf, section)); i++) {
		GElf_Shdr header;
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_SYMTAB_SHNDX &&
			header.sh_link == table_index)
			return section_data(section, &header);
	}
	return NULL;
}

int elf_symbols_collect(Elf *elf, uint32_t type, struct symbols *ret_symbols)
{
	GElf_Ehdr file;
	GElf_Shdr header;
	struct table table = {.elf = elf, .section = UINT32_MAX};

	Elf_Scn *section = section_of_type(elf, type, &table.symbols, &header);
	if (!section || !gelf_getehdr(elf, &file) ||
		!section_strings(elf, header.sh_link, &table.names))
		return ELF_SYMBOLS_NONE;
	table.machine = file.e_machine;
	table.indices = table_indices(elf, elf_ndxscn(section));

	size_t entry = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t n = entry ? table.symbols->d_size / entry : 0;
	if (n < 2)
		return ELF_SYMBOLS_NONE; /* the first is always a null symbol */
	if (n > INT32_MAX)
		return ELF_SYMBOLS_FULL;

	for (size_t i = 1; i < n; i++) {
		struct symbol symbol;
		if (!table_symbol(&table, (int)i, &symbol))
			continue;
		int r = symbols_add(ret_symbols, &symbol);
		if (r)
			return r == SYMBOLS_FULL ? ELF_SYMBOLS_FULL : r;
	}
	return 0;
}

/* Layout of a linkage table: `header` bytes, then entries of `entry` bytes in the order of the
 * relocations. Source: binutils bfd/elfxx-x86.c, elfnn-aarch64.c, elfnn-riscv.c. */
static const struct plt_layout {
	uint16_t machine;
	const char *section;
	uint32_t header, entry;
} plt_layouts[] = {
	{EM_X86_64, ".plt.sec", 0, 16},
	{EM_X86_64, ".plt", 16, 16},
	{EM_386, ".plt.sec", 0, 16},
	{EM_386, ".plt", 16, 16},
	{EM_AARCH64, ".plt", 32, 16},
	{EM_AARCH64, ".plt", 32, 24}, /* with branch target identification */
	{EM_RISCV, ".plt", 32, 16},
};

/* The symbol name of relocation i in .rela.plt or .rel.plt, or NULL. */
static const char *relocation_name(
	Elf_Data *relocations, uint32_t type, int i, Elf_Data *symbols, const struct strings *names)
{
	GElf_Rela with;
	GElf_Rel without;
	GElf_Sym symbol;
	uint64_t info;

	if (type == SHT_RELA) {
		if (!gelf_getrela(relocations, i, &with))
			return NULL;
		info = with.r_info;
	} else {
		if (!gelf_getrel(relocations, i, &without))
			return NULL;
		info = without.r_info;
	}

	uint64_t index = GELF_R_SYM(info);
	if (!index || index > INT32_MAX || !gelf_getsym(symbols, (int)index, &symbol))
		return NULL;
	const char *name = strings_at(names, symbol.st_name);
	return name && *name ? name : NULL;
}

struct relocations {
	Elf_Data *data, *symbols;
	struct strings names;
	uint32_t type;
	size_t n;
};

static bool plt_relocations(Elf *elf, struct relocations *ret)
{
	GElf_Shdr header, symbols_header;

	Elf_Scn *section = section_named(elf, ".rela.plt", &header);
	if (!section)
		section = section_named(elf, ".rel.plt", &header);
	ret->data = section_data(section, &header);
	if (!ret->data || (header.sh_type != SHT_RELA && header.sh_type != SHT_REL))
		return false;

	ret->symbols = section_data(elf_getscn(elf, header.sh_link), &symbols_header);
	if (!ret->symbols || symbols_header.sh_type != SHT_DYNSYM ||
		!section_strings(elf, symbols_header.sh_link, &ret->names))
		return false;

	bool rela = header.sh_type == SHT_RELA;
	size_t entry = gelf_fsize(elf, rela ? ELF_T_RELA : ELF_T_REL, 1, EV_CURRENT);
	ret->type = header.sh_type;
	ret->n = entry ? ret->data->d_size / entry : 0;
	return ret->n > 0 && ret->n <= IMAGE_SYMBOLS_MAX;
}

static int plt_add(const struct relocations *relocations, const struct plt_layout *layout,
	uint64_t addr, struct names *names, struct symbols *ret_symbols)
{
	for (size_t i = 0; i < relocations->n; i++) {
		uint64_t start = addr + layout->header + i * layout->entry;
		const char *name = relocation_name(relocations->data, relocations->type, (int)i,
			relocations->symbols, &relocations->names);
		if (!name || start > UINT64_MAX - layout->entry)
			continue;

		name = names_join(names, name, "@plt");
		if (!name)
			return -ENOMEM;
		int r = symbols_add(ret_symbols, &(struct symbol){
							 .start = start,
							 .end = start + layout->entry,
							 .name = name,
							 .rank = SYMBOL_PLT,
							 .sized = true,
						 });
		if (r)
			return r == SYMBOLS_FULL ? ELF_SYMBOLS_FULL : r;
	}
	return 0;
}

int elf_plt_collect(Elf *elf, struct names *names, struct symbols *ret_symbols)
{
	struct relocations relocations = {0};
	GElf_Ehdr file;

	if (!gelf_getehdr(elf, &file) || !plt_relocations(elf, &relocations))
		return 0;

	for (size_t i = 0; i < sizeof(plt_layouts) / sizeof(*plt_layouts); i++) {
		const struct plt_layout *layout = &plt_layouts[i];
		GElf_Shdr header;
		if (layout->machine != file.e_machine ||
			!section_named(elf, layout->section, &header))
			continue;

		/* Entries and relocations correspond only if their numbers match exactly. */
		if (header.sh_size != layout->header + relocations.n * layout->entry)
			continue;
		int r = plt_add(&relocations, layout, header.sh_addr, names, ret_symbols);
		if (r)
			return r;
	}
	return 0;
}
