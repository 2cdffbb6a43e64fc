/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/scan.c */

#include "daemon/attribute/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/test.h"

#define REST " S 1 11 11 0 -1 4194304 101 0 0 0 0 0 0 0 20 0 1 0 219818 3133440 412"

TEST(numbers_are_taken_up_to_the_first_other_byte)
{
	const char *p = "1f-";
	uint64_t n;

	ck_assert(scan_number(&p, 16, &n));
	ck_assert_uint_eq(n, 0x1f);
	ck_assert_str_eq(p, "-");
	p = "18446744073709551615";
	ck_assert(scan_number(&p, 10, &n));
	ck_assert_uint_eq(n, UINT64_MAX);
}

TEST(what_is_no_number_is_refused)
{
	static const char *const texts[] = {
		"", "-1", " 1", "+1", "x", "18446744073709551616", "99999999999999999999999"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		const char *p = texts[i];
		uint64_t n = 42;

		ck_assert(!scan_number(&p, 10, &n));
		ck_assert_ptr_eq(p, texts[i]);
		ck_assert_uint_eq(n, 42);
	}
}

TEST(a_stat_line_is_read)
{
	struct scan_stat stat;

	ck_assert_int_eq(scan_stat_parse("7 (cat)" REST, &stat), 0);
	ck_assert_int_eq(stat.pid, 7);
	ck_assert_int_eq(stat.parent, 1);
	ck_assert_str_eq(stat.comm, "cat");
	ck_assert_uint_eq(stat.start_ticks, 219818);
	ck_assert(!stat.kernel_thread);
	ck_assert_int_eq(
		scan_stat_parse(
			"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 9 0", &stat),
		0);
	ck_assert(stat.kernel_thread);
	ck_assert_int_eq(stat.parent, 0);
}

TEST(a_name_may_hold_what_it_likes)
{
	struct scan_stat stat;

	ck_assert_int_eq(scan_stat_parse("7 (a) R 9 (b)" REST, &stat), 0);
	ck_assert_str_eq(stat.comm, "a) R 9 (b");
	ck_assert_int_eq(stat.parent, 1);
	ck_assert_int_eq(scan_stat_parse("7 (\n)" REST, &stat), 0);
	ck_assert_str_eq(stat.comm, "\n");
	ck_assert_int_eq(scan_stat_parse("7 ()" REST, &stat), 0);
	ck_assert_str_eq(stat.comm, "");
	/* longer than a task's: kernel workers */
	ck_assert_int_eq(scan_stat_parse("7 (kworker/u8:1-events_unbound)" REST, &stat), 0);
	ck_assert_str_eq(stat.comm, "kworker/u8:1-ev");
}

TEST(broken_stat_lines_are_refused)
{
	static const char *const texts[] = {
		"",
		"7",
		"7 cat",
		"7 (cat",
		"7 (cat)",
		"(cat)" REST,
		"0 (cat)" REST,
		"99999999999 (cat)" REST,
		"7 (cat) S",
		"7 (cat) S x 1 1 1",
		"7 (cat) S 1 1 1 0 -1",
		"7 (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0",
		"7 (cat) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 -3",
		"7 (cat) S 99999999999 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 3",
	};
	struct scan_stat stat = {.pid = 42};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_int_eq(scan_stat_parse(texts[i], &stat), SCAN_MALFORMED);
	ck_assert_int_eq(stat.pid, 42);
}

static int map_parse(const char *text, struct scan_map *ret_map)
{
	static char line[SCAN_LINE_BYTES_MAX];

	strcpy(line, text);
	return scan_map_parse(line, ret_map);
}

TEST(a_line_of_maps_is_read)
{
	struct scan_map m;

	ck_assert_int_eq(
		map_parse("5570-55ff r-xp 00001000 fe:0a 4711      /usr/bin/a b\n", &m), 0);
	ck_assert_uint_eq(m.start, 0x5570);
	ck_assert_uint_eq(m.end, 0x55ff);
	ck_assert_uint_eq(m.file_offset, 0x1000);
	ck_assert_uint_eq(m.major, 0xfe);
	ck_assert_uint_eq(m.minor, 0xa);
	ck_assert_uint_eq(m.inode, 4711);
	ck_assert(m.executable);
	ck_assert_str_eq(m.path, "/usr/bin/a b");
	ck_assert_int_eq(map_parse("1-2 rw-p 0 00:00 0", &m), 0);
	ck_assert(!m.executable);
	ck_assert_str_eq(m.path, "");
	ck_assert_int_eq(map_parse("1-2 --xp 0 00:00 0 [vsyscall]", &m), 0);
	ck_assert_str_eq(m.path, "[vsyscall]");
}

TEST(a_line_feed_in_a_path_is_unescaped)
{
	struct scan_map m;

	ck_assert_int_eq(map_parse("1-2 r-xp 0 00:00 0 /a\\012b\\01", &m), 0);
	ck_assert_str_eq(m.path, "/a\nb\\01");
}

TEST(broken_lines_of_maps_are_refused)
{
	static const char *const lines[] = {
		"",
		"\n",
		"1",
		"1-",
		"1-2",
		"2-1 r-xp 0 0:0 0",
		"1-1 r-xp 0 0:0 0",
		"1-2 r-x 0 0:0 0",
		"1-2 r-xp",
		"1-2 r-xp 0",
		"1-2 r-xp 0 0",
		"1-2 r-xp 0 0:0",
		"1-2 r-xp 0 0:0 ",
		"1-2 r-xp 0 0:0 0x",
		"1-2 r-xp 0 fffffffff:0 0",
		"1 2 r-xp 0 0:0 0",
		"-1-2 r-xp 0 0:0 0",
		"1-fffffffffffffffff r-xp 0 0:0 0",
	};
	struct scan_map m = {.start = 42};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		ck_assert_int_eq(map_parse(lines[i], &m), SCAN_MALFORMED);
	ck_assert_uint_eq(m.start, 42);
}

TEST(every_cut_of_a_line_of_maps_is_survived)
{
	static const char line[] = "5570-55ff r-xp 00001000 fe:0a 4711 /usr/bin/a";

	for (size_t n = 0; n < sizeof(line); n++) {
		struct scan_map m;
		char *cut = strndup(line, n); /* at its very end, for the address sanitizer */

		int r = scan_map_parse(cut, &m);
		ck_assert_int_eq(
			r, n > strlen("5570-55ff r-xp 00001000 fe:0a ") ? 0 : SCAN_MALFORMED);
		free(cut);
	}
}

TEST(a_process_is_its_users)
{
	uid_t uid, real;
	gid_t gid;

	ck_assert_int_eq(scan_uid_parse("Name:\tx\nState:\tS\nUid:\t1000\t1000\t1000\t1000\n"
					"Gid:\t50\t50\t50\t50\nFDSize:\t64\n",
				 &uid, &gid, &real),
		0);
	ck_assert_uint_eq(uid, 1000);
	ck_assert_uint_eq(gid, 50);
	ck_assert_uint_eq(real, 1000);
}

TEST(a_process_with_any_other_id_is_roots)
{
	static const char *const texts[] = {
		"Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t50\t50\t50\t50\n",
		"Name:\tx\nUid:\t1000\t1000\t7\t1000\nGid:\t50\t50\t50\t50\n",
		"Name:\tx\nUid:\t1000\t1000\t1000\t7\nGid:\t50\t50\t50\t50\n",
		"Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t50\t8\t50\t50\n",
		"Name:\tx\nUid:\t1000\t1000\t1000\t1000\nGid:\t50\t50\t8\t50\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		uid_t uid = 42, real = 42;
		gid_t gid = 42;
		ck_assert_int_eq(scan_uid_parse(texts[i], &uid, &gid, &real), 0);
		ck_assert_uint_eq(uid, 0);
		ck_assert_uint_eq(gid, 0);
		ck_assert_uint_eq(real, 1000);
	}
}

TEST(broken_status_is_refused)
{
	static const char *const texts[] = {"", "Uid:\t1\t", "\nUid:\t", "\nUid:\tx\t", "\nUid:\t1",
		"\nUid:\t-1\t", "\nUid:\t99999999999\t", "Name:\tUid:\t7\t\n",
		"\nUid:\t1\t1\t1\t1\n", "\nUid:\t1\t1\t1\nGid:\t1\t1\t1\t1\n",
		"\nUid:\t1\t1\t1\t1\nGid:\t1\t1\t1"};
	uid_t uid = 42, real = 42;
	gid_t gid = 42;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_int_eq(scan_uid_parse(texts[i], &uid, &gid, &real), SCAN_MALFORMED);
	ck_assert_uint_eq(uid, 42);
	ck_assert_uint_eq(real, 42);
}

static const char *cgroup_of(const char *text, enum scan_hierarchy hierarchy)
{
	static char path[SCAN_STAT_BYTES_MAX];
	enum scan_hierarchy found;

	ck_assert_int_eq(scan_cgroup_parse(text, &found, path), 0);
	ck_assert_int_eq(found, hierarchy);
	return path;
}

TEST(the_best_hierarchy_names_the_cgroup)
{
	ck_assert_str_eq(cgroup_of("0::/a/b\n", SCAN_UNIFIED), "/a/b");
	ck_assert_str_eq(cgroup_of("0::/", SCAN_UNIFIED), "/");
	ck_assert_str_eq(
		cgroup_of("3:cpu:/x\n2:net,perf_event,y:/p\n1:name=systemd:/s\n", SCAN_PERF_EVENT),
		"/p");
	ck_assert_str_eq(cgroup_of("1:name=systemd:/s\n", SCAN_SYSTEMD), "/s");
	ck_assert_str_eq(cgroup_of("1:name=systemd:/s\n0::/u\n", SCAN_UNIFIED), "/u");
	ck_assert_str_eq(cgroup_of("0::/a:b\n", SCAN_UNIFIED), "/a:b");
}

TEST(a_version_2_that_is_not_used_gives_way)
{
	ck_assert_str_eq(cgroup_of("1:name=systemd:/s\n0::/\n", SCAN_SYSTEMD), "/s");
	ck_assert_str_eq(cgroup_of("1:name=systemd:/\n0::/\n", SCAN_UNIFIED), "/");
}

TEST(broken_cgroups_are_refused)
{
	static const char *const texts[] = {"", "\n", ":", "0:", "0::", "0::\n/a", "0::a\n",
		"4:cpu:/a\n", "4:perf_events:/a\n", "4:xperf_event:/a", "4:,:/a"};
	char path[SCAN_STAT_BYTES_MAX] = "kept";
	enum scan_hierarchy h;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		ck_assert_int_eq(scan_cgroup_parse(texts[i], &h, path), SCAN_MALFORMED);
	ck_assert_str_eq(path, "kept");
}

TEST(start_times_leave_the_suspended_time_out)
{
	ck_assert_uint_eq(scan_start_ns(100, 10000000, 0), 1000000000);
	ck_assert_uint_eq(scan_start_ns(100, 10000000, 400000000), 600000000);
	ck_assert_uint_eq(scan_start_ns(1, 10000000, 400000000), 0);
	ck_assert_uint_eq(scan_start_ns(UINT64_MAX, 10000000, 0), 0);
}

TEST(a_text_is_cut_to_its_buffer)
{
	char text[8];

	ck_assert_int_eq(scan_text(AT_FDCWD, "/proc/self/stat", text, sizeof(text)), 7);
	ck_assert_uint_eq(strlen(text), 7);
	ck_assert_int_eq(
		scan_text(AT_FDCWD, "/proc/self/no such file", text, sizeof(text)), -ENOENT);
	ck_assert_int_eq(scan_text(AT_FDCWD, "/proc", text, sizeof(text)), -EISDIR);
}
