/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The chain of processes that bounded a tree of them, of trees made by hand. */

#include "daemon/query/processes/chain.h"

#include <string.h>

#include "tests/unit/test.h"

enum { MAKE, CC, LD, SH, OTHER, N_PROGRAMS };

static struct chain_process tree[200001];
static uint32_t n_processes;
static struct chain *chain;

static void end(void)
{
	chain = chain_free(chain);
	n_processes = 0;
}

EACH_TEST(.end = end, .seconds = 60);

static uint32_t process(uint32_t program, uint32_t parent, int64_t from, int64_t to)
{
	tree[n_processes] = (struct chain_process){from, to, parent, program};
	return n_processes++;
}

static void find(void)
{
	ck_assert_int_eq(chain_new(tree, n_processes, &chain), 0);
}

/* "0:0-2 1:2-9": process, from, to */
static const char *parts(void)
{
	static char text[4096];
	uint32_t n;
	const struct chain_part *part = chain_parts(chain, &n);
	size_t at = 0;
	*text = '\0';
	for (uint32_t i = 0; i < n && at < sizeof(text); i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u:%lld-%lld", i ? " " : "",
			part[i].process, (long long)part[i].from_ns, (long long)part[i].to_ns);
	return text;
}

/* Its stretches follow each other from begin to end, and a replay without a change takes as long. */
static void check_whole(void)
{
	uint32_t n;
	const struct chain_part *part = chain_parts(chain, &n);
	int64_t at = tree[0].start_ns;
	for (uint32_t i = 0; i < n; i++) {
		ck_assert_int_eq(part[i].from_ns, at);
		ck_assert_int_gt(part[i].to_ns, at);
		at = part[i].to_ns;
	}
	ck_assert_int_eq(at, tree[0].end_ns);
	ck_assert_int_eq(chain_without_ns(chain, CHAIN_NONE), tree[0].end_ns - tree[0].start_ns);
}

static void check(const char *expected)
{
	find();
	ck_assert_str_eq(parts(), expected);
	check_whole();
}

TEST(a_process_alone_bounds_itself)
{
	process(MAKE, CHAIN_NONE, 5, 12);
	check("0:5-12");
	ck_assert_int_eq(chain_without_ns(chain, MAKE), 0);
	ck_assert_int_eq(chain_without_ns(chain, CC), 7);
}

TEST(of_children_at_once_the_last_to_end_bounds)
{
	process(MAKE, CHAIN_NONE, 0, 20);
	process(CC, 0, 1, 9);
	process(LD, 0, 2, 18);
	process(SH, 0, 3, 12);
	check("0:0-2 2:2-18 0:18-20");
	/* the longest of the others takes its place, from where it started */
	ck_assert_int_eq(chain_without_ns(chain, LD), 14);
	ck_assert_int_eq(chain_without_ns(chain, CC), 20);
	ck_assert_int_eq(chain_without_ns(chain, MAKE), 16);
}

TEST(children_one_after_the_other_all_bound)
{
	process(SH, CHAIN_NONE, 0, 30);
	process(CC, 0, 2, 10);
	process(LD, 0, 11, 25);
	check("0:0-2 1:2-10 0:10-11 2:11-25 0:25-30");
	ck_assert_int_eq(chain_without_ns(chain, CC), 22);
	ck_assert_int_eq(chain_without_ns(chain, LD), 16);
	ck_assert_int_eq(chain_without_ns(chain, SH), 22);
}

TEST(in_a_pool_of_two_each_start_follows_the_end_that_made_room)
{
	process(MAKE, CHAIN_NONE, 0, 100);
	process(CC, 0, 0, 40);
	process(OTHER, 0, 0, 30);
	process(OTHER, 0, 30, 60); /* as soon as the second is done */
	process(CC, 0, 40, 50);    /* as soon as the first is done */
	process(LD, 0, 60, 98);
	check("2:0-30 3:30-60 5:60-98 0:98-100");
	ck_assert_int_eq(chain_without_ns(chain, LD), 62);
	/* the place of one that is left out is free for the next: both OTHER run at once */
	ck_assert_int_eq(chain_without_ns(chain, CC), 30 + 38 + 2);
	ck_assert_int_eq(chain_without_ns(chain, OTHER), 40 + 38 + 2);
}

TEST(a_nested_make_bounds_by_what_it_runs)
{
	process(MAKE, CHAIN_NONE, 0, 50);
	process(SH, 0, 1, 45);
	process(MAKE, 1, 2, 44);
	process(CC, 2, 3, 40);
	process(CC, 2, 4, 30);
	check("0:0-1 1:1-2 2:2-3 3:3-40 2:40-44 1:44-45 0:45-50");
	ck_assert_int_eq(chain_without_ns(chain, CC),
		14); /* at 4 the other CC starts, and make starts both */
	ck_assert_int_eq(chain_without_ns(chain, MAKE), 39); /* 37 of CC, 2 of SH */
}

TEST(nobody_waits_for_a_child_that_outlives_its_parent)
{
	process(SH, CHAIN_NONE, 0, 20);
	process(SH, 0, 2, 10);
	process(OTHER, 1, 3, 90); /* a daemon */
	process(OTHER, 0, 12, 21);
	check("0:0-2 1:2-10 0:10-20");
	ck_assert_int_eq(chain_without_ns(chain, OTHER), 20);
}

TEST(equal_times_are_one_after_the_other)
{
	process(MAKE, CHAIN_NONE, 0, 10);
	process(CC, 0, 0, 5);
	process(CC, 0, 0, 5);
	process(LD, 0, 5, 10);
	process(OTHER, 0, 5, 5);
	process(OTHER, 4, 5, 5);
	process(SH, 0, 10, 10);
	process(SH, 6, 10, 10);
	find();
	check_whole();
	ck_assert_int_eq(chain_without_ns(chain, CC), 5);
	ck_assert_int_eq(chain_without_ns(chain, LD), 5);
	ck_assert_int_eq(chain_without_ns(chain, OTHER), 10);
}

TEST(forged_trees_leave_out_what_cannot_be)
{
	process(MAKE, CHAIN_NONE, 10, 50);
	process(CC, 2, 20, 30); /* a circle of equal times */
	process(CC, 1, 20, 30);
	process(CC, 3, 20, 30);    /* its own parent */
	process(CC, 0, 5, 30);     /* older than its parent */
	process(CC, 0, 40, 20);    /* ends before its start */
	process(CC, 4000, 20, 30); /* no such parent */
	process(CC, 0, 20, INT64_MAX);
	check("0:10-50");
	ck_assert_uint_eq(chain_left_out(chain), 6);
}

TEST(the_first_has_no_parent_whatever_it_says)
{
	process(MAKE, 1, 0, 10);
	process(CC, 0, 0, 10);
	check("1:0-10");
}

TEST(a_hundred_thousand_processes_in_a_row_and_in_a_line)
{
	process(MAKE, CHAIN_NONE, 0, 200000);
	for (int64_t i = 0; i < 100000; i++)
		process(CC, 0, i, i + 1);
	for (uint32_t i = 0; i < 100000; i++) /* each started by the one before */
		process(SH, i ? n_processes - 1 : 0, 100000 + i / 2, 200000 - i / 2);
	find();
	check_whole();
	uint32_t n;
	(void)chain_parts(chain, &n);
	ck_assert_uint_gt(n, 100000);
	ck_assert_int_eq(chain_without_ns(chain, CC), 100000);
	ck_assert_int_eq(chain_without_ns(chain, SH), 100000);
}
