/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/kernel_map.c */

#include "daemon/attribute/kernel_map.h"

#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

static struct kernel_map map;
static struct file_table files;

static void teardown(void)
{
	kernel_map_clear(&map);
	file_table_clear(&files);
}

EACH_TEST(.end = teardown);

static const struct file *find(uint64_t addr, uint64_t *ret_offset)
{
	struct file *file = NULL;

	ck_assert_int_eq(kernel_map_find(&map, &files, addr, &file, ret_offset), 0);
	return file;
}

static void put_note(uint8_t *at, uint32_t n_name, uint32_t n_description, uint32_t type)
{
	memcpy(at, &n_name, 4);
	memcpy(at + 4, &n_description, 4);
	memcpy(at + 8, &type, 4);
	memcpy(at + 12, "GNU", 4);
}

TEST(modules_are_sorted_and_found_by_address)
{
	uint64_t offset;

	map.proc = "/nowhere/proc";
	map.base = 0x81000000;
	ck_assert_int_eq(kernel_map_modules(&map, "b 4096 0 - Live 0xc0002000 (OE)\n"
						  "a 4096 1 b, Live 0xc0000000\n"),
		0);
	ck_assert_uint_eq(map.n_modules, 2);
	ck_assert_str_eq(find(0xc0000010, &offset)->path, "[a]");
	ck_assert_uint_eq(offset, 0x10);
	ck_assert_str_eq(find(0xc0000fff, &offset)->path, "[a]");
	ck_assert_str_eq(find(0xc0001000, &offset)->path, "[kernel]");
	ck_assert_str_eq(find(0xc0002000, &offset)->path, "[b]");
	ck_assert_uint_eq(offset, 0);
	ck_assert_int_eq(find(0xc0002000, &offset)->kind, FILE_MODULE);
	ck_assert_uint_eq(find(0xc0002000, &offset)->map_start, 0xc0002000);
}

TEST(of_modules_that_overlap_the_nearer_one_is_right)
{
	uint64_t offset;

	map.proc = "/nowhere/proc";
	ck_assert_int_eq(kernel_map_modules(&map, "a 1048576 0 - Live 0xc0000000\n"
						  "b 4096 0 - Live 0xc0002000\n"),
		0);
	ck_assert_str_eq(find(0xc0002010, &offset)->path, "[b]");
	ck_assert_str_eq(find(0xc0001010, &offset)->path, "[a]");
}

TEST(lines_that_are_no_module_are_passed_over)
{
	ck_assert_int_eq(kernel_map_modules(&map, "\n"
						  "a\n"
						  "a 4096 0 - Live\n"
						  "a x 0 - Live 0xc0000000\n"
						  "a -1 0 - Live 0xc0000000\n"
						  "a 0 0 - Live 0xc0000000\n"
						  "a 4096 0 - Live c0000000\n"
						  "a 4096 0 - Live 0x\n"
						  "a 4096 0 - Live 0x0000000000000000\n"
						  "a 4096 0 - Live 0xffffffffffffffff\n"
						  "a 4096 0 - Live 0xfffffffffffffffff\n"
						  "../../x 4096 0 - Live 0xc0000000\n"
						  "good 4096 0 - Live 0xc0000000"),
		0);
	ck_assert_uint_eq(map.n_modules, 1);
	ck_assert_str_eq(map.module[0].name, "good");
}

TEST(long_lines_are_cut_or_refused)
{
	char text[4096];

	memset(text, 'x', sizeof(text));
	strcpy(text + sizeof(text) - 40, " 4096 0 - Live 0xc0000000\n");
	ck_assert_int_eq(kernel_map_modules(&map, text), 0);
	ck_assert_uint_eq(map.n_modules, 0);
}

TEST(no_more_modules_than_the_limit)
{
	size_t n_lines = KERNEL_MODULES_MAX + 3, n = 0;
	char *text = malloc(n_lines * 64);

	for (size_t i = 0; i < n_lines; i++)
		n += (size_t)sprintf(
			text + n, "m%zu 4096 0 - Live 0x%zx\n", i, 0xc0000000 + i * 4096);
	ck_assert_int_eq(kernel_map_modules(&map, text), 0);
	ck_assert_uint_eq(map.n_modules, KERNEL_MODULES_MAX);
	free(text);
}

TEST(kernel_offsets_count_from_stext)
{
	struct bench *b = bench_new();
	uint64_t offset;

	ck_assert_int_eq(kernel_map_read(b->proc, &map), 0);
	ck_assert_uint_eq(map.base, 0xffffffff81000000);
	ck_assert_str_eq(find(0xffffffff81000123, &offset)->path, "[kernel]");
	ck_assert_uint_eq(offset, 0x123);
	ck_assert_str_eq(find(0xffffffffc0000001, &offset)->path, "[nf_tables]");
	bench_free(b);
}

TEST(hidden_addresses_give_no_offsets)
{
	struct bench *b = bench_new();
	uint64_t offset;

	bench_text(b, "proc/kallsyms", "0000000000000000 T _text\n0000000000000000 T _stext\n");
	bench_text(b, "proc/modules", "nf_tables 4096 1 - Live 0x0000000000000000\n");
	ck_assert_int_eq(kernel_map_read(b->proc, &map), 0);
	ck_assert_uint_eq(map.base, 0);
	ck_assert_uint_eq(map.n_modules, 0);
	find(0xffffffff81000123, &offset);
	ck_assert_uint_eq(offset, 0);
	bench_free(b);
}

TEST(a_symbol_that_merely_looks_like_stext_is_not_it)
{
	struct bench *b = bench_new();

	bench_text(b, "proc/kallsyms",
		"1000 T _stext_x\n2000 T x_stext\n3000 D _stext\nzz T _stext\n4000 T "
		"_stext\t[m]\n");
	ck_assert_int_eq(kernel_map_read(b->proc, &map), 0);
	ck_assert_uint_eq(map.base, 0);
	bench_free(b);
}

TEST(a_proc_without_these_files_is_an_empty_map)
{
	ck_assert_int_eq(kernel_map_read("/nowhere/proc", &map), 0);
	ck_assert_uint_eq(map.n_modules, 0);
	ck_assert_uint_eq(map.base, 0);
}

TEST(build_ids_come_from_sys)
{
	struct bench *b = bench_new();
	uint8_t note[36];
	uint64_t offset;

	put_note(note, 4, 20, 3);
	memset(note + 16, 0xab, 20);
	bench_bytes(b, "sys/kernel/notes", note, sizeof(note));
	memset(note + 16, 0xcd, 20);
	bench_bytes(b, "sys/module/nf_tables/notes/.note.gnu.build-id", note, sizeof(note));
	ck_assert_int_eq(kernel_map_read(b->proc, &map), 0);
	const struct file *kernel = find(0xffffffff81000123, &offset);
	ck_assert_uint_eq(kernel->n_build_id, 20);
	ck_assert_uint_eq(kernel->build_id[19], 0xab);
	const struct file *module = find(0xffffffffc0000001, &offset);
	ck_assert_uint_eq(module->n_build_id, 20);
	ck_assert_uint_eq(module->build_id[0], 0xcd);
	bench_free(b);
}

TEST(other_notes_are_stepped_over)
{
	uint8_t notes[16 + 4 + 16 + 20], id[20];

	put_note(notes, 4, 3, 1); /* padded to four */
	put_note(notes + 20, 4, 20, 3);
	memset(notes + 36, 7, 20);
	ck_assert_uint_eq(note_build_id(notes, sizeof(notes), id), 20);
	ck_assert_uint_eq(id[0], 7);
}

TEST(broken_notes_have_no_build_id)
{
	uint8_t note[36] = {0}, id[20];

	put_note(note, 4, 20, 3);
	for (size_t n = 0; n < sizeof(note); n++) {
		uint8_t *cut = malloc(n ? n : 1); /* its end is where the sanitizer looks */
		memcpy(cut, note, n);
		ck_assert_uint_eq(note_build_id(cut, n, id), 0);
		free(cut);
	}
	put_note(note, UINT32_MAX, 20, 3);
	ck_assert_uint_eq(note_build_id(note, sizeof(note), id), 0);
	put_note(note, 4, UINT32_MAX, 3);
	ck_assert_uint_eq(note_build_id(note, sizeof(note), id), 0);
	put_note(note, 4, 0, 3);
	ck_assert_uint_eq(note_build_id(note, sizeof(note), id), 0);
	put_note(note, 4, 20, 3);
	memcpy(note + 12, "XNU", 4);
	ck_assert_uint_eq(note_build_id(note, sizeof(note), id), 0);
}

TEST(a_build_id_above_20_bytes_is_none)
{
	uint8_t note[16 + 32] = {0}, id[20];

	put_note(note, 4, 32, 3);
	ck_assert_uint_eq(note_build_id(note, sizeof(note), id), 0);
}
