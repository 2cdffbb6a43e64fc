/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/service/keeper.c: whatever the store does, samples are stored or counted. */

#include "tests/unit/daemon/service/keeper_rig.inc"
#include "tests/unit/test.h"

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
	snprintf(path, sizeof(path), "%s/ballast", folder);
	if (!there) {
		ck_assert_int_eq(unlink(path), 0);
		return;
	}
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	setbuf(f, NULL);
	while (fwrite(block, 1, sizeof(block), f) == sizeof(block))
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
		walk_take(&walk, &a);
	}
}

/* What a program told of so many loops. */
static void count_loops(uint32_t n)
{
	uint64_t value[N_LOOP_VALUES] = {0};
	value[LOOP_VALUE(LOOP_ITERATIONS, false)] = 1;
	for (uint32_t i = 1; i <= n; i++) {
		const struct loop_site_key key = {.kind = LOOP_SITE_LOOP,
			.line = i,
			.subprogram = "walk",
			.source = "a.c",
			.nest = "",
			.inlined_at = ""};
		const struct loop_site_more more = {0};
		struct loop_site *site;
		ck_assert_int_eq(loop_site_get(&walk.sites, &key, NULL, &more, &site), 0);
		const struct loop_counts c = {.site = site, .value = value};
		ck_assert_int_eq(walk_take_loops(&walk, task, &c), 0);
		loop_site_unref(&walk.sites, site);
	}
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);

TEST(a_full_disc_stops_storing_and_all_is_counted)
{
	if (!mount_small("size=8m")) {
		printf("SKIP a_full_disc_stops_storing_and_all_is_counted: may not mount a "
		       "tmpfs\n");
		return;
	}
	begin();
	sample(5);
	store_what_is_in_hand();
	ballast(true);
	sample_new_tasks();
	count_loops(4);
	count_loops(4); /* of the same loops: the same rows */
	ck_assert_int_eq(recording_flush(keeper->recording, clock_ns(CLOCK_MONOTONIC)), 0);
	dispatch();
	ck_assert_ptr_null(keeper->recording);
	ck_assert_uint_eq(keeper->lost[2][LOSS_STORE], 2000);
	ck_assert_uint_eq(keeper->lost[0][LOSS_LOOPS], 4);
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
		count_loops(2);
		look_now();
		ck_assert_ptr_null(keeper->recording);
	}
	ck_assert_uint_eq(times_said("samples are not stored"), 1);
	ck_assert_uint_eq(keeper->lost[1][LOSS_STORE], 21);
	ck_assert_uint_eq(keeper->lost[0][LOSS_LOOPS], 4 + 3 * 2);

	ballast(false);
	look_now();
	ck_assert_ptr_nonnull(keeper->recording);
	ck_assert_uint_eq(times_said("stored again"), 1);
	ck_assert_str_eq(service.store_trouble, "");
	sample(11);
	struct sums sums = end();
	/* what was stored before could not have made room, and stayed */
	ck_assert_int_eq(sums.n_samples, 16);
	/* the files, too, tell of each sample once */
	ck_assert_int_eq(sums.n_lost_store, 2021);
	ck_assert_int_eq(sums.n_killed, 0);
	ck_assert_uint_eq(times_said("killed"), 0);
}

TEST(a_disc_that_becomes_full_in_its_last_flush_is_counted)
{
	if (!mount_small("size=8m")) {
		printf("SKIP a_disc_that_becomes_full_in_its_last_flush_is_counted: may not mount "
		       "a tmpfs\n");
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

TEST(a_budget_that_is_used_up_counts_what_was_in_hand)
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

TEST(a_store_that_cannot_be_made_is_tried_again)
{
	snprintf(conf.store_path, sizeof(conf.store_path), "%s/deeper/store", folder);
	begin();
	ck_assert_ptr_null(keeper->store);
	ck_assert_uint_eq(times_said("cannot be made"), 1);
	sample(5);
	look_now();
	look_now();
	ck_assert_uint_eq(n_said, 1);
	ck_assert_int_eq(mkdir(folder, 0700), 0);
	char deeper[160];
	snprintf(deeper, sizeof(deeper), "%s/deeper", folder);
	ck_assert_int_eq(mkdir(deeper, 0700), 0);
	look_now();
	ck_assert_ptr_nonnull(keeper->recording);
	ck_assert_uint_eq(times_said("stored again"), 1);
	ck_assert_uint_eq(keeper->lost[1][LOSS_STORE], 5);
}

TEST(a_store_whose_folder_went_is_made_anew)
{
	begin();
	sample(5);
	char command[256];
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
	sample_new_tasks();
	/* whether what is unlinked still takes a flush is SQLite's; the next segment
	 * cannot be made */
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

TEST(another_daemon_has_the_store)
{
	begin();
	pid_t child = fork();
	if (child == 0) {
		struct keeper *second;
		struct keeper_options o = {
			.conf = &conf, .walk = &walk, .report = take_report, .say = hear};
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
