/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/stack_start.c, and of what stack_walk.c makes of it
 *
 * The chains are those that Linux 6.12 gave on riscv64 with Debian 13's libc (glibc 2.41), by
 * perf record -g -e cpu-clock:u, of programs that have frame pointers while libc has none; the last
 * one is of Debian 12 on x86-64.
 */

#include "daemon/attribute/stack_start.h"

#include <linux/perf_event.h>
#include <sys/stat.h>

#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define PROGRAM UINT64_C(0x5555740c3000)
#define LIBC UINT64_C(0x7fffa73f5000)
#define LIBC_INODE 4711
#define AFTER_MAIN UINT64_C(0x7fffa741c9ac)
#define AFTER_THREAD UINT64_C(0x7fffa7470dfe)
#define AFTER_COMPARE UINT64_C(0x7fffa742d27c)
#define IN_CLONE UINT64_C(0x7fffa74bd238)

static struct bench *b;

static const struct stack_starts starts = {
	.start = {{.major = 8, .inode = LIBC_INODE, .offset = AFTER_MAIN - 1 - LIBC + 0x1000},
		{.major = 8, .inode = LIBC_INODE, .offset = AFTER_THREAD - 1 - LIBC + 0x1000}},
	.n_starts = 2,
};

static void map_libc(uint64_t at, const char *path, uint64_t inode)
{
	struct record r = bench_record(b, RECORD_MMAP, 1, 10);

	r.mmap = (struct record_mmap){
		.start = at,
		.bytes = 0x180000,
		.file_offset = 0x1000,
		.major = 8,
		.inode = inode,
		.executable = true,
		.path = path,
	};
	bench_take(b, &r, 0);
}

static void begin(const struct stack_starts *s)
{
	b = bench_new();
	b->options.starts = s;
	bench_start(b);
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "board", true);
	bench_map(b, 10, PROGRAM, 0x2000, "/tmp/board");
	map_libc(LIBC, "/usr/lib/riscv64-linux-gnu/libc.so.6", LIBC_INODE);
}

static void setup(void)
{
	begin(&starts);
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static void expect(const uint64_t *chain, size_t n, uint32_t n_frames, bool truncated)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, chain[1]);
	size_t i = b->n_sunk;
	uint64_t n_before = b->lost[0][LOSS_STACK_TRUNCATED];

	r.sample.callchain = chain;
	r.sample.n_callchain = n;
	bench_take(b, &r, 0);
	ck_assert_uint_eq(bench_got(b, i)->n_frames, n_frames);
	ck_assert_int_eq(bench_got(b, i)->truncated, truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], n_before + truncated);
}
#define EXPECT(n_frames, truncated, ...)                                                           \
	do {                                                                                       \
		const uint64_t chain_[] = {PERF_CONTEXT_USER, __VA_ARGS__};                        \
		expect(chain_, sizeof(chain_) / sizeof(*chain_), n_frames, truncated);             \
	} while (0)

/* --- stacks ----------------------------------------------------------------------------------- */

TEST(what_lies_beyond_the_call_of_main_is_not_missed)
{
	/* argc, since the library keeps argv in the frame pointer */
	EXPECT(3, false, PROGRAM + 0x898, PROGRAM + 0x9fa, AFTER_MAIN, 3);
	EXPECT(3, false, PROGRAM + 0x898, PROGRAM + 0x9fa, AFTER_MAIN, 6, 0x3fc000ef880a4701);
}

TEST(what_lies_beyond_a_threads_first_call_is_not_missed)
{
	EXPECT(3, false, PROGRAM + 0x930, PROGRAM + 0x946, AFTER_THREAD, 0x7ffff4822f11);
	EXPECT(4, false, PROGRAM + 0x930, PROGRAM + 0x946, AFTER_THREAD, IN_CLONE, 0x7ffff4822f11);
}

TEST(a_stack_that_ends_there_by_itself_is_whole)
{
	EXPECT(3, false, PROGRAM + 0x898, PROGRAM + 0x9fa, AFTER_MAIN);
	EXPECT(4, false, PROGRAM + 0x930, PROGRAM + 0x946, AFTER_THREAD, IN_CLONE);
}

TEST(a_call_back_from_a_library_without_frame_pointers_is_truncated)
{
	/* what qsort had in the register lay in the array that it sorts */
	EXPECT(2, true, PROGRAM + 0x9b8, AFTER_COMPARE, 0x3cf1b15f3c85c52a);
	EXPECT(2, true, PROGRAM + 0x9b8, AFTER_COMPARE, 0x2f3a18be2f35ee09);
	/* argc is no proof, small numbers stand everywhere */
	EXPECT(2, true, PROGRAM + 0x9b8, AFTER_COMPARE, 3);
}

TEST(a_program_without_frame_pointers_is_truncated)
{
	EXPECT(1, true, PROGRAM + 0x898, 3);
	EXPECT(2, true, PROGRAM + 0x898, PROGRAM + 0x9fa, 0xbe552274c0854800);
}

TEST(a_chain_that_ends_before_the_start_is_cut_however_well_it_ends)
{
	/* as gcc -O2 and rustc -O build programs: the frame pointer is 0 or 1 all the time */
	EXPECT(1, true, PROGRAM + 0x898);
	EXPECT(2, true, PROGRAM + 0x898, PROGRAM + 0x9fa);
	EXPECT(2, true, PROGRAM + 0x9b8, AFTER_COMPARE);
}

TEST(a_stack_without_a_user_part_or_without_a_chain_is_not_cut)
{
	const uint64_t kernel[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020};
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, kernel[1]);

	r.sample.kernel = true;
	r.sample.callchain = kernel;
	r.sample.n_callchain = 3;
	bench_take(b, &r, 0);
	ck_assert(!bench_got(b, 0)->truncated);
	/* callers were not asked for */
	r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, PROGRAM + 0x898);
	bench_take(b, &r, 0);
	ck_assert(!bench_got(b, 1)->truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 0);
}

TEST(the_leaf_itself_is_no_call)
{
	EXPECT(1, true, AFTER_MAIN, 3);
}

TEST(the_same_place_in_another_file_is_no_start)
{
	const uint64_t other = 0x7fffb0000000;

	map_libc(other, "/opt/libc.so.6", LIBC_INODE + 1);
	EXPECT(2, true, PROGRAM + 0x9fa, AFTER_MAIN - LIBC + other, 3);
}

TEST(one_byte_beside_is_no_start)
{
	EXPECT(2, true, PROGRAM + 0x9fa, AFTER_MAIN + 1, 3);
	EXPECT(2, true, PROGRAM + 0x9fa, AFTER_MAIN - 1, 3);
}

TEST(where_no_start_is_known_stacks_are_truncated_as_they_look)
{
	const struct stack_starts none = {.n_starts = 0};

	EXPECT(2, false, PROGRAM + 0x9fa, AFTER_MAIN, 3);
	bench_free(b);
	begin(&none);
	EXPECT(2, true, PROGRAM + 0x9fa, AFTER_MAIN, 3);
	bench_free(b);
	begin(NULL);
	EXPECT(2, true, PROGRAM + 0x9fa, AFTER_MAIN, 3);
}

/* --- where they are --------------------------------------------------------------------------- */

static bool find(const char *maps, uint64_t addr, struct stack_start *ret)
{
	char path[128];

	bench_text(b, "proc/self/maps", maps);
	snprintf(path, sizeof(path), "%s/self/maps", b->proc);
	return stack_start_find(path, addr, ret);
}

TEST(a_call_is_found_by_where_it_returns_to)
{
	struct stack_start s;

	ck_assert(find("1000-2000 r--p 00000000 fe:01 5 /a\n2000-3000 r-xp 00001000 fe:02 6 /a b\n",
		0x2010, &s));
	ck_assert_uint_eq(s.major, 0xfe);
	ck_assert_uint_eq(s.minor, 2);
	ck_assert_uint_eq(s.inode, 6);
	ck_assert_uint_eq(s.offset, 0x100f);
	/* a call that never returns may be the very last of the code */
	ck_assert(find("2000-3000 r-xp 00001000 fe:02 6 /a\n", 0x3000, &s));
	ck_assert_uint_eq(s.offset, 0x1fff);
}

TEST(a_call_in_no_file_is_not_found)
{
	struct stack_start s;

	ck_assert(!find("2000-3000 r-xp 00000000 00:00 0 \n", 0x2010, &s));
	ck_assert(!find("2000-3000 rw-p 00000000 fe:02 6 /a\n", 0x2010, &s));
	ck_assert(!find("2000-3000 r-xp 00000000 fe:02 6 /a\n", 0x2000, &s));
	ck_assert(!find("2000-3000 r-xp 00000000 fe:02 6 /a\n", 0x3001, &s));
	ck_assert(!find("", 0x2010, &s));
	ck_assert(!find("rubbish\n2000-3000\n", 0x2010, &s));
	ck_assert(!stack_start_find("/nonexistent/maps", 0x2010, &s));
}

TEST(this_program_knows_where_its_own_stacks_begin, .bare = true)
{
	struct stack_starts s = {.n_starts = 0};
	struct stat st;

	stack_starts_learn(test_main_caller, "/proc/self/maps", &s);
	ck_assert_uint_eq(s.n_starts, 2);
	ck_assert_uint_ne(s.start[0].offset, s.start[1].offset);
	ck_assert_int_eq(stat("/proc/self/exe", &st), 0);
	ck_assert_uint_ne(s.start[0].inode, st.st_ino); /* the library's, not the program's */
}

TEST(what_cannot_be_learnt_is_left_out, .bare = true)
{
	struct stack_starts s = {.n_starts = 7};

	stack_starts_learn(NULL, "/proc/self/maps", &s);
	ck_assert_uint_eq(s.n_starts, 1);
	stack_starts_learn(test_main_caller, "/nonexistent/maps", &s);
	ck_assert_uint_eq(s.n_starts, 0);
}

TEST(names_of_starts_are_known_with_their_versions, .bare = true)
{
	static const char *const yes[] = {"main", "_start", "__libc_start_main@@GLIBC_2.34",
		"__libc_start_call_main", "start_thread", "clone3", "runtime.goexit.abi0",
		"runtime.mcall", "_dl_start_user"};
	static const char *const no[] = {"", "@@GLIBC_2.34", ".abi0", "mai", "main2", "main.main",
		"runtime.main", "r::main", "_Start", "qsort", "runtime.goexit.abi"};

	ck_assert(!stack_start_is_name(NULL, false));
	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		ck_assert_msg(stack_start_is_name(yes[i], false), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		ck_assert_msg(!stack_start_is_name(no[i], false), "%s", no[i]);
}

TEST(a_thread_begins_in_what_programs_call_too, .bare = true)
{
	static const char *const called[] = {"clone", "__clone", "clone3@@GLIBC_2.38", "__clone3"};

	for (size_t i = 0; i < sizeof(called) / sizeof(*called); i++) {
		ck_assert(stack_start_is_name(called[i], false));
		ck_assert(!stack_start_is_name(called[i], true));
	}
	ck_assert(stack_start_is_name("main", true));
	ck_assert(stack_start_is_name("start_thread", true));
}
