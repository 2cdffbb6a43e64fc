/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of daemon/service/debug_watch.c: what comes is seen once, wherever it comes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "daemon/service/debug_watch.h"
#include "tests/unit/test.h"

static char dir[64], folder[128];
static struct debug_watch w;

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test_debug_watch.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(folder, sizeof(folder), "%s/debug/.build-id", dir);
}

static void shell(const char *command)
{
	char text[512];

	snprintf(text, sizeof(text), "cd '%s' && %s", dir, command);
	ck_assert_int_eq(system(text), 0);
}

static void teardown(void)
{
	debug_watch_end(&w);
	shell("rm -r \"$PWD\"");
}

EACH_TEST(.begin = setup, .end = teardown);

/* Once everything has come, it is reported, and only once. */
static void is_seen(void)
{
	ck_assert(!debug_watch_settled(&w)); /* more may come */
	ck_assert(debug_watch_settled(&w));
	ck_assert(!debug_watch_settled(&w));
}

TEST(what_comes_into_a_folder_is_seen)
{
	shell("mkdir -p debug/.build-id/ab");
	debug_watch_begin(&w, folder);
	ck_assert(!debug_watch_settled(&w));
	ck_assert(!debug_watch_settled(&w));
	shell("touch x && mv x debug/.build-id/ab/cd.debug");
	is_seen();
	shell("ln -s /nowhere debug/.build-id/ab/ef.debug");
	is_seen();
	shell("echo > debug/.build-id/ab/cd.debug");
	is_seen();
}

TEST(what_comes_into_a_new_folder_is_seen)
{
	shell("mkdir -p debug/.build-id");
	debug_watch_begin(&w, folder);
	shell("mkdir debug/.build-id/cd");
	is_seen();
	shell("touch debug/.build-id/cd/ef.debug");
	is_seen();
}

TEST(folder_that_does_not_exist_yet_is_seen)
{
	debug_watch_begin(&w, folder);
	shell("mkdir debug");
	is_seen();
	shell("mkdir -p debug/.build-id/ab");
	is_seen();
	shell("touch elsewhere"); /* the folder above is not watched any more */
	ck_assert(!debug_watch_settled(&w));
	ck_assert(!debug_watch_settled(&w));
	shell("touch debug/.build-id/ab/cd.debug");
	is_seen();
}

TEST(what_is_removed_or_read_is_nothing_new)
{
	shell("mkdir -p debug/.build-id/ab && echo > debug/.build-id/ab/cd.debug");
	debug_watch_begin(&w, folder);
	shell("cat debug/.build-id/ab/cd.debug && rm debug/.build-id/ab/cd.debug");
	ck_assert(!debug_watch_settled(&w));
	ck_assert(!debug_watch_settled(&w));
}
