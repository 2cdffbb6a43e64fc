/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* ELF files made by hand, of which every field can be a lie, and what their symbols name. */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/namer/image.h"
#include "tests/unit/daemon/namer/made_elf.h"
#include "tests/unit/test.h"

static struct image_naming name_at(struct image *i, uint64_t offset)
{
	struct image_naming naming;

	image_name(i, offset, &naming);
	return naming;
}

static struct image *made_image(const struct symbol_line *lines, size_t n)
{
	struct made_elf e;
	struct image *i = NULL;

	made_elf_fill(&e, lines, n, "", 0);
	ck_assert_int_eq(made_elf_open(e.bytes, e.n, &i), 0);
	return i;
}

EACH_TEST(.seconds = 120);

TEST(an_address_beyond_its_symbol_is_unknown)
{
	static const struct symbol_line lines[] = {
		FUNCTION("f", 0x10, 0x20), FUNCTION("g", 0x40, 1)};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(made_elf_symbol(i, 0x0f), "(out)");
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "f");
	ck_assert_str_eq(made_elf_symbol(i, 0x2f), "f");
	ck_assert_str_eq(made_elf_symbol(i, 0x30), "(out)");
	ck_assert_str_eq(made_elf_symbol(i, 0x40), "g");
	ck_assert_str_eq(made_elf_symbol(i, 0x41), "(out)");
	ck_assert_int_eq(name_at(i, 0x10000000).outcome, IMAGE_OUT_OF_SYMBOL);
	ck_assert_int_eq(name_at(i, UINT64_MAX).outcome, IMAGE_OUT_OF_SYMBOL);
	image_free(i);
}

TEST(symbols_without_size_reach_to_the_next)
{
	static const struct symbol_line lines[] = {LABEL("asm_a", 0x00), LABEL("asm_b", 0x20),
		FUNCTION("sized", 0x40, 0x20), LABEL("inside", 0x50), FUNCTION("asm_c", 0x80, 0)};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(made_elf_symbol(i, 0x1f), "asm_a");
	ck_assert_str_eq(made_elf_symbol(i, 0x3f), "asm_b");
	ck_assert_str_eq(made_elf_symbol(i, 0x50), "sized");
	ck_assert_str_eq(made_elf_symbol(i, 0x60), "(out)");
	ck_assert_str_eq(made_elf_symbol(i, 0x7f), "(out)");
	ck_assert_str_eq(made_elf_symbol(i, 0x80), "asm_c");
	ck_assert_str_eq(made_elf_symbol(i, TEXT_BYTES - 1), "asm_c");
	image_free(i);
}

TEST(inner_symbols_win_and_outer_ones_go_on)
{
	static const struct symbol_line lines[] = {
		FUNCTION("outer", 0, 0x100), FUNCTION("inner", 0x40, 0x10)};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(made_elf_symbol(i, 0x3f), "outer");
	ck_assert_str_eq(made_elf_symbol(i, 0x40), "inner");
	ck_assert_str_eq(made_elf_symbol(i, 0x50), "outer");
	ck_assert_str_eq(made_elf_symbol(i, 0x100), "(out)");
	image_free(i);
}

TEST(aliases_prefer_global_few_underscores_and_short)
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

	ck_assert_str_eq(made_elf_symbol(i, 0x00), "__write");
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "weak");
	ck_assert_str_eq(made_elf_symbol(i, 0x20), "readable");
	ck_assert_str_eq(made_elf_symbol(i, 0x30), "short");
	ck_assert_str_eq(made_elf_symbol(i, 0x40), "sized_start");
	image_free(i);
}

TEST(what_is_not_code_is_left_out)
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

	ck_assert_str_eq(made_elf_symbol(i, 0), "(none)");
	ck_assert(!image_has_symbols(i));
	image_free(i);
}

TEST(mapping_symbols_are_left_out_where_they_exist, .times = 10)
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

	made_elf_fill(&e, &line, 1, "", 0);
	e.file->e_machine = cases[_i].machine;
	ck_assert_int_eq(made_elf_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0), cases[_i].noise ? "(none)" : cases[_i].name);
	image_free(i);
}

TEST(mangled_symbols_are_demangled)
{
	static const struct symbol_line lines[] = {
		FUNCTION("_ZN2ns1fEi", 0, 16), FUNCTION("_RNvNtCs1234_7mycrate3foo3bar", 16, 16)};
	struct image *i = made_image(lines, COUNT(lines));

	ck_assert_str_eq(made_elf_symbol(i, 0), "ns::f");
	ck_assert_str_eq(made_elf_symbol(i, 16), "mycrate::foo::bar");
	image_free(i);
}

/* --- lies ------------------------------------------------------------------------------------- */

static const struct symbol_line two[] = {FUNCTION("f", 0x10, 0x20), FUNCTION("g", 0x40, 0x10)};

TEST(garbage_is_malformed, .times = 6)
{
	static const char *const garbage[] = {"", "x", "\177ELF", "\177ELF\x02\x01\x01",
		"#!/bin/sh\necho this is not an ELF file\n", "!<arch>\nabcdefghijklmnopqrstuvwxyz"};
	struct image *i = NULL;

	ck_assert_int_eq(made_elf_open(garbage[_i], strlen(garbage[_i]), &i), IMAGE_MALFORMED);
	ck_assert_ptr_null(i);
}

TEST(what_is_no_file_is_refused)
{
	struct image *i = NULL;
	int fds[2];

	ck_assert_int_eq(image_open_elf(-1, &i), -EBADF);
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(image_open_elf(fds[0], &i), IMAGE_MALFORMED);
	int directory_fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(image_open_elf(directory_fd, &i), IMAGE_MALFORMED);
	int huge = memfd_create("huge", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(huge, (off_t)65 << 30), 0);
	ck_assert_int_eq(image_open_elf(huge, &i), IMAGE_OVERSIZE);
	ck_assert_ptr_null(i);
	close(fds[0]);
	close(fds[1]);
	close(directory_fd);
	close(huge);
}

TEST(truncation_at_every_length_is_survived)
{
	struct made_elf e;

	made_elf_fill(&e, two, COUNT(two), "", 0);
	for (size_t n = 0; n < e.n; n++)
		made_elf_survives(e.bytes, n);
	struct image *i = NULL;
	ck_assert_int_eq(made_elf_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "f");
	image_free(i);
}

TEST(any_single_byte_may_be_wrong, .times = 2)
{
	struct made_elf e;

	made_elf_fill(&e, two, COUNT(two), "", 0);
	for (size_t k = 0; k < e.n; k++) {
		if (k >= TEXT && k < TEXT + TEXT_BYTES)
			continue;
		uint8_t kept = e.bytes[k];
		e.bytes[k] ^= _i ? 0x80 : 0xff;
		made_elf_survives(e.bytes, e.n);
		e.bytes[k] = kept;
	}
}

TEST(section_headers_may_lie)
{
	static const uint64_t values[] = {
		0, 1, 7, 0x10000, UINT32_MAX, INT64_MAX, UINT64_MAX - 7, UINT64_MAX};
	struct made_elf e;

	for (int section = 0; section < N_SECTIONS; section++)
		for (size_t v = 0; v < COUNT(values); v++)
			for (int field = 0; field < 6; field++) {
				made_elf_fill(&e, two, COUNT(two), "extra", 5);
				Elf64_Shdr *s = &e.section[section];
				uint64_t *wide[] = {
					&s->sh_offset, &s->sh_size, &s->sh_entsize, &s->sh_addr};
				if (field < 4)
					*wide[field] = values[v];
				else if (field == 4)
					s->sh_link = (uint32_t)values[v];
				else
					s->sh_name = (uint32_t)values[v];
				made_elf_survives(e.bytes, e.n);
			}
}

TEST(counts_of_headers_may_lie)
{
	struct made_elf e;

	made_elf_fill(&e, two, COUNT(two), "", 0);
	e.file->e_shnum = 0xfeff;
	made_elf_survives(e.bytes, e.n);
	e.file->e_shnum = 0; /* then the first header says how many */
	e.section[0].sh_size = UINT64_MAX / 2;
	made_elf_survives(e.bytes, e.n);
	made_elf_fill(&e, two, COUNT(two), "", 0);
	e.file->e_phnum = 0xfffe;
	made_elf_survives(e.bytes, e.n);
	e.file->e_phnum = PN_XNUM;
	e.section[0].sh_info = UINT32_MAX;
	made_elf_survives(e.bytes, e.n);
	made_elf_fill(&e, two, COUNT(two), "", 0);
	e.file->e_shstrndx = SHN_XINDEX;
	e.section[0].sh_link = UINT32_MAX;
	made_elf_survives(e.bytes, e.n);
}

TEST(names_out_of_their_table_are_ignored, .times = 3)
{
	static const uint32_t offsets[] = {0x100, 0x10000, UINT32_MAX};
	struct made_elf e;
	struct image *i = NULL;

	made_elf_fill(&e, two, COUNT(two), "", 0);
	e.symbol[1].st_name = offsets[_i];
	ck_assert_int_eq(made_elf_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "(out)");
	ck_assert_str_eq(made_elf_symbol(i, 0x40), "g");
	image_free(i);
}

TEST(a_name_without_an_end_is_ignored)
{
	struct made_elf e;
	struct image *i = NULL;

	made_elf_fill(&e, two, COUNT(two), "", 0);
	e.section[S_STRTAB].sh_size -= 1; /* takes the NUL of "g" */
	ck_assert_int_eq(made_elf_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "f");
	ck_assert_str_eq(made_elf_symbol(i, 0x40), "(out)");
	image_free(i);
}

/* libelf copies a table that it takes for anything but bytes, unless it is aligned; the copy goes
 * when the debug information of the file is dropped. */
TEST(names_in_a_copy_of_libelf_are_not_used)
{
	struct made_elf e;
	struct image *i = NULL;

	made_elf_fill(&e, two, COUNT(two), "", 0);
	Elf64_Shdr *strings = &e.section[S_STRTAB];
	memset(e.bytes + e.n, 0, 64);
	memcpy(e.bytes + e.n + 1, e.bytes + strings->sh_offset, strings->sh_size);
	*strings = (Elf64_Shdr){.sh_name = strings->sh_name,
		.sh_type = SHT_STRTAB,
		.sh_offset = e.n + 1,
		.sh_size = 48};
	ck_assert_int_eq(made_elf_open(e.bytes, e.n + 64, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "f");
	image_free(i);
	strings->sh_type = SHT_DYNAMIC;
	ck_assert_int_eq(made_elf_open(e.bytes, e.n + 64, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "(none)");
	image_free(i);
}

TEST(sizes_that_wrap_end_with_the_address_space)
{
	struct made_elf e;
	struct image *i = NULL;

	made_elf_fill(&e, two, COUNT(two), "", 0);
	e.symbol[1].st_size = UINT64_MAX;
	ck_assert_int_eq(made_elf_open(e.bytes, e.n, &i), 0);
	ck_assert_str_eq(made_elf_symbol(i, 0x10), "f");
	ck_assert_str_eq(made_elf_symbol(i, 0x40), "g");
	ck_assert_str_eq(made_elf_symbol(i, 0x50), "f");
	image_free(i);
}
