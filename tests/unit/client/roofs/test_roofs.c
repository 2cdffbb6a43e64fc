/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Roofs as data: written and read back, refused with the place of the fault, kept and found, and
 * marked as stale.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/roofs/keep.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

static struct roofs_kind kind = {.id = "x86-Some-6-1", .name = "Some core", .harts = "0-3"};

static struct roof two[] = {
	{.limit = ROOF_COMPUTE,
		.scope = ROOF_HART,
		.kind = "x86-Some-6-1",
		.n_harts = 1,
		.precision = "f64",
		.operation = "fma",
		.unit = "avx2",
		.value = 96e9,
		.low = 95e9,
		.high = 97e9,
		.hz = 3e9,
		.repeats = 9},
	{.limit = ROOF_MEMORY,
		.scope = ROOF_KIND,
		.kind = "x86-Some-6-1",
		.n_harts = 4,
		.level = "DRAM",
		.pattern = "2:1",
		.bytes = 1 << 28,
		.unit = "rvv",
		.lmul = 8,
		.value = 20e9,
		.low = 19e9,
		.high = 20e9,
		.repeats = 9,
		.note = "throttled"},
};

static struct roofs some_roofs(void)
{
	struct roofs r = {
		.machine = "0123456789abcdef",
		.kernel = "6.12.0",
		.architecture = "x86_64",
		.kinds = &kind,
		.n_kinds = 1,
		.measured_s = 1790000000,
		.took_s = 12.5,
		.quick = true,
		.disturbed = "other programs used 1.30 of 2 harts meanwhile",
		.roof = two,
		.n = 2,
	};
	return r;
}

/* The caller frees. */
static char *written(const struct roofs *r)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	ck_assert_int_eq(roofs_write(r, false, f), 0);
	fclose(f);
	return text;
}

TEST(roofs_read_back_as_they_were_written)
{
	struct roofs r = some_roofs(), again;
	char fault[ROOF_NOTE_BYTES] = "";
	_cleanup_(freep) char *text = written(&r);
	ck_assert_msg(roofs_parse(text, strlen(text), &again, fault) == 0, "%s", fault);
	ck_assert_uint_eq(again.n, 2);
	ck_assert_int_eq(memcmp(again.roof, two, sizeof(two)), 0);
	ck_assert_int_eq(memcmp(again.kinds, &kind, sizeof(kind)), 0);
	ck_assert_str_eq(again.machine, r.machine);
	ck_assert_int_eq(again.measured_s, r.measured_s);
	ck_assert_str_eq(again.disturbed, r.disturbed);
	ck_assert(again.quick && !again.paused && !again.stale);
	_cleanup_(freep) char *text_again = written(&again);
	ck_assert_str_eq(text, text_again);
	roofs_clear(&again);
}

/* `from` in the text of some_roofs becomes `to`; the fault must name `what`. */
static void refused(const char *from, const char *to, int outcome, const char *what)
{
	struct roofs r = some_roofs(), untouched = {.n = 77};
	char fault[ROOF_NOTE_BYTES] = "", changed[8192];
	_cleanup_(freep) char *text = written(&r);
	char *at = strstr(text, from);
	ck_assert_msg(at != NULL, "%s", from);
	snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text, to,
		at + strlen(from));
	ck_assert_int_eq(roofs_parse(changed, strlen(changed), &untouched, fault), outcome);
	ck_assert_msg(strstr(fault, what) != NULL, "%s: %s", to, fault);
	ck_assert_uint_eq(untouched.n, 77);
}

TEST(a_fault_is_named_by_its_place)
{
	refused("\"low\": 95000000000.0", "\"low\": 98e9", ROOFS_MALFORMED,
		"roofs[0].value is not between low and high");
	refused("\"value\": 20000000000.0", "\"value\": \"fast\"", ROOFS_MALFORMED,
		"roofs[1].value is not a number");
	refused("\"value\": 20000000000.0", "\"value\": 0", ROOFS_MALFORMED,
		"roofs[1].value is not above zero");
	refused("\"value\": 20000000000.0", "\"value\": -1", ROOFS_MALFORMED, "out of range");
	refused("\"scope\": \"kind\"", "\"scope\": \"universe\"", ROOFS_MALFORMED,
		"roofs[1].scope");
	refused("\"limit\": \"memory\"", "\"limit\": \"patience\"", ROOFS_MALFORMED,
		"roofs[1].limit");
	refused("\"unit\": \"avx2\"", "\"unit\": \"a-unit-with-a-long-name\"", ROOFS_MALFORMED,
		"roofs[0].unit is too long");
	refused("\"unit\": \"avx2\"", "\"unit\": \"\\u001b[2J\"", ROOFS_MALFORMED,
		"control characters");
	refused("\"precision\": \"f64\",", "", ROOFS_MALFORMED, "roofs[0].precision is missing");
	refused("\"format\": \"mperf-roofs\"", "\"format\": \"x\"", ROOFS_MALFORMED, "format");
	refused("\"version\": 1", "\"version\": 2", ROOFS_NEWER, "version 2");
	refused("\"quick\": true", "\"quick\": 1", ROOFS_MALFORMED, "quick is not true or false");
	refused("\"disturbed\": \"other", "\"disturbed\": \"\\u001b[2J", ROOFS_MALFORMED,
		"disturbed has control characters");
	refused("\"notes\": []", "\"notes\": [3]", ROOFS_MALFORMED, "notes[0]");
	refused("\"notes\": []", "\"notes\": {}", ROOFS_MALFORMED, "notes is not a list");
	refused("\"took\"", "\"quick\"", ROOFS_MALFORMED, "line");
	refused("{", "", ROOFS_MALFORMED, "line 2");
}

TEST(files_from_before_do_not_say_what_disturbed_them)
{
	struct roofs r = some_roofs(), again;
	char fault[ROOF_NOTE_BYTES];
	_cleanup_(freep) char *text = written(&r);
	memcpy(strstr(text, "disturbed"), "unknown", 7);
	ck_assert_int_eq(roofs_parse(text, strlen(text), &again, fault), 0);
	ck_assert_str_eq(again.disturbed, "");
	roofs_clear(&again);
}

TEST(text_that_is_no_json_is_refused)
{
	struct roofs r;
	char fault[ROOF_NOTE_BYTES];
	ck_assert_int_eq(roofs_parse("", 0, &r, fault), ROOFS_MALFORMED);
	ck_assert_int_eq(roofs_parse("[]", 2, &r, fault), ROOFS_MALFORMED);
	ck_assert_int_eq(roofs_parse("{}", ROOFS_BYTES_MAX + 1, &r, fault), ROOFS_MALFORMED);
	ck_assert_ptr_nonnull(strstr(fault, "more than"));
	ck_assert_int_eq(roofs_read("/does/not/exist", &r, fault), -ENOENT);
}

TEST(the_highest_roof_of_a_sort_is_found)
{
	struct roofs r = some_roofs();
	ck_assert_ptr_eq(roofs_highest(&r, &(struct roof_wanted){.precision = "f64"}), &two[0]);
	ck_assert_ptr_null(roofs_highest(&r, &(struct roof_wanted){.precision = "f32"}));
	ck_assert_ptr_null(roofs_highest(&r, &(struct roof_wanted){.limit = ROOF_MEMORY}));
	ck_assert_ptr_eq(roofs_highest(&r, &(struct roof_wanted){.limit = ROOF_MEMORY,
						   .scope = ROOF_KIND,
						   .pattern = "2:1"}),
		&two[1]);
}

TEST(roofs_of_another_machine_or_kernel_are_stale)
{
	struct roofs r = some_roofs();
	struct machine m = {.n_kinds = 1, .kind = {kind}};
	snprintf(m.id, sizeof(m.id), "%s", r.machine);
	snprintf(m.kernel, sizeof(m.kernel), "%s", r.kernel);
	roofs_compare(&r, &m);
	ck_assert(!r.stale);

	snprintf(m.kernel, sizeof(m.kernel), "6.13.0");
	roofs_compare(&r, &m);
	ck_assert(r.stale && strstr(r.why, "6.12.0") && strstr(r.why, "6.13.0"));

	snprintf(m.kernel, sizeof(m.kernel), "%s", r.kernel);
	snprintf(m.kind[0].id, sizeof(m.kind[0].id), "another");
	roofs_compare(&r, &m);
	ck_assert(r.stale && strstr(r.why, "another"));

	snprintf(m.id, sizeof(m.id), "ffff");
	roofs_compare(&r, &m);
	ck_assert(r.stale && strstr(r.why, "another machine"));
}

TEST(what_is_kept_is_found)
{
	char folder[] = "/tmp/mperf-roofs-XXXXXX", fault[ROOF_NOTE_BYTES], path[ROOFS_PATH_BYTES];
	struct roofs r = some_roofs(), found;
	struct machine m;
	ck_assert_int_eq(machine_look(&m), 0);
	ck_assert_uint_ge(m.n_harts, 1);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	setenv("XDG_STATE_HOME", folder, 1);
	ck_assert_int_eq(keep_find_own(&m, &found, fault), ROOFS_NONE);

	/* another machine's, in a home that is shared */
	ck_assert_int_eq(keep_own(&r), 0);
	ck_assert_int_eq(keep_find_own(&m, &found, fault), 0);
	ck_assert(found.stale && found.n == 2);
	roofs_clear(&found);

	memcpy(r.machine, m.id, sizeof(r.machine));
	memcpy(r.kernel, m.kernel, sizeof(r.kernel));
	r.kinds = m.kind;
	r.n_kinds = m.n_kinds;
	ck_assert_int_eq(keep_own(&r), 0);
	ck_assert_int_eq(keep_own(&r), 0); /* over what was there */
	ck_assert_int_eq(keep_find_own(&m, &found, fault), 0);
	ck_assert_msg(!found.stale, "%s", found.why);
	roofs_clear(&found);

	ck_assert_int_eq(keep_path(&r, path), 0);
	ck_assert_int_eq(truncate(path, 10), 0);
	ck_assert_int_eq(keep_find_own(&m, &found, fault), ROOFS_MALFORMED);
	ck_assert_int_eq(unlink(path), 0);
	machine_clear(&m);
	r = some_roofs();
	ck_assert_int_eq(keep_path(&r, path), 0);
	ck_assert_int_eq(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/mperf/roofs", folder);
	/* where a folder is in the way, nothing is written into it */
	char in_the_way[ROOFS_PATH_BYTES];
	ck_assert_int_eq(keep_path(&r, in_the_way), 0);
	ck_assert_int_eq(mkdir(in_the_way, 0700), 0);
	ck_assert_int_lt(keep_own(&r), 0);
	ck_assert_int_eq(rmdir(in_the_way), 0);
	ck_assert_int_eq(rmdir(path), 0);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}

TEST(the_state_folder_is_an_absolute_path)
{
	char path[ROOFS_PATH_BYTES];
	setenv("XDG_STATE_HOME", "relative", 1);
	setenv("HOME", "/home/x", 1);
	ck_assert(keep_folder(path));
	ck_assert_str_eq(path, "/home/x/.local/state/mperf/roofs");
	unsetenv("HOME");
	ck_assert(!keep_folder(path));
}
