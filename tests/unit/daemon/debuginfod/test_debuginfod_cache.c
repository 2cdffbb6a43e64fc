/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of daemon/debuginfod/cache.c, on a folder as libdebuginfod makes it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/debuginfod/cache.h"
#include "tests/unit/test.h"

#define KB 1024

static char folder[64];

static void setup(void)
{
	snprintf(folder, sizeof(folder), "/tmp/test_debuginfod_cache.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void shell(const char *command)
{
	char text[512];

	snprintf(text, sizeof(text), "cd '%s' && %s", folder, command);
	ck_assert_int_eq(system(text), 0);
}

static void teardown(void)
{
	shell("rm -r \"$PWD\"");
}

EACH_TEST(.begin = setup, .end = teardown);

/* Make a debug file of kb KiB that was fetched some days ago. */
static void add(const char *id, int kb, int days)
{
	char text[256];

	snprintf(text, sizeof(text),
		"mkdir %s && head -c %dK /dev/zero >%s/debuginfo && touch -d '%d days ago' "
		"%s/debuginfo",
		id, kb, id, days, id);
	shell(text);
}

static bool has(const char *path)
{
	char text[128];

	snprintf(text, sizeof(text), "%s/%s", folder, path);
	return access(text, F_OK) == 0;
}

TEST(a_debug_file_is_found_by_its_build_id)
{
	const uint8_t id[3] = {0xab, 0xcd, 0xef}, other[3] = {0xab, 0xcd};
	char path[PATH_MAX], wanted[128];

	add("abcdef", 1, 0);
	snprintf(wanted, sizeof(wanted), "%s/abcdef/debuginfo", folder);
	ck_assert(debuginfod_cached(folder, id, 3, path));
	ck_assert_str_eq(path, wanted);
	ck_assert(!debuginfod_cached(folder, other, 3, path));
	ck_assert(!debuginfod_cached(folder, id, 1, path)); /* no build id is so short */
	ck_assert(!debuginfod_cached(folder, id, 255, path));
}

TEST(what_the_library_keeps_for_its_user_becomes_everybodys_to_read)
{
	const uint8_t id[2] = {0xab, 0xcd};
	struct stat is;

	add("abcd", 1, 9);
	shell("chmod 700 abcd && chmod 400 abcd/debuginfo");
	ck_assert_int_eq(debuginfod_cache_open(folder, id, 2), 0);
	shell("test $(stat -c %a abcd) = 755");
	shell("test $(stat -c %a abcd/debuginfo) = 644");
	shell("touch -d '1 hour ago' old && test abcd/debuginfo -nt old"); /* it was fetched now */
	ck_assert_int_eq(debuginfod_cache_open(folder, (const uint8_t[]){1, 2}, 2), -ENOENT);
	ck_assert_int_eq(stat(folder, &is), 0);
}

/* Bytes of so many folders alone, without the debug files in them. */
static int64_t bytes_of_folders(int n)
{
	struct stat is;
	char path[128];

	snprintf(path, sizeof(path), "%s/aa01", folder);
	ck_assert_int_eq(stat(path, &is), 0);
	return (int64_t)is.st_blocks * 512 * n;
}

TEST(files_are_removed_until_the_rest_fits_the_oldest_first)
{
	add("aa01", 64, 3);
	add("aa02", 64, 9);
	add("aa03", 64, 1);
	add("aa04", 64, 6);
	const int64_t folders = bytes_of_folders(4);
	ck_assert_int_eq(
		debuginfod_cache_trim(folder, 256 * KB + (uint64_t)folders), 256 * KB + folders);
	ck_assert_int_eq(debuginfod_cache_trim(folder, 150 * KB + (uint64_t)folders),
		128 * KB + folders / 2);
	ck_assert(has("aa01/debuginfo") && has("aa03/debuginfo"));
	ck_assert(!has("aa02") && !has("aa04"));
	ck_assert_int_eq(debuginfod_cache_trim(folder, 0), 0);
	ck_assert(!has("aa03") && !has("aa01"));
}

TEST(sections_and_files_of_its_own_are_left_or_counted)
{
	add("aa01", 64, 1);
	shell("head -c 64K /dev/zero >aa01/debuginfo-.debug_line && touch -d '5 days ago' "
	      "aa01/debuginfo-.debug_line");
	shell("echo 1 >cache_clean_interval_s && echo 1 >max_unused_age_s");
	const int64_t folders = bytes_of_folders(1);
	ck_assert_int_eq(
		debuginfod_cache_trim(folder, 100 * KB + (uint64_t)folders), 64 * KB + folders);
	ck_assert(has("aa01/debuginfo") && !has("aa01/debuginfo-.debug_line"));
	ck_assert(has("cache_clean_interval_s"));
}

TEST(what_a_killed_fetch_left_goes)
{
	add("aa01", 64, 0);
	shell("mkdir aa02 && head -c 64K /dev/zero >aa02/debuginfo.Xa04Bc");
	shell("head -c 64K /dev/zero >aa01/debuginfo.x4fTrG");
	ck_assert_int_eq(debuginfod_cache_trim(folder, 1024 * KB), 64 * KB + bytes_of_folders(1));
	ck_assert(has("aa01/debuginfo") && !has("aa01/debuginfo.x4fTrG") && !has("aa02"));
}

TEST(that_no_server_has_a_file_is_known_for_ten_minutes)
{
	const uint8_t id[2] = {0xaa, 0x01};
	char path[PATH_MAX];

	shell("mkdir aa01 aa02 && touch aa01/debuginfo && touch -d '1 hour ago' aa02/debuginfo");
	ck_assert(!debuginfod_cached(folder, id, 2, path)); /* it is no debug file */
	ck_assert_int_eq(debuginfod_cache_trim(folder, 1024 * KB), bytes_of_folders(1));
	ck_assert(has("aa01/debuginfo") && !has("aa02"));
}

TEST(a_link_leads_nowhere)
{
	shell("mkdir aa01 victim && head -c 64K /dev/zero >victim/file && ln -s "
	      "\"$PWD/victim/file\" aa01/debuginfo");
	shell("mv victim .victim && ln -s .victim aa02");
	ck_assert_int_ge(debuginfod_cache_trim(folder, 0), 0);
	ck_assert(has(".victim/file"));
	const uint8_t id[2] = {0xaa, 0x01};
	char path[PATH_MAX];
	ck_assert(!debuginfod_cached(folder, id, 2, path));
}

TEST(a_folder_that_is_not_there_is_an_error)
{
	ck_assert_int_eq(debuginfod_cache_trim("/nonexistent", 0), -ENOENT);
}
