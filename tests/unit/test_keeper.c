/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/control/keeper.c: samples are stored or counted, whatever the store does. The
 * walk is made by hand and has no ring; samples are handed to its taps. Both files are included:
 * the keeper for its times and its segment, the walk for what is inside it.
 */

#define clock_ns walk_clock_ns
#define run walk_run
#include "daemon/control/walk.c"
#undef clock_ns
#undef run

#include "daemon/control/keeper.c"

#include <check.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/store/segment_write.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/stored.h"

static struct stored s;
static struct namer_rig rig;
static struct walk walk;
static struct walk_inner inner;
static struct service service;
static struct conf conf;
static struct keeper *keeper;
static struct task *task;
static char folder[128], other[128];
static char said[64][1024];
static size_t n_said;
static uint64_t n_taken, now_ns;

static void hear(void *userdata, int level, const char *text)
{
	(void)userdata;
	(void)level;
	ck_assert_uint_lt(n_said, sizeof said / sizeof *said);
	snprintf(said[n_said++], sizeof *said, "%s", text);
}

static size_t times_said(const char *word)
{
	size_t n = 0;
	for (size_t i = 0; i < n_said; i++)
		n += strstr(said[i], word) != NULL;
	return n;
}

static void make_walk(void)
{
	namer_rig_begin(&rig, &(struct namer_options){.binary = NULL});
	inner = (struct walk_inner){.rings_fd = -1};
	walk = (struct walk){.sampler = &s.sampler, .inner = &inner, .namer = rig.namer};
	walk.realtime_offset_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	inner.execs = (struct exec_watch){.sampler = &s.sampler, .fd = -1, .rests = true};
	struct attribute_options o = {.files = &walk.files,
		.tasks = &walk.tasks,
		.streams = &s.sampler.streams,
		.lost = s.lost,
		.n_harts = STORED_HARTS,
		.n_events = 1,
		.proc = "/nowhere",
		.sink = take_attribution,
		.userdata = &walk};
	ck_assert_int_eq(attribute_new(&o, &inner.attribute), 0);
	inner.execs.attribute = inner.attribute;
	inner.merge.streams = &s.sampler.streams;
	inner.merge.lost = s.lost;
}

static void setup(void)
{
	stored_begin_clock(&s);
	s.segment = segment_abandon(s.segment, true);
	s.sampler.lost = s.lost;
	make_walk();
	ck_assert_int_eq(task_add(&walk.tasks, 10, 10, 1000, &task), 0);
	task->process = task;
	task_set_comm(task, "prog");
	conf_defaults(&conf);
	conf.min_free_bytes = 0;
	conf.flush_ns = SECOND_NS;
	snprintf(folder, sizeof folder, "%s/store", s.folder);
	snprintf(other, sizeof other, "%s/other", s.folder);
	snprintf(conf.store_path, sizeof conf.store_path, "%s", folder);
	service = (struct service){.o.conf = &conf};
	n_said = 0;
	n_taken = 0;
	now_ns = clock_ns(CLOCK_MONOTONIC);
}

static void teardown(void)
{
	char command[512];
	keeper = keeper_free(keeper);
	merge_clear(&inner.merge);
	attribute_free(inner.attribute);
	namer_rig_end(&rig);
	task_table_clear(&walk.tasks);
	file_table_clear(&walk.files);
	(void)umount2(folder, MNT_DETACH);
	snprintf(command, sizeof command, "rm -rf '%s' '%s'", folder, other);
	ck_assert_int_eq(system(command), 0);
	s.sampler.lost = NULL;
	stored_end(&s);
}

static void begin(void)
{
	struct keeper_options o = {.conf = &conf, .walk = &walk, .service = &service, .say = hear};
	n_taken = walk.n_taken = 0;
	ck_assert_int_eq(keeper_new(&o, &keeper), 0);
}

static void sample(uint64_t n)
{
	struct attribution a = {
		.task = task, .time_ns = now_ns, .hart = 1, .count = n, .weight_ns = 7};
	n_taken += n;
	take_attribution(&walk, &a);
}

/* What was taken is stored, in hand or lost. */
static void adds_up(void)
{
	uint64_t stored, in_hand, lost = 0;
	keeper_account(keeper, &stored, &in_hand);
	for (int hart = 0; hart < STORED_HARTS; hart++)
		for (int cause = 0; cause < N_LOSSES; cause++)
			lost += loss_kinds[cause].samples ? keeper->lost[hart][cause] : 0;
	ck_assert_uint_eq(n_taken, walk.n_taken);
	ck_assert_msg(n_taken == stored + in_hand + lost,
		"%lu taken, %lu stored, %lu in hand, %lu lost", n_taken, stored, in_hand, lost);
}

/* As the daemon's loop after a drain. */
static void dispatch(void)
{
	bool all;
	now_ns = clock_ns(CLOCK_MONOTONIC);
	ck_assert_int_eq(cut_due(&walk, now_ns, &all), 0);
	ck_assert_int_eq(keeper_dispatch(keeper, now_ns), 0);
	adds_up();
}

/* A second later, for whoever looks once a second or tries again. */
static void look_now(void)
{
	keeper->next_look_ns = keeper->next_try_ns = 0;
	if (keeper->store)
		keeper->store->recover_ns = 0;
	dispatch();
}

static void store_what_is_in_hand(void)
{
	ck_assert_int_eq(recording_flush(keeper->recording, clock_ns(CLOCK_MONOTONIC)), 0);
	adds_up();
}

struct sums {
	int64_t n_files, n_samples, n_lost_store, n_killed, n_lost;
};

/* Over all window files, all of which must be sealed. */
static struct sums read_back(const char *path)
{
	struct sums sums = {0};
	struct store *store;
	struct store_error error;
	ck_assert_int_eq(store_open(path, &store, &error), 0);
	for (size_t i = 0; i < store->n_files; i++) {
		const struct store_file *f = &store->file[i];
		char file[512];
		sqlite3 *db;
		struct segment_error broken;
		if (f->tier != TIER_WINDOW)
			continue;
		ck_assert_msg(f->sealed && !f->corrupt, "%s", f->name);
		snprintf(file, sizeof file, "%s/%s", path, f->name);
		ck_assert_int_eq(segment_open(file, &db, &broken), 0);
		sums.n_files++;
		sums.n_samples += stored_number(db, "SELECT total(count) FROM sample");
		sums.n_lost_store += stored_number(
			db, "SELECT total(count) FROM loss WHERE cause = 'not stored'");
		sums.n_killed += stored_number(
			db, "SELECT total(count) FROM loss WHERE cause = 'daemon killed'");
		sums.n_lost += stored_number(db, "SELECT total(count) FROM loss");
		sqlite3_close(db);
	}
	store_free(store);
	return sums;
}

static struct sums end(void)
{
	keeper_stop(keeper);
	adds_up();
	keeper = keeper_free(keeper);
	return read_back(folder);
}

START_TEST(what_is_taken_is_stored)
{
	begin();
	ck_assert_str_eq(service.store_trouble, "");
	ck_assert_ptr_eq(service.store, keeper->store);
	for (int i = 0; i < 5; i++) {
		sample(3);
		dispatch();
	}
	struct sums sums = end();
	ck_assert_int_eq(sums.n_files, 1);
	ck_assert_int_eq(sums.n_samples, 15);
	ck_assert_int_eq(sums.n_lost, 0);
	ck_assert_uint_eq(n_said, 0);
}
END_TEST

START_TEST(the_hour_ends_a_segment_and_no_sample)
{
	begin();
	for (int i = 0; i < 4; i++) {
		sample(5);
		keeper->period--; /* as if it had begun an hour ago */
		look_now();
		ck_assert_ptr_nonnull(keeper->recording);
	}
	sample(1);
	struct sums sums = end();
	ck_assert_int_eq(sums.n_files, 5);
	ck_assert_int_eq(sums.n_samples, 21);
	ck_assert_int_eq(sums.n_lost, 0);
	ck_assert_uint_eq(n_said, 0);
}
END_TEST

START_TEST(a_clock_that_was_set_begins_a_new_segment)
{
	begin();
	sample(5);
	walk.realtime_offset_ns += 2000 * (uint64_t)SECOND_NS;
	look_now();
	sample(6);
	walk.realtime_offset_ns -= 4000 * (uint64_t)SECOND_NS;
	look_now();
	/* a second that NTP slews is no step */
	walk.realtime_offset_ns += SECOND_NS;
	look_now();
	struct sums sums = end();
	ck_assert_int_eq(sums.n_files, 3);
	ck_assert_int_eq(sums.n_samples, 11);
	ck_assert_uint_eq(times_said("the clock was set by +2000.0 s"), 1);
	ck_assert_uint_eq(times_said("the clock was set by -4000.0 s"), 1);
	ck_assert_uint_eq(n_said, 2);
}
END_TEST

START_TEST(a_segment_that_has_its_part_of_the_budget_is_closed)
{
	begin();
	sample(1);
	store_what_is_in_hand();
	conf.budget_bytes = 1 << 20;
	conf.budget_bytes *= 2; /* an eighth of it is more than an empty segment has */
	look_now();
	ck_assert(!any_ending(keeper));
	struct recording_state state;
	recording_state(keeper->recording, &state);
	conf.budget_bytes = (uint64_t)state.bytes * SEGMENT_BUDGET_PART - 1;
	ck_assert(rotation_is_due(keeper));
}
END_TEST

START_TEST(segments_that_wait_for_names_are_bounded)
{
	begin();
	/* a frame that nobody will name, as long as the workers are not asked */
	struct file *file;
	struct frame *frame;
	struct file_key key = {.kind = FILE_ELF, .path = "/nowhere", .inode = 1, .major = 1};
	ck_assert_int_eq(file_get(&rig.files, &key, &file), 0);
	ck_assert_int_eq(frame_get(&rig.files, file, 16, &frame), 0);
	ck_assert_int_ge(namer_open(rig.namer, file), 0);
	for (int i = 0; i < 3 * ENDING_MAX; i++) {
		struct attribution a = {.task = task,
			.hart = 1,
			.count = 1,
			.frame = &frame,
			.n_frames = 1,
			.time_ns = now_ns};
		n_taken++;
		take_attribution(&walk, &a);
		walk.realtime_offset_ns += 100 * (uint64_t)SECOND_NS;
		look_now();
		ck_assert_ptr_nonnull(keeper->recording);
	}
	ck_assert(!may_end(keeper));
	ck_assert(keeper->rotate);
	/* said for those that were begun, and once for the one that cannot be */
	ck_assert_uint_le(times_said("the clock was set"), ENDING_MAX + 1);
	ck_assert_int_eq(keeper_reload(keeper), 0);
	ck_assert_int_eq(end().n_samples, 3 * ENDING_MAX);
}
END_TEST

/* --- without a store ----------------------------------------------------------------------------
 */

static bool mount_small(const char *options)
{
	conf.budget_bytes = 16 << 20; /* so that the headroom is small, too */
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	return mount("tmpfs", folder, "tmpfs", 0, options) == 0;
}

static void ballast(bool there)
{
	char path[256];
	static char block[1 << 16];
	snprintf(path, sizeof path, "%s/ballast", folder);
	if (!there) {
		ck_assert_int_eq(unlink(path), 0);
		return;
	}
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	setbuf(f, NULL);
	while (fwrite(block, 1, sizeof block, f) == sizeof block)
		;
	while (fwrite(block, 1, 1, f) == 1)
		;
	fclose(f);
}

/* Enough for a flush to need pages that are not there. */
static void sample_new_tasks(void)
{
	for (int i = 0; i < 2000; i++) {
		struct task *another;
		pid_t pid = (pid_t)(1000 + walk.n_taken);
		ck_assert_int_eq(task_add(&walk.tasks, pid, pid, 1000, &another), 0);
		another->process = another;
		task_set_comm(another, "another");
		struct attribution a = {.task = another, .time_ns = now_ns, .hart = 2, .count = 1};
		n_taken++;
		take_attribution(&walk, &a);
	}
}

START_TEST(a_full_disc_stops_storing_and_all_is_counted)
{
	if (!mount_small("size=8m")) {
		printf("skipped: may not mount a tmpfs\n");
		return;
	}
	begin();
	sample(5);
	store_what_is_in_hand();
	ballast(true);
	sample_new_tasks();
	ck_assert_int_eq(recording_flush(keeper->recording, clock_ns(CLOCK_MONOTONIC)), 0);
	dispatch();
	ck_assert_ptr_null(keeper->recording);
	ck_assert_uint_eq(keeper->lost[2][LOSS_STORE], 2000);
	ck_assert_uint_eq(times_said("samples are not stored"), 1);
	ck_assert_ptr_nonnull(strstr(service.store_trouble, "space"));
	/* what is kept can be asked for, and what comes is counted */
	struct store_part *part;
	size_t n_parts;
	ck_assert_int_eq(keeper_select(keeper, 1, 0, TIER_HOUR, &part, &n_parts), 0);
	ck_assert_uint_eq(n_parts, 1);
	free(part);
	for (int i = 0; i < 3; i++) {
		sample(7);
		look_now();
		ck_assert_ptr_null(keeper->recording);
	}
	ck_assert_uint_eq(times_said("samples are not stored"), 1);
	ck_assert_uint_eq(keeper->lost[1][LOSS_STORE], 21);

	ballast(false);
	look_now();
	ck_assert_ptr_nonnull(keeper->recording);
	ck_assert_uint_eq(times_said("stored again"), 1);
	ck_assert_str_eq(service.store_trouble, "");
	sample(11);
	struct sums sums = end();
	/* the first segment was all that could make room, and went */
	ck_assert_int_eq(sums.n_samples, 11);
	/* the files, too, tell of each sample once */
	ck_assert_int_eq(sums.n_lost_store, 2021);
	ck_assert_int_eq(sums.n_killed, 0);
	ck_assert_uint_eq(times_said("killed"), 0);
}
END_TEST

START_TEST(a_disc_that_becomes_full_in_its_last_flush_is_counted)
{
	if (!mount_small("size=8m")) {
		printf("skipped: may not mount a tmpfs\n");
		return;
	}
	begin();
	sample(5);
	store_what_is_in_hand();
	ballast(true);
	sample_new_tasks();
	keeper_stop(keeper);
	adds_up();
	ck_assert_uint_eq(keeper->lost[2][LOSS_STORE], 2000);
	keeper = keeper_free(keeper);
	ballast(false);
	/* the next run enters it where it belongs */
	begin();
	sample(1);
	struct sums sums = end();
	ck_assert_int_eq(sums.n_samples, 6);
	ck_assert_int_eq(sums.n_killed + sums.n_lost_store, 2000);
}
END_TEST

START_TEST(a_budget_that_is_used_up_counts_what_was_in_hand)
{
	begin();
	sample(5);
	conf.budget_bytes = 1 << 20; /* the least headroom is as much */
	look_now();
	ck_assert_ptr_null(keeper->recording);
	ck_assert_uint_eq(keeper->lost[1][LOSS_STORE], 5);
	ck_assert_uint_eq(times_said("budget"), 1);
	sample(6);
	look_now();
	ck_assert_uint_eq(keeper->lost[1][LOSS_STORE], 11);
	ck_assert_uint_eq(n_said, 1);
	/* just enough to go on would be too little to begin: it would be said every ten seconds */
	conf.budget_bytes = 2 << 20;
	look_now();
	ck_assert_ptr_null(keeper->recording);
	ck_assert_uint_eq(n_said, 1);
	conf.budget_bytes = 1 << 30;
	look_now();
	ck_assert_ptr_nonnull(keeper->recording);
	sample(1);
	struct sums sums = end();
	ck_assert_int_eq(sums.n_samples, 1);
	ck_assert_int_eq(sums.n_lost_store, 11);
}
END_TEST

START_TEST(a_store_that_cannot_be_made_is_tried_again)
{
	snprintf(conf.store_path, sizeof conf.store_path, "%s/deeper/store", folder);
	begin();
	ck_assert_ptr_null(keeper->store);
	ck_assert_uint_eq(times_said("cannot be made"), 1);
	sample(5);
	look_now();
	look_now();
	ck_assert_uint_eq(n_said, 1);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	char deeper[160];
	snprintf(deeper, sizeof deeper, "%s/deeper", folder);
	ck_assert_int_eq(mkdir(deeper, 0700), 0);
	look_now();
	ck_assert_ptr_nonnull(keeper->recording);
	ck_assert_uint_eq(times_said("stored again"), 1);
	ck_assert_uint_eq(keeper->lost[1][LOSS_STORE], 5);
}
END_TEST

START_TEST(a_store_whose_folder_went_is_made_anew)
{
	begin();
	sample(5);
	char command[256];
	snprintf(command, sizeof command, "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
	sample_new_tasks();
	/* whether what is unlinked still takes a flush is SQLite's; the next segment cannot be made
	 */
	(void)recording_flush(keeper->recording, clock_ns(CLOCK_MONOTONIC));
	dispatch();
	keeper->period--;
	look_now();
	look_now();
	look_now();
	ck_assert_ptr_nonnull(keeper->recording);
	sample(3);
	struct sums sums = end();
	ck_assert_int_ge(sums.n_samples, 3);
}
END_TEST

START_TEST(another_daemon_has_the_store)
{
	begin();
	pid_t child = fork();
	if (child == 0) {
		struct keeper *second;
		struct keeper_options o = {
			.conf = &conf, .walk = &walk, .service = &service, .say = hear};
		keeper_forget(keeper);
		n_said = 0;
		int r = keeper_new(&o, &second);
		_exit(r == 0 && !second->recording && times_said("in use by another mperfd") == 1
				? 0
				: 1);
	}
	int status;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(status, 0);
	sample(1);
	ck_assert_int_eq(end().n_samples, 1);
}
END_TEST

/* --- reloads ------------------------------------------------------------------------------------
 */

START_TEST(another_path_is_another_store)
{
	begin();
	sample(5);
	snprintf(conf.store_path, sizeof conf.store_path, "%s", other);
	ck_assert_int_eq(keeper_reload(keeper), 0);
	adds_up();
	sample(7);
	ck_assert_int_eq(read_back(folder).n_samples, 5);
	keeper_stop(keeper);
	keeper = keeper_free(keeper);
	struct sums sums = read_back(other);
	ck_assert_int_eq(sums.n_samples, 7);
	ck_assert_int_eq(sums.n_lost, 0);
	ck_assert_uint_eq(n_said, 0);
}
END_TEST

START_TEST(keep_no_ends_and_keep_yes_begins)
{
	begin();
	sample(5);
	conf.store = false;
	ck_assert_int_eq(keeper_reload(keeper), 0);
	ck_assert_ptr_null(service.store);
	ck_assert_ptr_nonnull(strstr(service.store_trouble, "keep = no"));
	sample(6);
	look_now();
	ck_assert_uint_eq(keeper->lost[1][LOSS_STORE], 6);
	conf.store = true;
	ck_assert_int_eq(keeper_reload(keeper), 0);
	ck_assert_str_eq(service.store_trouble, "");
	sample(7);
	struct sums sums = end();
	ck_assert_int_eq(sums.n_samples, 12);
	ck_assert_int_eq(sums.n_lost_store, 6);
	ck_assert_int_eq(sums.n_killed, 0);
	ck_assert_uint_eq(n_said, 0);
}
END_TEST

START_TEST(many_reloads_lose_nothing)
{
	begin();
	for (int i = 0; i < 30; i++) {
		sample(2);
		conf.flush_ns = (uint64_t)(1 + i % 7) * SECOND_NS;
		ck_assert_int_eq(keeper_reload(keeper), 0);
		if (i % 3 == 0)
			look_now();
	}
	look_now();
	struct sums sums = end();
	ck_assert_int_eq(sums.n_samples, 60);
	ck_assert_int_eq(sums.n_lost, 0);
}
END_TEST

/* --- losses of the walk, and ends
 * ----------------------------------------------------------------- */

START_TEST(a_loss_is_told_by_one_segment)
{
	begin();
	sample(1);
	s.lost[2][LOSS_RING] += 10;
	keeper->period--;
	look_now(); /* the first has these ten, also while it waits for its seal */
	s.lost[2][LOSS_RING] += 100;
	look_now();
	sample(1);
	keeper->period--;
	look_now();
	s.lost[3][LOSS_RING] += 1000;
	sample(1);
	struct sums sums = end();
	ck_assert_int_eq(sums.n_files, 3);
	ck_assert_int_eq(sums.n_lost, 1110);
}
END_TEST

START_TEST(stopped_without_a_store_it_ends)
{
	conf.store = false;
	begin();
	sample(4);
	keeper_stop(keeper);
	keeper_stop(keeper);
	adds_up();
}
END_TEST

START_TEST(freed_in_the_middle_it_is_recovered_and_told)
{
	begin();
	sample(5);
	store_what_is_in_hand();
	sample(6);
	dispatch(); /* the account is written */
	keeper = keeper_free(keeper);
	begin();
	ck_assert_uint_eq(times_said("killed with 6 samples in hand"), 1);
	sample(7);
	struct sums sums = end();
	ck_assert_int_eq(sums.n_files, 2);
	ck_assert_int_eq(sums.n_samples, 12);
	ck_assert_int_eq(sums.n_killed, 6);
	begin();
	(void)end();
	ck_assert_uint_eq(times_said("killed"), 1);
}
END_TEST

int main(int argc, char **argv)
{
	namer_rig_main(argc, argv);
	Suite *suite = suite_create("keeper");
	TCase *tests = tcase_create("keeper");
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_set_timeout(tests, 120);
	tcase_add_test(tests, what_is_taken_is_stored);
	tcase_add_test(tests, the_hour_ends_a_segment_and_no_sample);
	tcase_add_test(tests, a_clock_that_was_set_begins_a_new_segment);
	tcase_add_test(tests, a_segment_that_has_its_part_of_the_budget_is_closed);
	tcase_add_test(tests, segments_that_wait_for_names_are_bounded);
	tcase_add_test(tests, a_full_disc_stops_storing_and_all_is_counted);
	tcase_add_test(tests, a_disc_that_becomes_full_in_its_last_flush_is_counted);
	tcase_add_test(tests, a_budget_that_is_used_up_counts_what_was_in_hand);
	tcase_add_test(tests, a_store_that_cannot_be_made_is_tried_again);
	tcase_add_test(tests, a_store_whose_folder_went_is_made_anew);
	tcase_add_test(tests, another_daemon_has_the_store);
	tcase_add_test(tests, another_path_is_another_store);
	tcase_add_test(tests, keep_no_ends_and_keep_yes_begins);
	tcase_add_test(tests, many_reloads_lose_nothing);
	tcase_add_test(tests, a_loss_is_told_by_one_segment);
	tcase_add_test(tests, stopped_without_a_store_it_ends);
	tcase_add_test(tests, freed_in_the_middle_it_is_recovered_and_told);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int n_failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
