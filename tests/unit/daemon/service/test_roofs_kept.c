/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Roofs that the service keeps: those of this machine and kernel alone, a file each, a few of them.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "daemon/service/roofs_kept.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

static char store[32];
static struct roofs_kind kind = {.id = "arm-0x41-0xd0c", .name = "Some core", .harts = "0-3"};
static struct roof one = {.limit = ROOF_COMPUTE,
	.scope = ROOF_HART,
	.kind = "arm-0x41-0xd0c",
	.n_harts = 1,
	.precision = "f64",
	.operation = "fma",
	.unit = "neon",
	.value = 2e9,
	.low = 1e9,
	.high = 3e9};
static struct roofs roofs;

static void begin(void)
{
	struct utsname u;
	strcpy(store, "/tmp/mperf-kept-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(store));
	roofs = (struct roofs){.kinds = &kind, .n_kinds = 1, .roof = &one, .n = 1};
	roofs_machine(roofs.machine);
	uname(&u);
	snprintf(roofs.kernel, sizeof(roofs.kernel), "%s", u.release);
	snprintf(roofs.architecture, sizeof(roofs.architecture), "aarch64");
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
	(void)s, (void)type, (void)at;
	return remove(path);
}

static void end(void)
{
	nftw(store, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

EACH_TEST(.begin = begin, .end = end);

/* What roofs_kept_read makes of `roofs`; the fault must have `what` in it. */
static void refused(const char *what)
{
	_cleanup_(freep) char *text = NULL;
	char fault[ROOF_NOTE_BYTES] = "";
	struct roofs read;
	size_t n;
	ck_assert_int_eq(roofs_text(&roofs, true, &text, &n), 0);
	ck_assert_int_eq(roofs_kept_read(text, n, &read, fault), ROOFS_MALFORMED);
	ck_assert_msg(strstr(fault, what) != NULL, "%s", fault);
}

TEST(roofs_of_this_machine_and_kernel_are_taken)
{
	_cleanup_(freep) char *text = NULL;
	char fault[ROOF_NOTE_BYTES] = "";
	struct roofs read;
	size_t n;
	ck_assert_int_eq(roofs_text(&roofs, true, &text, &n), 0);
	ck_assert_msg(roofs_kept_read(text, n, &read, fault) == 0, "%s", fault);
	ck_assert_uint_eq(read.n, 1);
	roofs_clear(&read);
}

TEST(roofs_of_others_are_refused)
{
	snprintf(roofs.machine, sizeof(roofs.machine), "0123");
	refused("another machine");
	roofs_machine(roofs.machine);
	snprintf(roofs.kernel, sizeof(roofs.kernel), "2.6.32");
	refused("another kernel");
	roofs.n = 0;
	refused("there are no roofs");
}

TEST(what_is_no_file_of_roofs_is_refused)
{
	char fault[ROOF_NOTE_BYTES];
	struct roofs read;
	const size_t n = ROOFS_SHARED_BYTES_MAX + 1;
	_cleanup_(freep) char *large = malloc(n);
	ck_assert_int_eq(roofs_kept_read("", 0, &read, fault), ROOFS_MALFORMED);
	ck_assert_int_eq(roofs_kept_read("{}", 2, &read, fault), ROOFS_MALFORMED);
	ck_assert_int_eq(roofs_kept_read("\0\xff{", 3, &read, fault), ROOFS_MALFORMED);
	memset(large, ' ', n);
	ck_assert_int_eq(roofs_kept_read(large, n, &read, fault), ROOFS_MALFORMED);
	ck_assert_ptr_nonnull(strstr(fault, "more than"));
	/* as deep as it may be long, which no parser should follow */
	memset(large, '[', n - 1);
	ck_assert_int_eq(roofs_kept_read(large, n - 1, &read, fault), ROOFS_MALFORMED);
}

static struct roofs given(const char *name)
{
	char text[4096], fault[ROOF_NOTE_BYTES] = "";
	struct roofs read;
	uint64_t n;
	int fd;
	ck_assert_int_eq(roofs_kept_open(store, name, &fd, &n), 0);
	ck_assert_uint_lt(n, sizeof(text));
	ck_assert_int_eq(pread(fd, text, n, 0), n);
	close(fd);
	ck_assert_msg(roofs_parse(text, n, &read, fault) == 0, "%s", fault);
	return read;
}

TEST(what_is_kept_is_given_by_name_else_the_newest)
{
	char first[ROOFS_NAME_BYTES];
	int fd;
	uint64_t n;
	ck_assert_int_eq(roofs_kept_open(store, "", &fd, &n), ROOFS_NONE);
	ck_assert_int_eq(roofs_kept_write(store, &roofs), 0);
	ck_assert_int_eq(roofs_name(&roofs, first), 0);
	one.value = 2.5e9;
	snprintf(kind.harts, sizeof(kind.harts), "0-7");
	usleep(20000); /* a file system's clock goes by ticks */
	ck_assert_int_eq(roofs_kept_write(store, &roofs), 0);

	struct roofs old = given(first), new = given("57060e80aa251e19-2ea2a92363ed45c5.json");
	ck_assert_str_eq(old.kinds[0].harts, "0-3");
	ck_assert_str_eq(new.kinds[0].harts, "0-7");
	roofs_clear(&old);
	roofs_clear(&new);
	new = given("../../../etc/passwd");
	ck_assert_str_eq(new.kinds[0].harts, "0-7");
	roofs_clear(&new);
	struct roofs_kept kept;
	roofs_kept_look(store, &kept);
	ck_assert_uint_eq(kept.n, 2);
	ck_assert_int_gt(kept.newest_ns, 0);
}

TEST(the_oldest_give_way)
{
	struct roofs_kept kept;
	char first[ROOFS_NAME_BYTES], path[128];
	snprintf(kind.harts, sizeof(kind.harts), "0-0");
	ck_assert_int_eq(roofs_name(&roofs, first), 0);
	for (unsigned i = 0; i < ROOFS_KEPT_MAX + 2; i++) {
		snprintf(kind.harts, sizeof(kind.harts), "0-%u", i);
		ck_assert_int_eq(roofs_kept_write(store, &roofs), 0);
		usleep(8000);
	}
	roofs_kept_look(store, &kept);
	ck_assert_uint_eq(kept.n, ROOFS_KEPT_MAX);
	snprintf(path, sizeof(path), "%s/roofs/%s", store, first);
	ck_assert_int_lt(access(path, F_OK), 0);
	snprintf(path, sizeof(path), "%s/roofs/part", store);
	ck_assert_int_lt(access(path, F_OK), 0);
}

TEST(what_is_no_file_of_ours_is_not_opened)
{
	struct roofs_kept kept;
	char path[128];
	uint64_t n;
	int fd;
	ck_assert_int_lt(roofs_kept_write("/does/not/exist", &roofs), 0);
	ck_assert_int_eq(roofs_kept_write(store, &roofs), 0);
	snprintf(path, sizeof(path), "%s/roofs/link.json", store);
	ck_assert_int_eq(symlink("/etc/hostname", path), 0);
	snprintf(path, sizeof(path), "%s/roofs/pipe.json", store);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/roofs/a-name-that-is-longer-than-any-name-of-ours.json",
		store);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	roofs_kept_look(store, &kept);
	ck_assert_uint_eq(kept.n, 1);
	struct roofs read = given("link.json");
	roofs_clear(&read);
	/* longer than what we write */
	char name[ROOFS_NAME_BYTES];
	ck_assert_int_eq(roofs_name(&roofs, name), 0);
	snprintf(path, sizeof(path), "%s/roofs/%s", store, name);
	ck_assert_int_eq(truncate(path, ROOFS_SHARED_BYTES_MAX + 1), 0);
	ck_assert_int_eq(roofs_kept_open(store, name, &fd, &n), ROOFS_NONE);
}
