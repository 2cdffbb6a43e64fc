/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Tests of proto/package.c, on folders like dpkg's and apt's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/package.h"
#include "tests/unit/test.h"

static char dir[64], dpkg[96], lists[96], cache[96], name[PACKAGE_NAME_BYTES];
static const struct package_places places = {dpkg, lists, cache};

static void shell(const char *command)
{
	char text[512];

	snprintf(text, sizeof(text), "cd '%s' && %s", dir, command);
	ck_assert_int_eq(system(text), 0);
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test_package.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(dpkg, sizeof(dpkg), "%s/info", dir);
	snprintf(lists, sizeof(lists), "%s/lists", dir);
	snprintf(cache, sizeof(cache), "%s/pkgcache.bin", dir);
	shell("mkdir info lists");
	shell("printf '/.\\n/lib\\n/lib/libc.so.6\\n' > info/libc6:amd64.list");
	shell("printf '/usr/bin/xz\\n/usr/bin/xzcat\\n' > info/xz-utils.list");
	shell("printf '/usr/bin/python3.11\\n' > info/python3.11-minimal.list");
	shell("printf '/usr/bin/xz\\n' > info/xz-utils.md5sums");
}

static void teardown(void)
{
	shell("rm -r \"$PWD\"");
}

EACH_TEST(.begin = setup, .end = teardown);

static void is_found(const char *path, enum package_found how, const char *expected)
{
	ck_assert_int_eq(package_of_symbols(&places, path, name), how);
	if (how != PACKAGE_NONE)
		ck_assert_str_eq(name, expected);
}

TEST(owner_gives_the_name)
{
	is_found("/usr/bin/xz", PACKAGE_GUESSED, "xz-utils-dbgsym");
	is_found("/usr/bin/x", PACKAGE_NONE, NULL);
	is_found("/usr/bin/xz\n/usr/bin/xzcat", PACKAGE_NONE, NULL);
	is_found("", PACKAGE_NONE, NULL);
	is_found("[vdso]", PACKAGE_NONE, NULL);
}

TEST(library_that_moved_to_usr_is_known_by_its_old_path)
{
	is_found("/usr/lib/libc.so.6", PACKAGE_KNOWN, "libc6-dbg");
	is_found("/lib/libc.so.6", PACKAGE_KNOWN, "libc6-dbg");
}

TEST(package_that_apt_knows_is_named)
{
	shell("printf 'Package: xz-utils-dbgsym\\nVersion: 1\\n' > lists/debug_Packages");
	is_found("/usr/bin/xz", PACKAGE_KNOWN, "xz-utils-dbgsym");
	shell("printf 'x\\0python3.11-minimal-dbg2\\0' > pkgcache.bin");
	is_found("/usr/bin/python3.11", PACKAGE_GUESSED, "python3.11-minimal-dbgsym");
	shell("printf 'x\\0python3.11-minimal-dbg\\0' > pkgcache.bin");
	is_found("/usr/bin/python3.11", PACKAGE_KNOWN, "python3.11-minimal-dbg");
}

TEST(machine_without_dpkg_has_no_packages)
{
	shell("rm -r info lists");
	is_found("/usr/bin/xz", PACKAGE_NONE, NULL);
}

TEST(remedy_is_a_command)
{
	char text[256];

	package_remedy(&places, "/usr/lib/libc.so.6", text, sizeof(text));
	ck_assert_str_eq(text, "`apt install libc6-dbg`");
	package_remedy(&places, "/usr/bin/xz", text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "`apt install xz-utils-dbgsym`; "));
	package_remedy(&places, "/home/me/program", text, sizeof(text));
	ck_assert_str_eq(text, "build it without strip, or with -g");
}
