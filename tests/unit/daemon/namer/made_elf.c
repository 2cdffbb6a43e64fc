/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The parts are laid one behind the other, and every header points at where it was put.
 */
#include "tests/unit/daemon/namer/made_elf.h"

#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char made_names[] = "\0.text\0.symtab\0.strtab\0.shstrtab\0.gnu_debugdata\0.data";

static void made_add(struct made_elf *e, int section, const void *bytes, size_t n)
{
	e->n = (e->n + 7) & ~(size_t)7;
	e->section[section].sh_offset = e->n;
	e->section[section].sh_size = n;
	memcpy(e->bytes + e->n, bytes, n);
	e->n += n;
}

static void made_symbols(struct made_elf *e, const struct symbol_line *lines, size_t n)
{
	Elf64_Sym symbols[64] = {0};
	char strings[4096] = "";
	size_t n_strings = 1;

	for (size_t i = 0; i < n; i++) {
		symbols[i + 1] = (Elf64_Sym){
			.st_name = (Elf64_Word)n_strings,
			.st_value = BASE + TEXT + lines[i].at,
			.st_size = lines[i].size,
			.st_info = ELF64_ST_INFO(lines[i].bind, lines[i].type),
			.st_shndx = lines[i].section,
		};
		memcpy(strings + n_strings, lines[i].name, strlen(lines[i].name) + 1);
		n_strings += strlen(lines[i].name) + 1;
	}
	made_add(e, S_SYMTAB, symbols, (n + 1) * sizeof(*symbols));
	e->symbol = (Elf64_Sym *)(e->bytes + e->section[S_SYMTAB].sh_offset);
	made_add(e, S_STRTAB, strings, n_strings);
}

void made_elf_fill(struct made_elf *e, const struct symbol_line *lines, size_t n_lines,
	const void *extra, size_t n_extra)
{
	static Elf64_Shdr sections[N_SECTIONS];
	memset(e, 0, sizeof(*e));
	memset(sections, 0, sizeof(sections));
	e->section = sections;
	e->n = TEXT + TEXT_BYTES;

	sections[S_TEXT] = (Elf64_Shdr){.sh_name = 1,
		.sh_type = SHT_PROGBITS,
		.sh_addr = BASE + TEXT,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_offset = TEXT,
		.sh_size = TEXT_BYTES};
	sections[S_SYMTAB] = (Elf64_Shdr){.sh_name = 7,
		.sh_type = SHT_SYMTAB,
		.sh_link = S_STRTAB,
		.sh_entsize = sizeof(Elf64_Sym),
		.sh_addralign = 8};
	sections[S_STRTAB] = (Elf64_Shdr){.sh_name = 15, .sh_type = SHT_STRTAB};
	sections[S_SHSTRTAB] = (Elf64_Shdr){.sh_name = 23, .sh_type = SHT_STRTAB};
	sections[S_EXTRA] = (Elf64_Shdr){.sh_name = 33, .sh_type = SHT_PROGBITS};
	sections[S_DATA] = (Elf64_Shdr){.sh_name = 48,
		.sh_type = SHT_NOBITS,
		.sh_flags = SHF_ALLOC | SHF_WRITE,
		.sh_addr = BASE + TEXT,
		.sh_size = TEXT_BYTES};
	made_symbols(e, lines, n_lines);
	made_add(e, S_SHSTRTAB, made_names, sizeof(made_names));
	made_add(e, S_EXTRA, extra, n_extra);

	e->n = (e->n + 7) & ~(size_t)7;
	size_t headers = e->n;
	memcpy(e->bytes + headers, sections, sizeof(sections));
	e->section = (Elf64_Shdr *)(e->bytes + headers);
	e->n += sizeof(sections);

	e->file = (Elf64_Ehdr *)e->bytes;
	*e->file = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB,
			EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_shoff = headers,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = N_SECTIONS,
		.e_shstrndx = S_SHSTRTAB,
	};
	/* The same bytes first as data elsewhere: only the executable copy counts. */
	e->segment = (Elf64_Phdr *)(e->bytes + sizeof(Elf64_Ehdr));
	e->segment[0] = (Elf64_Phdr){.p_type = PT_LOAD,
		.p_flags = PF_R | PF_W,
		.p_vaddr = 0x900000,
		.p_filesz = TEXT + TEXT_BYTES,
		.p_memsz = TEXT + TEXT_BYTES};
	e->segment[1] = (Elf64_Phdr){.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_vaddr = BASE,
		.p_filesz = TEXT + TEXT_BYTES,
		.p_memsz = TEXT + TEXT_BYTES};
}

int made_elf_open(const void *bytes, size_t n, struct image **ret_image)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	int r = image_open_elf(fd, ret_image);
	close(fd);
	return r;
}
const char *made_elf_symbol(struct image *i, uint32_t at)
{
	static struct image_naming n;

	image_name(i, TEXT + (uint64_t)at, &n);
	if (n.outcome != IMAGE_NAMED) {
		ck_assert_uint_eq(n.n_places, 0);
		return n.outcome == IMAGE_OUT_OF_SYMBOL ? "(out)" : "(none)";
	}
	return n.place[n.n_places - 1].function;
}
void made_elf_survives(const void *bytes, size_t n)
{
	struct image *i = NULL;
	struct image_wants wants;

	int r = made_elf_open(bytes, n, &i);
	ck_assert(r == 0 || r == IMAGE_MALFORMED || r == IMAGE_OVERSIZE);
	if (r) {
		ck_assert_ptr_null(i);
		return;
	}
	for (uint32_t at = 0; at < 0x60; at += 0x10)
		(void)made_elf_symbol(i, at);
	image_wants(i, &wants);
	image_free(i);
}
