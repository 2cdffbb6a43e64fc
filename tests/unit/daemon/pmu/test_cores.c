/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Which core each hart is: read once, read again when harts come, and always an answer. */

#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define ONLINE "/sys/devices/system/cpu/online"

TEST(each_hart_has_the_platform_of_its_identity)
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

TEST(like_harts_are_one_kind)
{
	struct core_case c = core_case_of("x60");
	char harts[32];
	ck_assert(!cores_differ(c.cores));
	ck_assert_int_eq(cores_kind(c.cores, 1), -1);
	struct hart_set all = cores_of(c.cores, cores_platform(c.cores, 3));
	ck_assert_str_eq(hart_set_says(&all, harts, sizeof(harts)), "0-7");
	core_case_end(&c);
}

TEST(without_anything_a_hart_is_a_generic_core)
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

TEST(harts_beyond_the_machine_are_generic_cores)
{
	struct core_case c = core_case_of("u74");
	ck_assert_str_eq(cores_platform(c.cores, 3)->name, "sifive-u74");
	ck_assert(cores_platform(c.cores, 4)->generic);
	ck_assert(cores_platform(c.cores, -1)->generic);
	core_case_end(&c);
}

TEST(a_hart_that_comes_is_asked_then)
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

TEST(a_hart_that_went_is_still_known)
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

TEST(what_is_wrong_with_a_file_is_told_by_file_and_line)
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

/* A core that leads by the event of that code, as the owner of a board describes it. */
static void describe(const struct made_folder *f, const char *code, const char *more)
{
	char json[1024];
	snprintf(json, sizeof(json),
		"{\n\"platform\":\"sifive-u74\",\n\"source\":\"made\",\"verified\":\"no\",\n"
		"\"quirks\":[{\"quirk\":\"leader\",\"user\":\"r%s\",\n\"source\":\"made\","
		"\"verified\":\"no\"}]%s\n}\n",
		code, more);
	made_file(f, "own.json", json);
}

struct reloading {
	struct made_folder folder;
	struct core_case of;
	struct cores *cores;
};

static struct reloading reloading_new(void)
{
	struct reloading l = {.folder = made_folder_new(), .of = core_case_of("u74")};
	ck_assert_int_eq(cores_new(PLATFORM_DATA, l.folder.path, &l.cores), 0);
	return l;
}

static void reloading_end(struct reloading *l)
{
	cores_free(l->cores);
	core_case_end(&l->of);
	made_folder_remove(&l->folder);
}

static void read_first(struct reloading *l)
{
	ck_assert_int_eq(cores_read(l->cores, l->of.kernel, &l->of.machine), 0);
}

static const char *outdated(const struct reloading *l)
{
	static char text[64];
	const struct hart_set harts = cores_outdated(l->cores);
	return hart_set_says(&harts, text, sizeof(text));
}

TEST(a_description_that_comes_later_is_taken_at_a_reload)
{
	struct reloading l = reloading_new();
	read_first(&l);
	ck_assert_ptr_null(cores_platform(l.cores, 0)->leader_user);
	describe(&l.folder, "22", "");
	ck_assert_ptr_null(cores_platform(l.cores, 0)->leader_user); /* not by itself */
	ck_assert_int_eq(cores_reload(l.cores), 0);
	ck_assert_uint_eq(cores_platform(l.cores, 3)->leader_user->code, 0x22);
	ck_assert_str_eq(outdated(&l), "0-3");
	reloading_end(&l);
}

TEST(a_reload_that_changes_nothing_outdates_no_hart)
{
	struct reloading l = reloading_new();
	describe(&l.folder, "22", "");
	read_first(&l);
	ck_assert_int_eq(cores_reload(l.cores), 0);
	ck_assert_uint_eq(cores_platform(l.cores, 0)->leader_user->code, 0x22);
	ck_assert_str_eq(outdated(&l), "");
	describe(&l.folder, "23", "");
	ck_assert_int_eq(cores_reload(l.cores), 0);
	ck_assert_str_eq(outdated(&l), "0-3");
	describe(&l.folder, "22", "");
	ck_assert_int_eq(cores_reload(l.cores), 0);
	ck_assert_str_eq(outdated(&l), "");
	reloading_end(&l);
}

TEST(who_borrowed_data_keeps_it_through_reloads)
{
	struct reloading l = reloading_new();
	describe(&l.folder, "22", "");
	read_first(&l);
	struct platform_db *borrowed = cores_database(l.cores);
	const struct platform *before = cores_platform(l.cores, 0);
	for (int i = 0; i < 2; i++) {
		describe(&l.folder, i == 0 ? "23" : "24", "");
		ck_assert_int_eq(cores_reload(l.cores), 0);
	}
	ck_assert_uint_eq(before->leader_user->code, 0x22);
	ck_assert_uint_eq(cores_platform(l.cores, 0)->leader_user->code, 0x24);
	platform_db_free(borrowed);
	ck_assert_ptr_null(cores_database(NULL));
	reloading_end(&l);
}

TEST(what_says_nothing_of_sampling_outdates_no_hart)
{
	struct reloading l = reloading_new();
	describe(&l.folder, "22", "");
	read_first(&l);
	describe(&l.folder, "22", ",\"title\":\"Mine\"");
	ck_assert_int_eq(cores_reload(l.cores), 0);
	ck_assert_str_eq(cores_platform(l.cores, 0)->title, "Mine");
	ck_assert_str_eq(outdated(&l), "");
	reloading_end(&l);
}

TEST(a_file_that_became_wrong_changes_nothing_and_is_named_by_its_line)
{
	struct reloading l = reloading_new();
	describe(&l.folder, "22", "");
	read_first(&l);
	describe(&l.folder, "23", ",\n\"nonsense\":1");
	ck_assert_int_eq(cores_reload(l.cores), CORES_WRONG);
	ck_assert(cores_are_older(l.cores));
	ck_assert_uint_eq(cores_platform(l.cores, 0)->leader_user->code, 0x22);
	ck_assert_msg(strstr(cores_error(l.cores, 0), "own.json:6: unknown key 'nonsense'"), "%s",
		cores_error(l.cores, 0));
	ck_assert_ptr_null(cores_error(l.cores, 1));

	describe(&l.folder, "23", "");
	ck_assert_int_eq(cores_reload(l.cores), 0);
	ck_assert(!cores_are_older(l.cores));
	ck_assert_ptr_null(cores_error(l.cores, 0));
	ck_assert_uint_eq(cores_platform(l.cores, 0)->leader_user->code, 0x23);
	reloading_end(&l);
}

TEST(a_file_that_was_wrong_all_the_time_keeps_no_other_out)
{
	struct reloading l = reloading_new();
	made_file(&l.folder, "broken.json", "{\n");
	read_first(&l);
	ck_assert_ptr_nonnull(cores_error(l.cores, 0));
	describe(&l.folder, "22", "");
	ck_assert_int_eq(cores_reload(l.cores), 0);
	ck_assert_uint_eq(cores_platform(l.cores, 0)->leader_user->code, 0x22);
	ck_assert_ptr_nonnull(cores_error(l.cores, 0));
	ck_assert_ptr_null(cores_error(l.cores, 1));
	reloading_end(&l);
}

TEST(before_the_first_reading_a_reload_reads_nothing)
{
	struct reloading l = reloading_new();
	describe(&l.folder, "22", ",\"nonsense\":1");
	ck_assert_int_eq(cores_reload(l.cores), 0);
	ck_assert_ptr_null(cores_error(l.cores, 0));
	ck_assert_int_eq(cores_reload(NULL), 0);
	ck_assert_str_eq(outdated(&l), "");
	reloading_end(&l);
}

TEST(a_hart_that_comes_after_a_reload_is_planned_by_what_holds_then)
{
	struct reloading l = reloading_new();
	replay_set_text(l.of.replay, ONLINE, "0-2\n");
	ck_assert_int_eq(machine_refresh(l.of.kernel, &l.of.machine), 0);
	read_first(&l);
	describe(&l.folder, "22", "");
	ck_assert_int_eq(cores_reload(l.cores), 0);
	replay_set_text(l.of.replay, ONLINE, "0-3\n");
	ck_assert_int_eq(machine_refresh(l.of.kernel, &l.of.machine), 0);
	read_first(&l);
	ck_assert_uint_eq(cores_platform(l.cores, 3)->leader_user->code, 0x22);
	ck_assert_str_eq(outdated(&l), "0-2");
	reloading_end(&l);
}

TEST(no_data_at_all_is_told_and_leaves_generic_cores)
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

TEST(a_list_of_harts_is_cut_to_its_buffer)
{
	struct hart_set set = {0};
	char text[8], all[64];
	for (int i = 0; i < 20; i += 2)
		hart_set_add(&set, i);
	ck_assert_str_eq(hart_set_says(&set, all, sizeof(all)), "0,2,4,6,8,10,12,14,16,18");
	ck_assert_uint_lt(strlen(hart_set_says(&set, text, sizeof(text))), sizeof(text));
	set = (struct hart_set){0};
	ck_assert_str_eq(hart_set_says(&set, text, sizeof(text)), "");
}

TEST(a_path_that_is_too_long_is_refused)
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
