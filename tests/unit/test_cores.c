/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Which core each hart is: read once, read again when harts come, and always an answer.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/core_case.h"

#define ONLINE "/sys/devices/system/cpu/online"

START_TEST(each_hart_has_the_platform_of_its_identity)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	ck_assert_str_eq(cores_platform(c.cores, 0)->name, "big");
	ck_assert_str_eq(cores_platform(c.cores, 1)->name, "little");
	ck_assert_uint_eq(cores_identity(c.cores, 1)->marchid, 2);
	ck_assert(cores_differ(c.cores));
	ck_assert_int_eq(cores_kind(c.cores, 0), 0);
	ck_assert_int_eq(cores_kind(c.cores, 1), 1);
	ck_assert_int_eq(cores_kind(c.cores, 2), -1);
	core_case_end(&c);
	made_folder_remove(&folder);
}
END_TEST

START_TEST(like_harts_are_one_kind)
{
	struct core_case c = core_case_of("x60");
	char harts[32];
	ck_assert(!cores_differ(c.cores));
	ck_assert_int_eq(cores_kind(c.cores, 1), -1);
	struct hart_set all = cores_of(c.cores, cores_platform(c.cores, 3));
	ck_assert_str_eq(hart_set_says(&all, harts, sizeof harts), "0-7");
	core_case_end(&c);
}
END_TEST

START_TEST(without_anything_a_hart_is_a_generic_core)
{
	ck_assert(cores_platform(NULL, 0)->generic);
	ck_assert(cores_platform(NULL, -1)->generic);
	ck_assert(!cores_identity(NULL, 0)->read);
	ck_assert_int_eq(cores_kind(NULL, 0), -1);
	ck_assert(!cores_differ(NULL));
	ck_assert_ptr_null(cores_error(NULL, 0));
	ck_assert_int_eq(cores_read(NULL, NULL, NULL), 0);
	_cleanup_(cores_freep) struct cores *unread = NULL;
	ck_assert_int_eq(cores_new(PLATFORM_DATA, "", &unread), 0);
	ck_assert(cores_platform(unread, 0)->generic);
	ck_assert_int_eq(cores_kind(unread, 0), -1);
}
END_TEST

START_TEST(harts_beyond_the_machine_are_generic_cores)
{
	struct core_case c = core_case_of("u74");
	ck_assert_str_eq(cores_platform(c.cores, 3)->name, "sifive-u74");
	ck_assert(cores_platform(c.cores, 4)->generic);
	ck_assert(cores_platform(c.cores, -1)->generic);
	core_case_end(&c);
}
END_TEST

START_TEST(a_hart_that_comes_is_asked_then)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	struct cores *late = NULL;
	ck_assert_int_eq(cores_new(folder.path, "", &late), 0);
	replay_set_text(c.replay, ONLINE, "0\n");
	ck_assert_int_eq(machine_read(c.kernel, &c.machine), 0);
	ck_assert_int_eq(cores_read(late, c.kernel, &c.machine), 0);
	ck_assert(!cores_differ(late));
	ck_assert(cores_platform(late, 1)->generic);
	replay_set_text(c.replay, ONLINE, "0-1\n");
	ck_assert_int_eq(machine_refresh(c.kernel, &c.machine), 0);
	ck_assert_int_eq(cores_read(late, c.kernel, &c.machine), 0);
	ck_assert_str_eq(cores_platform(late, 1)->name, "little");
	cores_free(late);
	core_case_end(&c);
	made_folder_remove(&folder);
}
END_TEST

START_TEST(a_hart_that_went_is_still_known)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	replay_set_text(c.replay, ONLINE, "0\n");
	ck_assert_int_eq(machine_refresh(c.kernel, &c.machine), 0);
	ck_assert_int_eq(cores_read(c.cores, c.kernel, &c.machine), 0);
	ck_assert_str_eq(cores_platform(c.cores, 1)->name, "little");
	ck_assert(!cores_differ(c.cores));
	core_case_end(&c);
	made_folder_remove(&folder);
}
END_TEST

START_TEST(what_is_wrong_with_a_file_is_told_by_file_and_line)
{
	struct made_folder f = made_folder_new();
	struct core_case c = core_case_of("u74");
	struct cores *cores = NULL;
	made_file(&f, "wrong.json", "{\n\t\"platform\": \"x\",\n\t\"nonsense\": 1\n}\n");
	ck_assert_int_eq(cores_new(PLATFORM_DATA, f.path, &cores), 0);
	ck_assert_ptr_null(cores_error(cores, 0)); /* nobody has read it yet */
	ck_assert_int_eq(cores_read(cores, c.kernel, &c.machine), 0);
	const char *error = cores_error(cores, 0);
	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error, "wrong.json:") && strstr(error, "nonsense"), "%s", error);
	ck_assert_str_eq(cores_platform(cores, 0)->name, "sifive-u74");
	cores_free(cores);
	core_case_end(&c);
	made_folder_remove(&f);
}
END_TEST

START_TEST(no_data_at_all_is_told_and_leaves_generic_cores)
{
	struct core_case c = core_case_of("u74");
	struct cores *cores = NULL;
	ck_assert_int_eq(cores_new("/nonexistent/platforms", "", &cores), 0);
	ck_assert_int_eq(cores_read(cores, c.kernel, &c.machine), 0);
	ck_assert_ptr_nonnull(cores_error(cores, 0));
	ck_assert(cores_platform(cores, 0)->generic);
	cores_free(cores);
	core_case_end(&c);
}
END_TEST

START_TEST(a_list_of_harts_is_cut_to_its_buffer)
{
	struct hart_set set = {0};
	char text[8], all[64];
	for (int i = 0; i < 20; i += 2)
		hart_set_add(&set, i);
	ck_assert_str_eq(hart_set_says(&set, all, sizeof all), "0,2,4,6,8,10,12,14,16,18");
	ck_assert_uint_lt(strlen(hart_set_says(&set, text, sizeof text)), sizeof text);
	set = (struct hart_set){0};
	ck_assert_str_eq(hart_set_says(&set, text, sizeof text), "");
}
END_TEST

START_TEST(a_path_that_is_too_long_is_refused)
{
	struct cores *cores = NULL;
	char *path = malloc(8192);
	memset(path, 'x', 8191);
	path[8191] = '\0';
	ck_assert_int_lt(cores_new(path, "", &cores), 0);
	ck_assert_int_lt(cores_new(NULL, path, &cores), 0);
	ck_assert_ptr_null(cores);
	free(path);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cores");
	TCase *c = tcase_create("cores");
	tcase_add_test(c, each_hart_has_the_platform_of_its_identity);
	tcase_add_test(c, like_harts_are_one_kind);
	tcase_add_test(c, without_anything_a_hart_is_a_generic_core);
	tcase_add_test(c, harts_beyond_the_machine_are_generic_cores);
	tcase_add_test(c, a_hart_that_comes_is_asked_then);
	tcase_add_test(c, a_hart_that_went_is_still_known);
	tcase_add_test(c, what_is_wrong_with_a_file_is_told_by_file_and_line);
	tcase_add_test(c, no_data_at_all_is_told_and_leaves_generic_cores);
	tcase_add_test(c, a_list_of_harts_is_cut_to_its_buffer);
	tcase_add_test(c, a_path_that_is_too_long_is_refused);
	suite_add_tcase(s, c);
	SRunner *runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
