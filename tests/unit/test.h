/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Unit tests that register themselves
 *
 *	EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);
 *
 *	TEST(an_empty_ring_is_empty)
 *	{
 *		ck_assert_uint_eq(ring_bytes(&ring), 0);
 *	}
 *
 * Each file of tests is run by a program of its name; main is in test.c. libcheck runs each test in a process of its
 * own, in the order of the file. CK_RUN_CASE=an_empty_ring_is_empty runs one alone; CK_FORK=no runs
 * all in one process, for a debugger. A test that cannot run here prints "SKIP its_name: reason".
 */

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The place of each assertion that holds goes through a file to the parent, for "(after this point)" of a test that
 * dies: in a loop that takes longer than what is asserted. Here a line is told once while it is among the last few. */
void test_mark(const char *file, int line);
#define _mark_point(file, line) test_mark(file, line)

#define MS UINT64_C(1000000) /* in ns */
#define SECOND UINT64_C(1000000000)

/* How a test runs. What is left out is taken from EACH_TEST of its file. */
struct test_run {
	void (*begin)(void); /* before the test, in its process */
	void (*end)(void);   /* after it, unless it failed */
	int seconds;         /* its limit, at least CK_DEFAULT_TIMEOUT */
	int times;           /* how often it runs, with _i counting up; 0: once */
	int from;            /* the first _i */
	bool bare;           /* without what EACH_TEST says */
};

/* What all tests of a file have; at most once in a file, anywhere. */
#define EACH_TEST(...) static const struct test_run each_test = {__VA_ARGS__}
static const struct test_run each_test __attribute__((unused));

/* A test: its name, and members of struct test_run if it differs from the others. */
#define TEST(name, ...)                                                                            \
	static const TTest *name;                                                                  \
	__attribute__((constructor)) static void name##_register(void)                             \
	{                                                                                          \
		test_register(name, &each_test, (struct test_run){__VA_ARGS__});                   \
	}                                                                                          \
	START_TEST(name)

void test_register(const TTest *test, const struct test_run *each, struct test_run run);

/* Where main of this program returns to. */
extern const void *test_main_caller;
