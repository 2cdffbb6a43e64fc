/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/kernel_code.c and generated.c: names of BPF programs, by time */

#include "daemon/attribute/kernel_code.h"

#include <linux/perf_event.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/kernel/kernel.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

static struct kernel_code code;
static struct bench *b;

static void setup(void)
{
	code = (struct kernel_code){0};
	b = bench_new();
}

static void teardown(void)
{
	kernel_code_clear(&code);
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

/* --- the table -------------------------------------------------------------------------------- */

static const char *name_at(uint64_t addr)
{
	const struct kernel_code_piece *p = kernel_code_find(&code, addr);
	return p ? p->name : "";
}

TEST(pieces_are_found_by_address)
{
	ck_assert_int_eq(kernel_code_add(&code, 0x3000, 0x100, "c"), 0);
	ck_assert_int_eq(kernel_code_add(&code, 0x1000, 0x100, "a"), 0);
	ck_assert_int_eq(kernel_code_add(&code, 0x2000, 0x100, "b"), 0);
	ck_assert_str_eq(name_at(0x1000), "a");
	ck_assert_str_eq(name_at(0x10ff), "a");
	ck_assert_str_eq(name_at(0x1100), "");
	ck_assert_str_eq(name_at(0xfff), "");
	ck_assert_str_eq(name_at(0x2080), "b");
	ck_assert_str_eq(name_at(0x30ff), "c");
	ck_assert_str_eq(name_at(UINT64_MAX), "");
}

TEST(what_comes_later_takes_the_place_of_all_that_it_overlaps)
{
	kernel_code_add(&code, 0x1000, 0x100, "a");
	kernel_code_add(&code, 0x1100, 0x100, "b");
	kernel_code_add(&code, 0x1200, 0x100, "c");
	ck_assert_int_eq(kernel_code_add(&code, 0x1080, 0x100, "late"), 0);
	ck_assert_uint_eq(code.n, 2);
	ck_assert_str_eq(name_at(0x1010), "");
	ck_assert_str_eq(name_at(0x1080), "late");
	ck_assert_str_eq(name_at(0x117f), "late");
	ck_assert_str_eq(name_at(0x1180), "");
	ck_assert_str_eq(name_at(0x1200), "c");
}

TEST(what_is_dropped_has_no_name)
{
	kernel_code_add(&code, 0x1000, 0x100, "a");
	kernel_code_add(&code, 0x2000, 0x100, "b");
	kernel_code_drop(&code, 0x1000, 0x100);
	ck_assert_str_eq(name_at(0x1000), "");
	ck_assert_str_eq(name_at(0x2000), "b");
	kernel_code_drop(&code, 0, UINT64_MAX);
	ck_assert_uint_eq(code.n, 0);
	kernel_code_drop(&code, 0x1000, 0x100);
}

TEST(nothing_and_the_nameless_are_left_out)
{
	ck_assert_int_eq(kernel_code_add(&code, 0x1000, 0, "a"), 0);
	ck_assert_int_eq(kernel_code_add(&code, 0x1000, 0x100, ""), 0);
	ck_assert_uint_eq(code.n, 0);
}

TEST(pieces_at_the_end_of_all_addresses_do_not_wrap)
{
	kernel_code_add(&code, UINT64_MAX - 0xff, 0x1000, "end");
	ck_assert_str_eq(name_at(UINT64_MAX - 1), "end");
	ck_assert_str_eq(name_at(0x100), "");
}

TEST(table_and_names_are_bounded)
{
	char name[KERNEL_CODE_NAME_BYTES + 100];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (uint64_t i = 0; i < KERNEL_CODE_MAX; i++)
		ck_assert_int_eq(kernel_code_add(&code, 0x1000 * i + 0x1000, 16, name), 0);
	ck_assert_int_eq(kernel_code_add(&code, 0x800, 16, "more"), KERNEL_CODE_FULL);
	ck_assert_int_eq(kernel_code_add(&code, 0x1000, 16, "instead"), 0);
	ck_assert_uint_eq(code.n, KERNEL_CODE_MAX);
	ck_assert_uint_eq(strlen(name_at(0x2000)), KERNEL_CODE_NAME_BYTES - 1);
}

/* --- a walk ----------------------------------------------------------------------------------- */

#define PROGRAM UINT64_C(0xffffffffa0001000)

static void load(uint64_t time_ns, uint64_t addr, const char *name, bool unregister)
{
	struct record r = bench_record(b, RECORD_KSYMBOL, time_ns, 10);

	r.ksymbol.addr = addr;
	r.ksymbol.bytes = 256;
	r.ksymbol.name = name;
	r.ksymbol.unregister = unregister;
	bench_take(b, &r, 0);
}

/* The leaf of a sample of the kernel. */
static const struct frame *sample(uint64_t time_ns, uint64_t addr)
{
	struct record r = bench_sample(b, BENCH_ALONE, time_ns, 10, addr);

	r.sample.kernel = true;
	bench_take(b, &r, 0);
	const struct attribution *a = bench_got(b, b->n_sunk - 1);
	ck_assert_uint_eq(a->n_frames, 1);
	/* as if it were named, which is when it is remembered */
	a->frame[0]->state = FRAME_NAMED;
	return a->frame[0];
}

static void start(void)
{
	bench_start(b);
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
}

TEST(an_address_has_the_program_of_its_time)
{
	start();
	ck_assert_str_eq(sample(SECOND + 2, PROGRAM + 4)->file->path, "[kernel]");
	load(SECOND + 3, PROGRAM, "bpf_prog_0123456789abcdef_first", false);
	const struct frame *first = sample(SECOND + 4, PROGRAM + 4);
	ck_assert_str_eq(first->file->path, "[bpf_prog_0123456789abcdef_first]");
	ck_assert_int_eq(first->file->kind, FILE_MODULE);
	ck_assert_uint_eq(first->offset, 4);
	load(SECOND + 5, PROGRAM, "bpf_prog_0123456789abcdef_first", true);
	ck_assert_str_eq(sample(SECOND + 6, PROGRAM + 4)->file->path, "[kernel]");
	load(SECOND + 7, PROGRAM, "bpf_prog_fedcba9876543210_second", false);
	ck_assert_str_eq(
		sample(SECOND + 8, PROGRAM + 4)->file->path, "[bpf_prog_fedcba9876543210_second]");
	/* in place of the other, whose end was not told */
	load(SECOND + 9, PROGRAM + 64, "bpf_prog_0123456789abcdef_first", false);
	const struct frame *again = sample(SECOND + 10, PROGRAM + 64 + 4);
	ck_assert_ptr_eq(again, first);
}

static int n_listed;

static int list(
	void *u, void (*each)(void *userdata, const struct kernel_program *p), void *userdata)
{
	(void)u;
	n_listed++;
	each(userdata, &(struct kernel_program){PROGRAM, 256, SECOND, "bpf_prog_00_before"});
	each(userdata,
		&(struct kernel_program){PROGRAM + 512, 256, 9 * SECOND, "bpf_prog_00_after"});
	each(userdata, &(struct kernel_program){PROGRAM + 1024, 256, SECOND, "bpf_prog_00_listed"});
	return 0;
}

TEST(what_was_there_before_is_listed_once_and_when_needed)
{
	static const struct kernel kernel = {.list_programs = list};

	n_listed = 0;
	b->options.kernel = &kernel;
	start();
	load(SECOND + 3, PROGRAM + 1024, "bpf_prog_00_told", false);
	ck_assert_str_eq(sample(2 * SECOND, 0xffffffff81000123)->file->path, "[kernel]");
	ck_assert_str_eq(sample(2 * SECOND, 0xffffffffc0000001)->file->path, "[nf_tables]");
	ck_assert_int_eq(n_listed, 0);
	ck_assert_str_eq(sample(2 * SECOND, PROGRAM)->file->path, "[bpf_prog_00_before]");
	ck_assert_int_eq(n_listed, 1);
	ck_assert_str_eq(sample(2 * SECOND, PROGRAM + 512)->file->path, "[kernel]");
	ck_assert_str_eq(sample(2 * SECOND, PROGRAM + 1024)->file->path, "[bpf_prog_00_told]");
	ck_assert_str_eq(sample(2 * SECOND, PROGRAM + 4096)->file->path, "[kernel]");
	ck_assert_int_eq(n_listed, 1);
}

TEST(who_may_not_see_the_kernel_sees_no_programs)
{
	static const struct kernel kernel = {.list_programs = list};

	n_listed = 0;
	b->options.kernel = &kernel;
	b->options.hide_kernel = true;
	start();
	load(SECOND + 3, PROGRAM, "bpf_prog_00_told", false);
	ck_assert_str_eq(sample(2 * SECOND, PROGRAM)->file->path, "[kernel]");
	ck_assert_uint_eq(sample(2 * SECOND, PROGRAM)->offset, 0);
	ck_assert_int_eq(n_listed, 0);
}
