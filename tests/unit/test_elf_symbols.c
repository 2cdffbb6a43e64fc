/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* ELF files made by hand, of which every field can be a lie, and what their symbols name.
 */

#include <check.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "daemon/namer/mini_debug.h"

static struct image_naming name_at(struct image *i, uint64_t offset)
{
	struct image_naming naming;

	image_name(i, offset, &naming);
	return naming;
}

/* --- files made by hand -------------------------------------------------------------------------
 *
 *      0      64       176    0x200       0x600     …
 *      │ ELF  │ 2 PT_LOAD │   │ .text     │ .symtab │ .strtab │ .shstrtab │ extra │ headers
 */

#define BASE 0x400000ull
#define TEXT 0x200u
#define TEXT_BYTES 0x400u

enum { S_NULL, S_TEXT, S_SYMTAB, S_STRTAB, S_SHSTRTAB, S_EXTRA, S_DATA, N_SECTIONS };

struct symbol_line {
	const char *name;
	uint32_t at, size; /* from the start of .text */
	uint8_t bind, type;
	uint16_t section;
};

struct made_elf {
	uint8_t bytes[16384];
	size_t n;
	Elf64_Ehdr *file;
	Elf64_Phdr *segment;
	Elf64_Shdr *section;
	Elf64_Sym *symbol;
};

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

static void make_elf(struct made_elf *e, const struct symbol_line *lines, size_t n_lines,
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

static int made_open(const void *bytes, size_t n, struct image **ret_image)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	int r = image_open_elf(fd, ret_image);
	close(fd);
	return r;
}

static struct image *made_image(const struct symbol_line *lines, size_t n)
{
	struct made_elf e;
	struct image *i = NULL;

	make_elf(&e, lines, n, "", 0);
	ck_assert_int_eq(made_open(e.bytes, e.n, &i), 0);
	return i;
}

static const char *symbol_at(struct image *i, uint32_t at)
{
	static struct image_naming n;

	image_name(i, TEXT + (uint64_t)at, &n);
	if (n.outcome != IMAGE_NAMED) {
		ck_assert_uint_eq(n.n_places, 0);
		return n.outcome == IMAGE_OUT_OF_SYMBOL ? "(out)" : "(none)";
	}
	return n.place[n.n_places - 1].function;
}

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define FUNCTION(name, at, size)                                                                   \
	{                                                                                          \
		name, at, size, STB_GLOBAL, STT_FUNC, S_TEXT                                       \
	}
#define LOCAL(name, at, size)                                                                      \
	{                                                                                          \
		name, at, size, STB_LOCAL, STT_FUNC, S_TEXT                                        \
	}
#define LABEL(name, at)                                                                            \
	{                                                                                          \
		name, at, 0, STB_LOCAL, STT_NOTYPE, S_TEXT                                         \
	}

START_TEST(an_address_beyond_its_symbol_is_unknown)
{
	static const struct symbol_line lines[] = {
		FUNCTION("f", 0x10, 0x20), FUNCTION("g", 0x40, 1)};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(symbol_at(i, 0x0f), "(out)");
	ck_assert_str_eq(symbol_at(i, 0x10), "f");
	ck_assert_str_eq(symbol_at(i, 0x2f), "f");
	ck_assert_str_eq(symbol_at(i, 0x30), "(out)");
	ck_assert_str_eq(symbol_at(i, 0x40), "g");
	ck_assert_str_eq(symbol_at(i, 0x41), "(out)");
	ck_assert_int_eq(name_at(i, 0x10000000).outcome, IMAGE_OUT_OF_SYMBOL);
	ck_assert_int_eq(name_at(i, UINT64_MAX).outcome, IMAGE_OUT_OF_SYMBOL);
	image_free(i);
}
END_TEST

START_TEST(symbols_without_size_reach_to_the_next)
{
	static const struct symbol_line lines[] = {LABEL("asm_a", 0x00), LABEL("asm_b", 0x20),
		FUNCTION("sized", 0x40, 0x20), LABEL("inside", 0x50), FUNCTION("asm_c", 0x80, 0)};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(symbol_at(i, 0x1f), "asm_a");
	ck_assert_str_eq(symbol_at(i, 0x3f), "asm_b");
	ck_assert_str_eq(symbol_at(i, 0x50), "sized");
	ck_assert_str_eq(symbol_at(i, 0x60), "(out)");
	ck_assert_str_eq(symbol_at(i, 0x7f), "(out)");
	ck_assert_str_eq(symbol_at(i, 0x80), "asm_c");
	ck_assert_str_eq(symbol_at(i, TEXT_BYTES - 1), "asm_c");
	image_free(i);
}
END_TEST

START_TEST(inner_symbols_win_and_outer_ones_go_on)
{
	static const struct symbol_line lines[] = {
		FUNCTION("outer", 0, 0x100), FUNCTION("inner", 0x40, 0x10)};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(symbol_at(i, 0x3f), "outer");
	ck_assert_str_eq(symbol_at(i, 0x40), "inner");
	ck_assert_str_eq(symbol_at(i, 0x50), "outer");
	ck_assert_str_eq(symbol_at(i, 0x100), "(out)");
	image_free(i);
}
END_TEST

START_TEST(aliases_prefer_global_few_underscores_and_short)
{
	static const struct symbol_line lines[] = {
		LOCAL("a", 0, 16),
		FUNCTION("__write", 0, 16),
		{"write", 0, 16, STB_WEAK, STT_FUNC, S_TEXT},
		LOCAL("b", 0x10, 16),
		{"weak", 0x10, 16, STB_WEAK, STT_FUNC, S_TEXT},
		FUNCTION("_read", 0x20, 16),
		FUNCTION("__read", 0x20, 16),
		FUNCTION("readable", 0x20, 16),
		FUNCTION("longer", 0x30, 16),
		FUNCTION("short", 0x30, 16),
		LABEL("start", 0x40),
		LOCAL("sized_start", 0x40, 8),
	};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(symbol_at(i, 0x00), "__write");
	ck_assert_str_eq(symbol_at(i, 0x10), "weak");
	ck_assert_str_eq(symbol_at(i, 0x20), "readable");
	ck_assert_str_eq(symbol_at(i, 0x30), "short");
	ck_assert_str_eq(symbol_at(i, 0x40), "sized_start");
	image_free(i);
}
END_TEST

START_TEST(what_is_not_code_is_left_out)
{
	static const struct symbol_line lines[] = {
		{"object", 0, 64, STB_GLOBAL, STT_OBJECT, S_TEXT},
		{"undefined", 0, 64, STB_GLOBAL, STT_FUNC, SHN_UNDEF},
		{"absolute", 0, 64, STB_GLOBAL, STT_FUNC, SHN_ABS},
		{"in_data", 0, 64, STB_GLOBAL, STT_FUNC, S_DATA},
		{"nowhere", 0, 64, STB_GLOBAL, STT_FUNC, 77},
		{"file.c", 0, 64, STB_LOCAL, STT_FILE, S_TEXT},
		LABEL(".L42", 0),
		LABEL("", 0),
		LABEL("_etext", TEXT_BYTES),
	};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(symbol_at(i, 0), "(none)");
	ck_assert(!image_has_symbols(i));
	image_free(i);
}
END_TEST

START_TEST(mapping_symbols_are_left_out_where_they_exist)
{
	static const struct {
		uint16_t machine;
		const char *name;
		bool noise;
	} cases[] = {{EM_X86_64, "$x", false}, {EM_AARCH64, "$x", true},
		{EM_AARCH64, "$d.12", true}, {EM_ARM, "$t", true}, {EM_ARM, "$a.1", true},
		{243, "$x", true}, {243, "$d", true}, {243, "$xrv64i2p1_m2p0", true},
		{EM_AARCH64, "$xyz", false}, {EM_AARCH64, "$", false}};
	struct symbol_line line = LABEL(cases[_i].name, 0);
	struct made_elf e;
	struct image *i = NULL;

	make_elf(&e, &line, 1, "", 0);
	e.file->e_machine = cases[_i].machine;
	ck_assert_int_eq(made_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(symbol_at(i, 0), cases[_i].noise ? "(none)" : cases[_i].name);
	image_free(i);
}
END_TEST

START_TEST(mangled_symbols_are_demangled)
{
	static const struct symbol_line lines[] = {
		FUNCTION("_ZN2ns1fEi", 0, 16), FUNCTION("_RNvNtCs1234_7mycrate3foo3bar", 16, 16)};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(symbol_at(i, 0), "ns::f");
	ck_assert_str_eq(symbol_at(i, 16), "mycrate::foo::bar");
	image_free(i);
}
END_TEST

/* --- lies ---------------------------------------------------------------------------------------
 */

static const struct symbol_line two[] = {FUNCTION("f", 0x10, 0x20), FUNCTION("g", 0x40, 0x10)};

/* Whatever the file says, the result is one of the outcomes, and naming it is safe. */
static void assert_survived(const void *bytes, size_t n)
{
	struct image *i = NULL;
	struct image_wants wants;

	int r = made_open(bytes, n, &i);
	ck_assert(r == 0 || r == IMAGE_MALFORMED || r == IMAGE_OVERSIZE);
	if (r) {
		ck_assert_ptr_null(i);
		return;
	}
	for (uint32_t at = 0; at < 0x60; at += 0x10)
		(void)symbol_at(i, at);
	image_wants(i, &wants);
	image_free(i);
}

START_TEST(garbage_is_malformed)
{
	static const char *const garbage[] = {"", "x", "\177ELF", "\177ELF\x02\x01\x01",
		"#!/bin/sh\necho this is not an ELF file\n", "!<arch>\nabcdefghijklmnopqrstuvwxyz"};
	struct image *i = NULL;

	ck_assert_int_eq(made_open(garbage[_i], strlen(garbage[_i]), &i), IMAGE_MALFORMED);
	ck_assert_ptr_null(i);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	struct image *i = NULL;
	int fds[2];

	ck_assert_int_eq(image_open_elf(-1, &i), -EBADF);
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(image_open_elf(fds[0], &i), IMAGE_MALFORMED);
	int directory_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(image_open_elf(directory_fd, &i), IMAGE_MALFORMED);
	int huge = memfd_create("huge", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(huge, (off_t)5 << 30), 0);
	ck_assert_int_eq(image_open_elf(huge, &i), IMAGE_OVERSIZE);
	ck_assert_ptr_null(i);
	close(fds[0]);
	close(fds[1]);
	close(directory_fd);
	close(huge);
}
END_TEST

START_TEST(truncation_at_every_length_is_survived)
{
	struct made_elf e;

	make_elf(&e, two, COUNT(two), "", 0);
	for (size_t n = 0; n < e.n; n++)
		assert_survived(e.bytes, n);
	struct image *i = NULL;
	ck_assert_int_eq(made_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(symbol_at(i, 0x10), "f");
	image_free(i);
}
END_TEST

START_TEST(any_single_byte_may_be_wrong)
{
	struct made_elf e;

	make_elf(&e, two, COUNT(two), "", 0);
	for (size_t k = 0; k < e.n; k++) {
		if (k >= TEXT && k < TEXT + TEXT_BYTES)
			continue;
		uint8_t kept = e.bytes[k];
		e.bytes[k] ^= _i ? 0x80 : 0xff;
		assert_survived(e.bytes, e.n);
		e.bytes[k] = kept;
	}
}
END_TEST

START_TEST(section_headers_may_lie)
{
	static const uint64_t values[] = {
		0, 1, 7, 0x10000, UINT32_MAX, INT64_MAX, UINT64_MAX - 7, UINT64_MAX};
	struct made_elf e;

	for (int section = 0; section < N_SECTIONS; section++)
		for (size_t v = 0; v < COUNT(values); v++)
			for (int field = 0; field < 6; field++) {
				make_elf(&e, two, COUNT(two), "extra", 5);
				Elf64_Shdr *s = &e.section[section];
				uint64_t *wide[] = {
					&s->sh_offset, &s->sh_size, &s->sh_entsize, &s->sh_addr};
				if (field < 4)
					*wide[field] = values[v];
				else if (field == 4)
					s->sh_link = (uint32_t)values[v];
				else
					s->sh_name = (uint32_t)values[v];
				assert_survived(e.bytes, e.n);
			}
}
END_TEST

START_TEST(counts_of_headers_may_lie)
{
	struct made_elf e;

	make_elf(&e, two, COUNT(two), "", 0);
	e.file->e_shnum = 0xfeff;
	assert_survived(e.bytes, e.n);
	e.file->e_shnum = 0; /* then the first header says how many */
	e.section[0].sh_size = UINT64_MAX / 2;
	assert_survived(e.bytes, e.n);
	make_elf(&e, two, COUNT(two), "", 0);
	e.file->e_phnum = 0xfffe;
	assert_survived(e.bytes, e.n);
	e.file->e_phnum = PN_XNUM;
	e.section[0].sh_info = UINT32_MAX;
	assert_survived(e.bytes, e.n);
	make_elf(&e, two, COUNT(two), "", 0);
	e.file->e_shstrndx = SHN_XINDEX;
	e.section[0].sh_link = UINT32_MAX;
	assert_survived(e.bytes, e.n);
}
END_TEST

START_TEST(names_out_of_their_table_are_ignored)
{
	static const uint32_t offsets[] = {0x100, 0x10000, UINT32_MAX};
	struct made_elf e;
	struct image *i = NULL;

	make_elf(&e, two, COUNT(two), "", 0);
	e.symbol[1].st_name = offsets[_i];
	ck_assert_int_eq(made_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(symbol_at(i, 0x10), "(out)");
	ck_assert_str_eq(symbol_at(i, 0x40), "g");
	image_free(i);
}
END_TEST

START_TEST(a_name_without_an_end_is_ignored)
{
	struct made_elf e;
	struct image *i = NULL;

	make_elf(&e, two, COUNT(two), "", 0);
	e.section[S_STRTAB].sh_size -= 1; /* takes the NUL of "g" */
	ck_assert_int_eq(made_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(symbol_at(i, 0x10), "f");
	ck_assert_str_eq(symbol_at(i, 0x40), "(out)");
	image_free(i);
}
END_TEST

START_TEST(sizes_that_wrap_end_with_the_address_space)
{
	struct made_elf e;
	struct image *i = NULL;

	make_elf(&e, two, COUNT(two), "", 0);
	e.symbol[1].st_size = UINT64_MAX;
	ck_assert_int_eq(made_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(symbol_at(i, 0x10), "f");
	ck_assert_str_eq(symbol_at(i, 0x40), "g");
	ck_assert_str_eq(symbol_at(i, 0x50), "f");
	image_free(i);
}
END_TEST

/* --- mini debug information ----------------------------------------------------------------------
 */

/* A stripped file with a section of `packed` bytes, or of the packed `lines` if NULL. */
static void make_mini(struct made_elf *e, const struct symbol_line *lines, size_t n_lines,
	uint8_t *packed, size_t *n_packed)
{
	struct made_elf inner;
	size_t n = 0;

	make_elf(&inner, lines, n_lines, "", 0);
	ck_assert_int_eq(lzma_easy_buffer_encode(
				 6, LZMA_CHECK_CRC32, NULL, inner.bytes, inner.n, packed, &n, 4096),
		LZMA_OK);
	*n_packed = n;
	make_elf(e, NULL, 0, packed, n);
	e->section[S_SYMTAB].sh_type = SHT_PROGBITS;
}

START_TEST(mini_debug_information_is_unpacked)
{
	struct made_elf e;
	struct image *i = NULL;
	uint8_t packed[4096];
	size_t n;

	make_mini(&e, two, COUNT(two), packed, &n);
	ck_assert_int_eq(made_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(symbol_at(i, 0x10), "f");
	ck_assert_str_eq(symbol_at(i, 0x40), "g");
	image_free(i);
}
END_TEST

START_TEST(broken_mini_debug_information_is_no_symbols)
{
	struct made_elf e;
	struct image *i;
	uint8_t packed[4096];
	size_t n;

	make_mini(&e, two, COUNT(two), packed, &n);
	for (size_t cut = 0; cut < n; cut++) {
		make_elf(&e, NULL, 0, packed, cut);
		ck_assert_int_eq(made_open(e.bytes, e.n, &i), 0);
		ck_assert_str_eq(symbol_at(i, 0x10), "(none)");
		image_free(i);
	}
	for (size_t k = 0; k < n; k++) {
		make_elf(&e, NULL, 0, packed, n);
		e.bytes[e.section[S_EXTRA].sh_offset + k] ^= 0x55;
		assert_survived(e.bytes, e.n);
	}
}
END_TEST

START_TEST(a_bomb_in_mini_debug_information_is_given_up)
{
	size_t n = MINI_DEBUG_BYTES_MAX + 1, n_packed = 0, size = 256 << 10;
	uint8_t *zeros = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *packed = malloc(size), *file = malloc(size + sizeof(struct made_elf));
	struct made_elf e;
	struct image *i = NULL;

	ck_assert(zeros != MAP_FAILED && packed && file);
	ck_assert_int_eq(lzma_easy_buffer_encode(
				 0, LZMA_CHECK_NONE, NULL, zeros, n, packed, &n_packed, size),
		LZMA_OK);
	make_elf(&e, NULL, 0, "", 0);
	e.section[S_EXTRA].sh_offset = e.n;
	e.section[S_EXTRA].sh_size = n_packed;
	memcpy(file, e.bytes, e.n);
	memcpy(file + e.n, packed, n_packed);
	ck_assert_int_eq(made_open(file, e.n + n_packed, &i), 0);
	ck_assert_str_eq(symbol_at(i, 0), "(none)");
	image_free(i);
	free(file);
	free(packed);
	munmap(zeros, n);
}
END_TEST

static void add_hand_made(TCase *tcase)
{
	tcase_add_test(tcase, an_address_beyond_its_symbol_is_unknown);
	tcase_add_test(tcase, symbols_without_size_reach_to_the_next);
	tcase_add_test(tcase, inner_symbols_win_and_outer_ones_go_on);
	tcase_add_test(tcase, aliases_prefer_global_few_underscores_and_short);
	tcase_add_test(tcase, what_is_not_code_is_left_out);
	tcase_add_loop_test(tcase, mapping_symbols_are_left_out_where_they_exist, 0, 10);
	tcase_add_test(tcase, mangled_symbols_are_demangled);
	tcase_add_loop_test(tcase, garbage_is_malformed, 0, 6);
	tcase_add_test(tcase, what_is_no_file_is_refused);
	tcase_add_test(tcase, truncation_at_every_length_is_survived);
	tcase_add_loop_test(tcase, any_single_byte_may_be_wrong, 0, 2);
	tcase_add_test(tcase, section_headers_may_lie);
	tcase_add_test(tcase, counts_of_headers_may_lie);
	tcase_add_loop_test(tcase, names_out_of_their_table_are_ignored, 0, 3);
	tcase_add_test(tcase, a_name_without_an_end_is_ignored);
	tcase_add_test(tcase, sizes_that_wrap_end_with_the_address_space);
	tcase_add_test(tcase, mini_debug_information_is_unpacked);
	tcase_add_test(tcase, broken_mini_debug_information_is_no_symbols);
	tcase_add_test(tcase, a_bomb_in_mini_debug_information_is_given_up);
}

int main(void)
{
	Suite *suite = suite_create("elf_symbols");
	TCase *made = tcase_create("made");

	tcase_set_timeout(made, 120);
	add_hand_made(made);
	suite_add_tcase(suite, made);

	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed != 0;
}
