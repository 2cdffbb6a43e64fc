/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Versions of generated code: changes that come into force at their time, and what they may take. */

#include "daemon/naming/file.h"
#include "tests/unit/test.h"

static struct file_table t;
static struct file *file;

static void begin(void)
{
	const struct file_key key = {.kind = FILE_PERF_MAP,
		.path = "/tmp/perf-7.map",
		.uid = 1000,
		.account = 1000,
		.pid = 7};

	ck_assert_int_eq(file_get(&t, &key, &file), 0);
}

static void end(void)
{
	file_table_clear(&t);
}

EACH_TEST(.begin = begin, .end = end);

static uint32_t at(uint64_t addr, uint64_t time_ns)
{
	return version_at(&t, file, addr, time_ns);
}

static struct frame *frame_at(uint64_t addr, uint64_t time_ns)
{
	struct frame *frame;

	ck_assert_int_eq(frame_get_for(&t, file, addr, time_ns, 1000, &frame), 0);
	return frame;
}

TEST(a_change_is_in_force_from_its_time_on)
{
	const struct version_change c[] = {
		{0x1000, 0x1040, 100, 3}, {0x1020, 0x1030, 200, 5}, {0x1010, 0x1038, 200, 6}};

	ck_assert_uint_eq(at(0x1000, 1000), 0);
	versions_change(&t, file, c, 3);
	ck_assert_uint_eq(at(0x1020, 99), 0);
	ck_assert_uint_eq(at(0x1020, 0), 0);
	ck_assert_uint_eq(at(0x1020, 100), 3);
	ck_assert_uint_eq(at(0x1020, 199), 3);
	ck_assert_uint_eq(at(0x1020, 200), 6);
	ck_assert_uint_eq(at(0x100f, 200), 3);
	ck_assert_uint_eq(at(0x1038, 200), 3);
	ck_assert_uint_eq(at(0x1037, 200), 6);
	ck_assert_uint_eq(at(0x1040, 200), 0);
	ck_assert_uint_eq(at(0xfff, 200), 0);
}

TEST(an_address_has_a_frame_for_each_version)
{
	const struct version_change c = {0x1000, 0x1040, 100, 1};
	struct frame *before = frame_at(0x1000, 10), *beside = frame_at(0x1040, 10);

	versions_change(&t, file, &c, 1);
	ck_assert_ptr_eq(frame_at(0x1000, 99), before);
	struct frame *after = frame_at(0x1000, 100);
	ck_assert_ptr_ne(after, before);
	ck_assert_uint_ne(after->id, before->id);
	ck_assert_uint_eq(frame_version(before), 0);
	ck_assert_uint_eq(frame_version(after), 1);
	ck_assert_ptr_eq(frame_at(0x1000, 101), after);
	ck_assert_ptr_eq(frame_at(0x1040, 101), beside);
}

TEST(a_sweep_finds_each_version_again)
{
	const struct version_change c = {0x1000, 0x1040, 100, 1};
	uint8_t frames[3] = {0}, files[1] = {SWEEP_KEPT};
	const struct file_marks marks = {frames, files, 3, 1};

	struct frame *before = frame_at(0x1000, 10);
	versions_change(&t, file, &c, 1);
	struct frame *after = frame_at(0x1000, 100);
	(void)frame_at(0x5000, 100);
	frames[before->id - 1] = frames[after->id - 1] = SWEEP_KEPT;
	ck_assert_int_eq(file_table_sweep(&t, &marks), 0);
	ck_assert_ptr_eq(frame_at(0x1000, 101), after);
	ck_assert_uint_eq(t.n_frames - t.n_free_frames, 2);
}

/* A compiler that fills other places all the time: all is one version then, and begins again. */
TEST(what_is_too_much_becomes_one_version, .times = 2)
{
	for (uint32_t i = 0; i < 10 * VERSIONS_MAX; i++) {
		const struct version_change c = {
			0x1000 + 0x20 * i, 0x1010 + 0x20 * i, i + 1, i + 1};
		versions_change(&t, file, &c, 1);
		if (_i == 0)
			ck_assert_uint_eq(at(c.start, i + 1), i + 1);
	}
	ck_assert_uint_le(file->size, 1 + 2 * (VERSIONS_MAX * 32 / FILE_BYTES + 8));
	uint32_t now = at(1, 10 * VERSIONS_MAX);
	ck_assert_uint_gt(now, 8 * VERSIONS_MAX);
	ck_assert_uint_eq(at(0x1000, 10 * VERSIONS_MAX), now);
}

TEST(a_user_without_places_gets_one_version_for_all)
{
	const struct version_change c[] = {{0x1000, 0x1040, 100, 3}, {0x2000, 0x2040, 100, 5}};

	while (quota_take(&t.files_of, 1000, FILES_MAX, 1))
		continue;
	versions_change(&t, file, c, 2);
	ck_assert_uint_eq(at(0x1000, 1), 5);
	ck_assert_uint_eq(at(0x9000, 1), 5);
}
