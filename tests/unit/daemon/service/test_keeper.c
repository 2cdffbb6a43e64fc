/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/service/keeper.c: one segment after another, reloads, and ends. */

#include "daemon/session/recording_private.h"
#include "tests/unit/daemon/service/keeper_rig.inc"
#include "tests/unit/test.h"

EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);

TEST(what_is_taken_is_stored)
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

TEST(a_window_that_is_partly_written_has_its_next_turn_at_once)
{
	begin();
	for (pid_t pid = 100; pid < 100 + RECORDING_STEP_ROWS; pid++) {
		ck_assert_int_eq(task_add(&walk.tasks, pid, pid, 1000, &task), 0);
		task->process = task;
		sample(1);
	}
	sample(1);
	ck_assert(!keeper_has_more(keeper));
	ck_assert_int_eq(recording_flush(keeper->recording, clock_ns(CLOCK_MONOTONIC)), 0);
	ck_assert(keeper_has_more(keeper));
	for (int turns = 0; keeper_has_more(keeper); turns++) {
		ck_assert_int_lt(turns, 10);
		dispatch();
	}
	adds_up();
}

TEST(the_hour_ends_a_segment_and_no_sample)
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

/* The window in hand keeps its end. */
TEST(windows_are_as_long_as_asked_and_as_mperf_conf_says_at_least)
{
	const uint64_t usual_ns = conf.flush_ns;
	begin();
	ck_assert_uint_eq(keeper->recording->window_ns, usual_ns);
	keeper_flush_every(keeper, 3 * usual_ns);
	ck_assert_uint_eq(keeper->recording->window_ns, 3 * usual_ns);
	ck_assert_int_eq(keeper_reload(keeper), 0);
	ck_assert_uint_eq(keeper->recording->window_ns, 3 * usual_ns);
	keeper_flush_every(keeper, usual_ns / 2);
	ck_assert_uint_eq(keeper->recording->window_ns, usual_ns);
	keeper_flush_every(keeper, 0);
	ck_assert_uint_eq(keeper->recording->window_ns, usual_ns);
}

TEST(a_clock_that_was_set_begins_a_new_segment)
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
	ck_assert_uint_eq(times_said("the clock was changed by +2000.0 s"), 1);
	ck_assert_uint_eq(times_said("the clock was changed by -4000.0 s"), 1);
	ck_assert_uint_eq(n_said, 2);
}

TEST(a_segment_that_has_its_part_of_the_budget_is_closed)
{
	begin();
	sample(1);
	store_what_is_in_hand();
	conf.budget_bytes = 1 << 20;
	conf.budget_bytes *= 2; /* an eighth of it is more than an empty segment has */
	look_now();
	ck_assert(!keeper_any_ending(keeper));
	struct recording_state state;
	recording_state(keeper->recording, &state);
	conf.budget_bytes = (uint64_t)state.bytes * SEGMENT_BUDGET_PART - 1;
	ck_assert(rotation_is_due(keeper));
}

TEST(segments_that_wait_for_names_are_bounded)
{
	begin();
	/* a namer that has something to do, and a frame that nobody will name */
	struct file *file;
	struct frame *frame;
	struct file_key key = {.kind = FILE_ELF, .path = "/nowhere", .inode = 1, .major = 1};
	ck_assert_int_eq(file_get(&rig.files, &key, &file), 0);
	ck_assert_int_eq(frame_get(&rig.files, file, 16, &frame), 0);
	ck_assert_int_eq(namer_name(rig.namer, frame, rig.uid), 0);
	ck_assert_int_eq(file_get(&walk.files, &key, &file), 0);
	ck_assert_int_eq(frame_get(&walk.files, file, 16, &frame), 0);
	for (int i = 0; i < 3 * ENDING_MAX; i++) {
		struct attribution a = {.task = task,
			.hart = 1,
			.count = 1,
			.frame = &frame,
			.n_frames = 1,
			.time_ns = now_ns};
		n_taken++;
		walk_take(&walk, &a);
		walk.realtime_offset_ns += 100 * (uint64_t)SECOND_NS;
		look_now();
		ck_assert_ptr_nonnull(keeper->recording);
	}
	ck_assert(!may_end(keeper));
	ck_assert(keeper->rotate);
	/* said for those that were begun, and once for the one that cannot be */
	ck_assert_uint_le(times_said("the clock was changed"), ENDING_MAX + 1);
	ck_assert_int_eq(keeper_reload(keeper), 0);
	ck_assert_int_eq(end().n_samples, 3 * ENDING_MAX);
}

/* --- reloads ---------------------------------------------------------------------------------- */

TEST(another_path_is_another_store)
{
	begin();
	sample(5);
	snprintf(conf.store_path, sizeof(conf.store_path), "%s", other);
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

TEST(keep_no_ends_and_keep_yes_begins)
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

TEST(many_reloads_lose_nothing)
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

/* --- losses of the walk, and ends ------------------------------------------------------------- */

TEST(a_loss_is_told_by_one_segment)
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

TEST(stopped_without_a_store_it_ends)
{
	conf.store = false;
	begin();
	sample(4);
	keeper_stop(keeper);
	keeper_stop(keeper);
	adds_up();
}

TEST(freed_in_the_middle_it_is_recovered_and_told)
{
	begin();
	sample(5);
	store_what_is_in_hand();
	sample(6);
	dispatch(); /* the account is written */
	keeper = keeper_free(keeper);
	begin();
	ck_assert_uint_eq(times_said("killed before it had stored its last 6 samples"), 1);
	sample(7);
	struct sums sums = end();
	ck_assert_int_eq(sums.n_files, 2);
	ck_assert_int_eq(sums.n_samples, 12);
	ck_assert_int_eq(sums.n_killed, 6);
	begin();
	(void)end();
	ck_assert_uint_eq(times_said("killed"), 1);
}

TEST(jobs_can_be_pinned_from_the_first_moment)
{
	snprintf(conf.pin_jobs, sizeof(conf.pin_jobs), "branch=main,keep=2");
	begin();
	const struct pin_limits *l = &keeper->pinner->limits;
	ck_assert_uint_eq(l->all_bytes, conf.budget_bytes / 1000000 * conf.pinned_ppm);
	ck_assert_uint_eq(l->user_bytes, l->all_bytes / 2);
	ck_assert_uint_gt(l->free_bytes, 0);
	ck_assert_uint_eq(keeper->pinner->rules.n, 1);
	/* also of a store that a reload names */
	snprintf(conf.store_path, sizeof(conf.store_path), "%s", other);
	ck_assert_int_eq(keeper_reload(keeper), 0);
	ck_assert_str_eq(keeper->store->path, other);
	ck_assert_uint_gt(keeper->pinner->limits.all_bytes, 0);
	ck_assert_uint_eq(keeper->pinner->rules.n, 1);
}
