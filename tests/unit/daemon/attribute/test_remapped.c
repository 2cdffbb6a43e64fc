/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/remapped.c, and of programs executed out of a memfd (mapping.c) */

#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define TEXT UINT64_C(0x10000)
#define PAGE UINT64_C(0x1000)
#define TEXT_OFFSET UINT64_C(0x1000) /* of bench_map */

static struct bench *b;

static void begin(void)
{
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
}

static void setup(void)
{
	b = bench_new();
	bench_start(b);
	begin();
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static const struct frame *sample(uint64_t addr)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, addr);

	bench_take(b, &r, 0);
	return bench_got(b, b->n_sunk - 1)->frame[0];
}

/* What the process has at TEXT, and its program's file at TEXT_OFFSET: 8 pages, other is one that differs. */
static void has_text(int other)
{
	static uint8_t bytes[TEXT + 8 * PAGE];
	char path[64];

	for (size_t i = 0; i < 8 * PAGE; i++)
		bytes[TEXT + i] = (uint8_t)(i * 7 + i / PAGE);
	snprintf(path, sizeof(path), "proc/10/exe");
	bench_bytes(b, path, bytes + TEXT - TEXT_OFFSET, TEXT_OFFSET + 8 * PAGE);
	if (other >= 0)
		bytes[TEXT + (size_t)other * PAGE + 100] ^= 1;
	bench_bytes(b, "proc/10/mem", bytes, sizeof(bytes));
}

static void check_text(uint64_t addr)
{
	const struct frame *f = sample(addr);

	ck_assert_str_eq(f->file->path, "/bin/prog");
	ck_assert_int_eq(f->file->kind, FILE_ELF);
	ck_assert_uint_eq(f->offset, addr - TEXT + TEXT_OFFSET);
}

/* --- replaced text ---------------------------------------------------------------------------- */

TEST(text_that_was_replaced_in_place_keeps_its_file)
{
	static const char *const names[] = {
		"//anon", "/anon_hugepage (deleted)", "[anon:text]", "/memfd:text (deleted)"};

	bench_map(b, 10, TEXT, 8 * PAGE, "/bin/prog");
	has_text(-1);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		bench_map(b, 10, TEXT + 2 * PAGE, 2 * PAGE, names[i]);
		check_text(TEXT + 2 * PAGE + 8);
		check_text(TEXT + 5 * PAGE);
		/* a larger part, over what was replaced */
		bench_map(b, 10, TEXT + PAGE, 6 * PAGE, names[i]);
		check_text(TEXT + PAGE);
		check_text(TEXT + 6 * PAGE);
		bench_map(b, 10, TEXT, 8 * PAGE, names[i]);
		check_text(TEXT + 7 * PAGE + 1);
	}
}

TEST(other_bytes_in_place_of_the_text_are_other_code)
{
	bench_map(b, 10, TEXT, 8 * PAGE, "/bin/prog");
	has_text(3);
	bench_map(b, 10, TEXT + 2 * PAGE, 2 * PAGE, "//anon");
	ck_assert_int_eq(sample(TEXT + 2 * PAGE + 8)->file->kind, FILE_PERF_MAP);
	check_text(TEXT + PAGE);
}

TEST(of_a_process_that_is_gone_the_place_is_enough_but_not_for_shared_memory)
{
	bench_map(b, 10, TEXT, 8 * PAGE, "/bin/prog");
	bench_map(b, 10, TEXT + 2 * PAGE, PAGE, "//anon");
	check_text(TEXT + 2 * PAGE);
	bench_map(b, 10, TEXT + 4 * PAGE, PAGE, "/memfd:guest (deleted)");
	ck_assert_int_eq(sample(TEXT + 4 * PAGE)->file->kind, FILE_PERF_MAP);
	struct record r = bench_record(b, RECORD_MMAP, 1, 10);
	r.mmap = (struct record_mmap){.start = TEXT + 6 * PAGE,
		.bytes = PAGE,
		.executable = true,
		.shared = true,
		.path = "/dev/zero (deleted)"};
	bench_take(b, &r, 0);
	ck_assert_int_eq(sample(TEXT + 6 * PAGE)->file->kind, FILE_PERF_MAP);
}

TEST(memory_beyond_the_text_is_no_part_of_it)
{
	bench_map(b, 10, TEXT, 8 * PAGE, "/bin/prog");
	has_text(-1);
	bench_map(b, 10, TEXT + 7 * PAGE, 2 * PAGE, "//anon");
	ck_assert_int_eq(sample(TEXT + 7 * PAGE)->file->kind, FILE_PERF_MAP);
	bench_map(b, 10, TEXT - PAGE, 2 * PAGE, "//anon");
	ck_assert_int_eq(sample(TEXT)->file->kind, FILE_PERF_MAP);
}

/* It may have been unloaded, and its place given to a compiler. */
TEST(place_of_a_library_is_not_enough)
{
	bench_map(b, 10, 0x400000, PAGE, "/bin/prog");
	bench_map(b, 10, TEXT, 8 * PAGE, "/lib/plugin.so");
	bench_map(b, 10, TEXT + PAGE, PAGE, "//anon");
	ck_assert_int_eq(sample(TEXT + PAGE)->file->kind, FILE_PERF_MAP);
}

TEST(another_program_has_another_text)
{
	bench_map(b, 10, TEXT, 8 * PAGE, "/bin/prog");
	bench_comm(b, SECOND + 2, 10, "next", true);
	bench_map(b, 10, TEXT, PAGE, "//anon");
	ck_assert_int_eq(sample(TEXT)->file->kind, FILE_PERF_MAP);
}

TEST(few_texts_are_compared_between_two_drains)
{
	bench_map(b, 10, TEXT, 8 * PAGE, "/bin/prog");
	has_text(-1);
	for (unsigned i = 0; i < 2 * TEXTS_COMPARED_MAX; i++)
		bench_map(b, 10, TEXT, 8 * PAGE, "//anon");
	ck_assert_uint_gt(remapped_n_compared(b->attribute->comparisons), 0);
	ck_assert_uint_le(remapped_n_compared(b->attribute->comparisons), TEXTS_COMPARED_MAX / 2);
	/* what was not compared is not believed */
	ck_assert_int_eq(sample(TEXT + PAGE)->file->kind, FILE_PERF_MAP);
	attribute_drained(b->attribute);
	ck_assert_uint_eq(remapped_n_compared(b->attribute->comparisons), 0);
}

TEST(the_vdso_of_a_32_bit_program_is_not_ours)
{
	bench_map(b, 10, 0xf7fc0000, 2 * PAGE, "[vdso]");
	ck_assert_int_eq(sample(0xf7fc0010)->file->kind, FILE_ANON);
	bench_map(b, 10, 0x7ffff7fc0000, 2 * PAGE, "[vdso]");
	ck_assert_int_eq(sample(0x7ffff7fc0010)->file->kind, FILE_VDSO);
}

static void scan(const char *maps)
{
	const struct bench_process p = {.pid = 20, .parent = 1, .comm = "ran", .maps = maps};

	bench_process(b, &p);
	ck_assert_int_eq(attribute_scan(b->attribute, NULL, 0), 0);
}

/* --- out of a memfd --------------------------------------------------------------------------- */

static void map_memfd(uint64_t start, uint64_t inode, const char *path)
{
	struct record r = bench_record(b, RECORD_MMAP, SECOND + 2, 10);

	r.mmap = (struct record_mmap){.start = start,
		.bytes = PAGE,
		.file_offset = 0x1000,
		.inode = inode,
		.minor = 1,
		.executable = true,
		.path = path};
	bench_take(b, &r, 0);
}

TEST(a_program_out_of_a_memfd_is_a_file)
{
	map_memfd(TEXT, 77, "/memfd:payload (deleted)");
	map_memfd(TEXT + 4 * PAGE, 77, "/memfd:payload (deleted)");
	map_memfd(TEXT + 8 * PAGE, 78, "/memfd:payload (deleted)");
	const struct frame *f = sample(TEXT + 8);
	ck_assert_str_eq(f->file->path, "/memfd:payload");
	ck_assert_int_eq(f->file->kind, FILE_ELF);
	ck_assert_uint_eq(f->file->inode, 77);
	ck_assert_uint_eq(f->offset, 0x1008);
	ck_assert_ptr_eq(sample(TEXT + 4 * PAGE)->file, f->file);
	/* of the same name, but not what was executed */
	ck_assert_int_eq(sample(TEXT + 8 * PAGE)->file->kind, FILE_PERF_MAP);
	ck_assert_str_eq(task_find(&b->tasks, 10)->exe, "/memfd:payload");
}

TEST(a_memfd_that_a_program_maps_later_is_generated_code)
{
	bench_map(b, 10, 0x400000, PAGE, "/bin/dotnet");
	map_memfd(TEXT, 77, "/memfd:doublemapper (deleted)");
	ck_assert_int_eq(sample(TEXT)->file->kind, FILE_PERF_MAP);
}

TEST(after_an_exec_the_memfd_is_no_longer_the_program)
{
	map_memfd(TEXT, 77, "/memfd:payload (deleted)");
	bench_comm(b, SECOND + 3, 10, "next", true);
	bench_map(b, 10, 0x400000, PAGE, "/bin/next");
	map_memfd(TEXT, 77, "/memfd:payload (deleted)");
	ck_assert_int_eq(sample(TEXT)->file->kind, FILE_PERF_MAP);
}

TEST(a_memfd_of_a_process_without_an_exec_is_generated_code)
{
	struct task *process = task_find(&b->tasks, 10);

	process->exec_ns = 0;
	map_memfd(TEXT, 77, "/memfd:payload (deleted)");
	ck_assert_int_eq(sample(TEXT)->file->kind, FILE_PERF_MAP);
}

/* --- in /proc --------------------------------------------------------------------------------- */

static const struct map *mapped(uint64_t addr)
{
	return space_find(task_find(&b->tasks, 20)->space, addr);
}

static void link_program(const char *to)
{
	char path[256];

	bench_text(b, "proc/20/x", "");
	snprintf(path, sizeof(path), "%s/proc/20/exe", b->root);
	ck_assert_int_eq(symlink(to, path), 0);
}

TEST(what_lies_between_two_parts_of_the_text_is_compared)
{
	char file[300];
	static uint8_t bytes[TEXT + 8 * PAGE];

	/* the program is a file at this path, which is what the link leads to */
	for (size_t i = 0; i < 8 * PAGE; i++)
		bytes[TEXT + i] = (uint8_t)(i * 7 + 1);
	bench_bytes(b, "prog", bytes + TEXT - TEXT_OFFSET, TEXT_OFFSET + 8 * PAGE);
	bench_bytes(b, "proc/20/mem", bytes, sizeof(bytes));
	snprintf(file, sizeof(file), "%s/prog", b->root);
	link_program(file);
	char maps[2048];
	snprintf(maps, sizeof(maps),
		"10000-11000 r-xp 00001000 08:01 5   %s\n"
		"11000-12000 r-xp 00000000 00:00 0 \n"
		"12000-13000 r-xp 00000000 00:00 0 \n"
		"13000-14000 r-xp 00004000 08:01 5   %s\n"
		"14000-15000 r-xp 00000000 00:00 0 \n"
		"15000-16000 r-xp 00007000 08:01 5   %s\n"
		"16000-17000 r-xp 00000000 00:00 0 \n",
		file, file, file);
	scan(maps);
	ck_assert_str_eq(mapped(0x12010)->file->path, file);
	ck_assert_uint_eq(
		mapped(0x12010)->file_offset + (0x12010 - mapped(0x12010)->start), 0x3010);
	ck_assert_int_eq(mapped(0x14010)->file->kind, FILE_PERF_MAP); /* the parts do not match */
	ck_assert_int_eq(mapped(0x16010)->file->kind, FILE_PERF_MAP); /* nothing follows */
}

TEST(a_gap_whose_bytes_cannot_be_read_is_generated_code)
{
	link_program("/nowhere/prog");
	scan("10000-11000 r-xp 00001000 08:01 5   /nowhere/prog\n"
	     "11000-12000 r-xp 00000000 00:00 0 \n"
	     "12000-13000 r-xp 00003000 08:01 5   /nowhere/prog\n");
	ck_assert_int_eq(mapped(0x11010)->file->kind, FILE_PERF_MAP);
}
