/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The list of a program's tests, which constructors fill, and main, which runs them. The files of a folder are linked
 * to one program; called test_window, it runs the tests of test_window.c.
 */
#include "tests/unit/test.h"

#include <errno.h>

#include "tests/unit/namer_rig.h"

#define TESTS_MAX 128 /* of one file; the largest has about 40 */

static struct test {
	const TTest *test;
	struct test_run run;
} tests[TESTS_MAX];
static size_t n_tests;

const void *test_main_caller;

#define MARKS 16 /* lines of one loop that assert something */

void test_mark(const char *file, int line)
{
	static _Thread_local struct {
		const char *file;
		int line;
	} mark[MARKS];
	static _Thread_local unsigned int n;

	for (int i = 0; i < MARKS; i++)
		if (mark[i].line == line && mark[i].file == file)
			return;
	mark[n % MARKS].file = file;
	mark[n++ % MARKS].line = line;
	(_mark_point)(file, line);
}

/* A check for leaks reads all data of the program, which costs more than most tests. It is left out after a test that
 * leaves as many bytes allocated as it found. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/allocator_interface.h>
#include <sanitizer/lsan_interface.h>

static size_t bytes_before;
static bool any_ran, runs, any_left; /* bytes, after any test of this process */

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "leak_check_at_exit=0";
}

static void count_before(void)
{
	any_ran = runs = true;
	bytes_before = __sanitizer_get_current_allocated_bytes();
}

static void count_after(void)
{
	runs = false;
	any_left |= __sanitizer_get_current_allocated_bytes() != bytes_before;
}

static void check_leaks(void)
{
	if (!any_ran || runs || any_left)
		__lsan_do_leak_check();
}

/* The first fixture begins first and ends last. */
static void watch_leaks(TCase *c)
{
	tcase_add_checked_fixture(c, count_before, count_after);
}
#else
static void check_leaks(void)
{
}

static void watch_leaks(TCase *c)
{
	(void)c;
}
#endif

/* Only in programs that start themselves as workers. */
#pragma weak namer_rig_main

/* Whether the program is called as that file is. */
static bool is_asked_for(const char *file)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	size_t n = strcspn(name, ".");

	return strlen(program_invocation_short_name) == n &&
	       strncmp(name, program_invocation_short_name, n) == 0;
}

void test_register(const TTest *test, const struct test_run *each, struct test_run run)
{
	if (!is_asked_for(test->file))
		return;
	if (n_tests == TESTS_MAX)
		abort();
	if (!run.bare) {
		run.begin = run.begin ? run.begin : each->begin;
		run.end = run.end ? run.end : each->end;
		run.seconds = run.seconds ? run.seconds : each->seconds;
	}
	/* No standard says in which order constructors run. */
	size_t i = n_tests++;
	for (; i > 0 && tests[i - 1].test->line > test->line; i--)
		tests[i] = tests[i - 1];
	tests[i] = (struct test){test, run};
}

/* On a busy machine the environment gives all tests more time. */
static int limit_of(const struct test *t)
{
	const char *least = getenv("CK_DEFAULT_TIMEOUT");
	return least && atoi(least) > t->run.seconds ? atoi(least) : t->run.seconds;
}

/* A case of its own for each, since limits and fixtures belong to cases. */
static TCase *as_case(const struct test *t)
{
	TCase *c = tcase_create(t->test->name);

	watch_leaks(c);
	tcase_add_checked_fixture(c, t->run.begin, t->run.end);
	if (t->run.seconds)
		tcase_set_timeout(c, limit_of(t));
	if (t->run.times)
		tcase_add_loop_test(c, t->test, t->run.from, t->run.from + t->run.times);
	else
		tcase_add_test(c, t->test);
	return c;
}

int main(int argc, char **argv)
{
	test_main_caller = __builtin_return_address(0);
	if (namer_rig_main)
		namer_rig_main(argc, argv);

	(void)atexit(check_leaks);
	Suite *suite = suite_create(program_invocation_short_name);
	for (size_t i = 0; i < n_tests; i++)
		suite_add_tcase(suite, as_case(&tests[i]));
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	if (n_tests == 0) {
		fprintf(stderr, "no tests: call this program by the name of a file of them\n");
		n_failed = 1;
	} else if (srunner_ntests_run(runner) == 0) {
		fprintf(stderr, "no case %s here; there are:\n", getenv("CK_RUN_CASE"));
		for (size_t i = 0; i < n_tests; i++)
			fprintf(stderr, "  %s\n", tests[i].test->name);
		n_failed = 1;
	}
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
