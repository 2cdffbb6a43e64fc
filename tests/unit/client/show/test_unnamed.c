/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of client/show/unnamed.c, on a table as hotspots has it and folders like dpkg's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/show/unnamed.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

static char dir[64], dpkg[96], lists[96], cache[96];
static const struct package_places places = {dpkg, lists, cache};
static struct reply reply;
static char *said;

static void shell(const char *command)
{
	char text[512];

	snprintf(text, sizeof(text), "cd '%s' && %s", dir, command);
	ck_assert_int_eq(system(text), 0);
}

static void setup(void)
{
	static const struct reply_heading heading[] = {
		{"function", "Function", MPERF__UNIT__UNIT_NONE},
		{"module", "Module", MPERF__UNIT__UNIT_NONE},
		{"self", "Self", MPERF__UNIT__UNIT_SHARE},
	};

	snprintf(dir, sizeof(dir), "/tmp/test_unnamed.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(dpkg, sizeof(dpkg), "%s/info", dir);
	snprintf(lists, sizeof(lists), "%s/lists", dir);
	snprintf(cache, sizeof(cache), "%s/pkgcache.bin", dir);
	shell("mkdir info lists");
	shell("printf '/usr/bin/xz\\n/usr/lib/liblzma.so.5\\n' > info/xz-utils.list");
	ck_assert_int_eq(reply_head(&reply, heading, 3), 0);
}

static void teardown(void)
{
	reply_clear(&reply);
	free(said);
	shell("rm -r \"$PWD\"");
}

EACH_TEST(.begin = setup, .end = teardown);

static void add(const char *function, const char *module, double self)
{
	const Mperf__Value row[] = {reply_value_of_text(function), reply_value_of_text(module),
		reply_value_of_real(self)};

	ck_assert_int_eq(reply_append(&reply, row, 3), 0);
}

static void write_it(void)
{
	size_t n;
	FILE *f = open_memstream(&said, &n);

	ck_assert_ptr_nonnull(f);
	unnamed_write(&places, &reply, f);
	ck_assert_int_eq(fclose(f), 0);
}

TEST(file_with_most_time_in_functions_without_a_name_is_told_with_its_package)
{
	add("main", "/usr/bin/xz", 0.5);
	add("liblzma.so.5+0x51a0", "/usr/lib/liblzma.so.5", 0.2);
	add("xz+0x10", "/usr/bin/xz", 0.1);
	add("liblzma.so.5+0x6000", "/usr/lib/liblzma.so.5", 0.05);
	write_it();
	ck_assert_ptr_nonnull(
		strstr(said, "25 % of the time is in functions of /usr/lib/liblzma.so.5 "
			     "without a name: `apt install xz-utils-dbgsym`"));
}

TEST(less_than_a_twentieth_is_not_worth_a_line)
{
	add("main", "/usr/bin/xz", 0.9);
	add("liblzma.so.5+0x51a0", "/usr/lib/liblzma.so.5", 0.049);
	write_it();
	ck_assert_str_eq(said, "");
}

TEST(file_of_no_package_is_not_told)
{
	add("mine+0x51a0", "/home/me/mine", 0.9);
	write_it();
	ck_assert_str_eq(said, "");
}

TEST(what_only_looks_like_an_address_is_a_name)
{
	add("liblzma.so.5", "/usr/lib/liblzma.so.5", 0.3);
	add("liblzma.so.5+1", "/usr/lib/liblzma.so.5", 0.3);
	add("[unknown]", "[unknown]", 0.3);
	add("xz+0x10", "/usr/lib/liblzma.so.5", 0.3);
	write_it();
	ck_assert_str_eq(said, "");
}

TEST(tables_of_something_else_have_no_such_line)
{
	static const struct reply_heading heading[] = {
		{"process", "Process", MPERF__UNIT__UNIT_NONE}};
	const Mperf__Value row[] = {reply_value_of_text("xz")};

	ck_assert_int_eq(reply_head(&reply, heading, 1), 0);
	ck_assert_int_eq(reply_append(&reply, row, 1), 0);
	write_it();
	ck_assert_str_eq(said, "");
}
