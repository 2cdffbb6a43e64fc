/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Line tables made by hand, spoilt ones, and this program's own beside libdw. */

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/namer/line_table.h"
#include "tests/unit/test.h"

/* A table of version 4, as an assembler writes it: opcode_base 13, line_base -5, line_range 14. */
struct made {
	uint8_t bytes[65536];
	size_t n, rest, program;
};

static void put(struct made *m, const void *bytes, size_t n)
{
	ck_assert_uint_le(m->n + n, sizeof(m->bytes));
	memcpy(m->bytes + m->n, bytes, n);
	m->n += n;
}

static void put_byte(struct made *m, unsigned byte)
{
	put(m, &(uint8_t){(uint8_t)byte}, 1);
}

static void put_leb(struct made *m, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put_byte(m, (unsigned)(value & 0x7f) | 0x80);
	put_byte(m, (unsigned)value);
}

static void made_begin(struct made *m, uint16_t version)
{
	static const uint8_t operands[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
	*m = (struct made){.n = 0};
	put(m, &(uint32_t){0}, 4); /* length: made_end */
	put(m, &version, 2);
	if (version == 5)
		put(m, "\x08\x00", 2);
	m->rest = m->n;
	put(m, &(uint32_t){0}, 4); /* of the header: made_program */
	put_byte(m, 1);
	if (version >= 4)
		put_byte(m, 1);
	put_byte(m, 1);
	put_byte(m, (uint8_t)-5);
	put_byte(m, 14);
	put_byte(m, 13);
	put(m, operands, sizeof(operands));
}

static void made_program(struct made *m)
{
	uint32_t rest = (uint32_t)(m->n - m->rest - 4);
	memcpy(m->bytes + m->rest, &rest, 4);
	m->program = m->n;
}

static void made_end(struct made *m)
{
	uint32_t bytes = (uint32_t)(m->n - 4);
	memcpy(m->bytes, &bytes, 4);
}

static void names_of_version_4(struct made *m)
{
	put(m, "inc\0/abs\0", 10);   /* directories 1 and 2 */
	put(m, "a.c\0\0\0\0", 7);    /* file 1, in the compilation's directory */
	put(m, "b.h\0\1\0\0", 7);    /* 2, in inc */
	put(m, "c.h\0\2\0\0", 7);    /* 3, in /abs */
	put(m, "/d.h\0\1\0\0\0", 9); /* 4, and the end */
}

static void set_address(struct made *m, uint64_t address)
{
	put(m, "\0\x09\x02", 3);
	put(m, &address, 8);
}

static void row(struct made *m, uint64_t advance, int line, unsigned file)
{
	put_byte(m, DW_LNS_advance_pc);
	put_leb(m, advance);
	put_byte(m, DW_LNS_advance_line);
	put_byte(m, (unsigned)line & 0x7f);
	put_byte(m, DW_LNS_set_file);
	put_leb(m, file);
	put_byte(m, DW_LNS_copy);
}

static void end_sequence(struct made *m, uint64_t advance)
{
	put_byte(m, DW_LNS_advance_pc);
	put_leb(m, advance);
	put(m, "\0\1\1", 3);
}

static struct names names;

static int open_made(const struct made *m, size_t n, struct line_table **ret_table)
{
	const struct line_sections sections = {.line = {m->bytes, n}};
	return line_table_new(&sections, 0, "/src", &names, ret_table);
}

static void expect(struct line_table *t, uint64_t addr, const char *wanted, uint64_t wanted_line)
{
	const char *source;
	uint64_t line;

	line_table_find(t, addr, &source, &line);
	ck_assert_msg(line == wanted_line, "%#llx: line %llu", (unsigned long long)addr,
		(unsigned long long)line);
	if (wanted)
		ck_assert_str_eq(source, wanted);
	else
		ck_assert_ptr_null(source);
}

static void made_small(struct made *m)
{
	made_begin(m, 4);
	names_of_version_4(m);
	made_program(m);
	set_address(m, 0x2000);
	row(m, 0, 9, 1);  /* 0x2000: a.c:10 */
	row(m, 8, 5, 2);  /* 0x2008: inc/b.h:15 */
	row(m, 0, -3, 3); /* … and /abs/c.h:12, which is the last one there */
	row(m, 4, 1, 4);  /* 0x200c: /d.h:13 */
	end_sequence(m, 4);
	set_address(m, 0x1000);
	put_byte(m, 13 + 5 + 2);      /* special: line + 2 */
	put_byte(m, 13 + 5 + 14 * 3); /* address + 3 */
	end_sequence(m, 1);
	made_end(m);
}

static void teardown(void)
{
	names_clear(&names);
}

EACH_TEST(.end = teardown);

TEST(an_address_has_the_last_row_at_or_before_it)
{
	static struct made m;
	struct line_table *t;
	made_small(&m);
	ck_assert_int_eq(open_made(&m, m.n, &t), 0);
	expect(t, 0x2000, "/src/a.c", 10);
	expect(t, 0x2007, "/src/a.c", 10);
	expect(t, 0x2008, "/abs/c.h", 12);
	expect(t, 0x200b, "/abs/c.h", 12);
	expect(t, 0x200f, "/d.h", 13);
	ck_assert_str_eq(line_table_source(t, 2), "/src/inc/b.h");
	line_table_free(t);
}

TEST(sequences_end_and_need_not_be_in_order)
{
	static struct made m;
	struct line_table *t;
	made_small(&m);
	ck_assert_int_eq(open_made(&m, m.n, &t), 0);
	expect(t, 0x0fff, NULL, 0);
	expect(t, 0x1000, "/src/a.c", 3);
	expect(t, 0x1003, "/src/a.c", 3);
	expect(t, 0x1004, NULL, 0);
	expect(t, 0x1fff, NULL, 0);
	expect(t, 0x2010, NULL, 0);
	ck_assert_ptr_null(line_table_source(t, 0));
	ck_assert_ptr_null(line_table_source(t, 5));
	ck_assert_ptr_null(line_table_source(t, UINT64_MAX));
	line_table_free(t);
}

/* More than one state is kept of it. */
TEST(every_row_of_a_long_sequence_is_found)
{
	static struct made m;
	struct line_table *t;
	made_begin(&m, 4);
	names_of_version_4(&m);
	made_program(&m);
	set_address(&m, 0x10000);
	for (unsigned i = 0; i < 6000; i++)
		row(&m, i ? 4 : 0, i ? 1 : 0, i % 3 + 1);
	end_sequence(&m, 4);
	made_end(&m);
	ck_assert_int_eq(open_made(&m, m.n, &t), 0);
	static const char *const files[] = {"/src/a.c", "/src/inc/b.h", "/abs/c.h"};
	for (unsigned i = 0; i < 6000; i++) {
		expect(t, 0x10000 + i * 4, files[i % 3], i + 1);
		expect(t, 0x10003 + i * 4, files[i % 3], i + 1);
	}
	expect(t, 0x10000 + 24000, NULL, 0);
	line_table_free(t);
}

TEST(version_5_describes_its_entries)
{
	static struct made m;
	struct line_table *t;
	made_begin(&m, 5);
	put(&m, "\1\1\x08\2/src\0sub\0", 13); /* path as a string; two */
	put(&m, "\3\1\x08\2\x0b\5\x1e\2", 8); /* path, directory, MD5; two */
	put(&m,
		"a.c\0\0"
		"0123456789abcdef",
		21);
	put(&m,
		"b.h\0\1"
		"0123456789abcdef",
		21);
	made_program(&m);
	set_address(&m, 0x1000);
	row(&m, 0, 6, 0);
	row(&m, 2, 1, 1);
	end_sequence(&m, 2);
	made_end(&m);
	ck_assert_int_eq(open_made(&m, m.n, &t), 0);
	expect(t, 0x1001, "/src/a.c", 7);
	expect(t, 0x1003, "/src/sub/b.h", 8);
	line_table_free(t);
}

TEST(what_is_not_read_here_is_left_to_libdw)
{
	static struct made m;
	struct line_table *t = NULL;
	made_small(&m);
	for (unsigned version = 0; version < 8; version++) {
		if (version >= 2 && version <= 4)
			continue;
		m.bytes[4] = (uint8_t)version;
		ck_assert_int_eq(open_made(&m, m.n, &t), LINE_TABLE_UNKNOWN);
	}
	made_small(&m);
	m.bytes[m.rest + 5] = 4; /* operations in an instruction: VLIW */
	ck_assert_int_eq(open_made(&m, m.n, &t), LINE_TABLE_UNKNOWN);
	made_small(&m);
	m.bytes[m.rest + 8] = 0; /* line_range, which is divided by */
	ck_assert_int_eq(open_made(&m, m.n, &t), LINE_TABLE_UNKNOWN);
	const struct line_sections none = {0};
	ck_assert_int_eq(line_table_new(&none, 0, NULL, &names, &t), LINE_TABLE_UNKNOWN);
	made_small(&m);
	const struct line_sections short_ones = {.line = {m.bytes, m.n}};
	ck_assert_int_eq(line_table_new(&short_ones, m.n, NULL, &names, &t), LINE_TABLE_UNKNOWN);
	ck_assert_int_eq(
		line_table_new(&short_ones, UINT64_MAX, NULL, &names, &t), LINE_TABLE_UNKNOWN);
	ck_assert_ptr_null(t);
}

static void survives(const struct made *m, size_t n)
{
	struct line_table *t = NULL;
	const char *source;
	uint64_t line;
	/* in memory of this size, so that a sanitizer sees what is read behind it */
	uint8_t *bytes = malloc(n ? n : 1);
	ck_assert_ptr_nonnull(bytes);
	memcpy(bytes, m->bytes, n);
	const struct line_sections sections = {
		.line = {bytes, n}, .line_str = {bytes, n}, .str = {bytes, n}};

	int r = line_table_new(&sections, 0, "/src", &names, &t);
	ck_assert(r == 0 || r == LINE_TABLE_UNKNOWN);
	for (uint64_t addr = 0xff0; t && addr < 0x2020; addr += 3)
		line_table_find(t, addr, &source, &line);
	line_table_free(t);
	free(bytes);
}

TEST(tables_that_end_early_are_survived)
{
	static struct made m;
	made_small(&m);
	for (size_t n = 0; n < m.n; n++) {
		survives(&m, n);
		made_small(&m);
		uint32_t bytes = (uint32_t)(n < 4 ? 0 : n - 4);
		memcpy(m.bytes, &bytes, 4); /* and says so */
		survives(&m, n);
		made_small(&m);
	}
}

TEST(any_byte_may_be_wrong)
{
	static struct made m;
	made_small(&m);
	for (size_t k = 0; k < m.n; k++)
		for (unsigned to = 0; to < 256; to += 5) {
			uint8_t kept = m.bytes[k];
			m.bytes[k] = (uint8_t)to;
			survives(&m, m.n);
			m.bytes[k] = kept;
		}
}

/* --- beside libdw ----------------------------------------------------------------------------- */

static uint64_t compare_unit(Dwarf_Die *die, const struct line_sections *sections)
{
	Dwarf_Attribute a;
	Dwarf_Word offset;
	struct line_table *t;
	Dwarf_Lines *lines;
	size_t n_lines;
	uint64_t n = 0;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_stmt_list, &a), &offset) ||
		dwarf_getsrclines(die, &lines, &n_lines))
		return 0;
	const char *directory = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &a));
	ck_assert_int_eq(line_table_new(sections, offset, directory, &names, &t), 0);
	for (size_t i = 0; i < n_lines; i++) {
		Dwarf_Addr addr;
		int number;
		uint64_t line;
		const char *source;
		Dwarf_Line *row = dwarf_onesrcline(lines, i);
		ck_assert_int_eq(dwarf_lineaddr(row, &addr), 0);
		Dwarf_Line *found = dwarf_getsrc_die(die, addr);
		if (!found || dwarf_haspc(die, addr) <= 0)
			continue; /* the end of a sequence */
		line_table_find(t, addr, &source, &line);
		ck_assert_int_eq(dwarf_lineno(found, &number), 0);
		ck_assert_msg(line == (unsigned)number, "%#llx: line %llu, libdw has %d",
			(unsigned long long)addr, (unsigned long long)line, number);
		const char *theirs = dwarf_linesrc(found, NULL, NULL);
		size_t more = strlen(source) - strlen(theirs); /* libdw leaves out our folder */
		ck_assert_str_eq(source + more, theirs);
		ck_assert(*theirs == '/' ? more == 0 : *source == '/');
		n++;
	}
	line_table_free(t);
	return n;
}

TEST(this_program_has_the_lines_that_libdw_finds, .seconds = 120)
{
	Dwarf_CU *unit = NULL, *next;
	Dwarf_Die die;
	uint64_t n = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	elf_version(EV_CURRENT);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	struct line_sections sections = line_sections_of(elf);
	while (dwarf && dwarf_get_units(dwarf, unit, &next, NULL, NULL, &die, NULL) == 0) {
		unit = next;
		n += compare_unit(&die, &sections);
	}
	dwarf_end(dwarf);
	elf_end(elf);
	close(fd);
	if (n == 0)
		printf("SKIP this_program_has_the_lines_that_libdw_finds: this test was built "
		       "without debug information\n");
}
