/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/service/roller.c, with real children. The file is included, since how long it
 * waits between two looks is its own; its time is the test's.
 */

#include "daemon/service/roller.c"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define HOURS (3600ll * 1000000000)
/* 2020-11-21 was a Saturday; that week and the next are long over by any clock. */
#define SATURDAY (1605916800ll * 1000000000)
#define MONDAY (SATURDAY + 48 * HOURS)
static const char boot_one[] = "11111111-2222-3333-4444-555555555555",
		  boot_two[] = "2222aaaa-2222-3333-4444-555555555555";

static struct store *store;
static struct roller *roller;
static char folder[64];
static uint64_t now_ns;

static void open_store(void)
{
	struct store_error error;
	ck_assert_int_eq(store_open(folder, &store, &error), 0);
}

static void setup(void)
{
	snprintf(folder, sizeof(folder), "/tmp/roller.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	open_store();
	now_ns = clock_ns(CLOCK_MONOTONIC);
}

static void teardown(void)
{
	char command[128];
	roller = roller_free(roller);
	store = store_free(store);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);

/* A sealed segment of ten samples that began then. Its path; static. */
static const char *put(int64_t start_ns, const char *boot_id)
{
	static char path[256];
	struct stored s;
	stored_folder(&s);
	s.realtime_ns = (uint64_t)start_ns;
	stored_event(&s, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock");
	stored_begin(&s);
	char sql[256];
	snprintf(sql, sizeof(sql), "UPDATE meta SET value = '%s' WHERE key = 'boot_id'", boot_id);
	ck_assert_int_eq(sqlite3_exec(s.segment->db, sql, NULL, NULL, NULL), SQLITE_OK);
	stored_add(&s, &(struct stored_sample){.task = stored_task(&s, 10, 10, "prog"),
			       .count = 10,
			       .frame = {stored_function(&s, "/bin/prog", "main")}});
	stored_seal(&s);
	char *to;
	ck_assert_int_eq(store_new_path(store, start_ns, boot_id, &to), 0);
	ck_assert_int_eq(rename(s.path, to), 0);
	stored_end(&s);
	ck_assert_int_eq(store_note(store, to), 0);
	snprintf(path, sizeof(path), "%s", to);
	free(to);
	return path;
}

static size_t count_files(enum tier tier)
{
	size_t n = 0;
	for (size_t i = 0; i < store->n_files; i++)
		n += store->file[i].tier == tier && !store->file[i].corrupt;
	return n;
}

static int64_t in_file(const char *name, const char *sql)
{
	char path[256];
	sqlite3 *db;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	ck_assert_int_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	int64_t n = stored_number(db, sql);
	sqlite3_close(db);
	return n;
}

/* Samples of all files of a tier. */
static int64_t samples(enum tier tier)
{
	int64_t n = 0;
	for (size_t i = 0; i < store->n_files; i++)
		if (store->file[i].tier == tier && !store->file[i].corrupt)
			n += in_file(store->file[i].name, "SELECT sum(count) FROM sample");
	return n;
}

/* Until nothing is being done and nothing waits; sealing, too. */
static void work(void)
{
	for (int i = 0; i < 1000; i++) {
		struct pollfd fds[1];
		size_t n = roller_fds(roller, fds, 1);
		if (n > 0)
			ck_assert_int_ge(poll(fds, n, 60000), 0);
		ck_assert_int_eq(roller_dispatch(roller, now_ns), 0);
		if (!roller->child && roller->n_waiting == 0 && !roller->task.source)
			return;
	}
	ck_abort_msg("there is no end");
}

static void begin(void)
{
	ck_assert_int_eq(roller_new(store, &roller), 0);
}

TEST(what_the_store_holds_is_rolled_up_once)
{
	put(SATURDAY + HOURS, boot_one);
	put(SATURDAY + 2 * HOURS, boot_one);
	begin();
	roller->next_seal_ns = UINT64_MAX;
	work();
	ck_assert_uint_eq(roller->n_done, 2);
	ck_assert_uint_eq(roller->n_failed, 0);
	ck_assert_int_eq(samples(TIER_MINUTE), 20);
	ck_assert_int_eq(samples(TIER_HOUR), 20);
	roller = roller_free(roller);
	store = store_free(store);
	open_store();
	begin();
	ck_assert_uint_eq(roller->n_waiting, 0); /* no child for what is done */
}

TEST(a_segment_that_is_told_of_is_rolled_up)
{
	begin();
	roller->next_seal_ns = UINT64_MAX;
	ck_assert_int_eq(roller_add(roller, put(SATURDAY, boot_one)), 0);
	work();
	ck_assert_int_eq(samples(TIER_MINUTE), 10);
	ck_assert_uint_eq(roller->n_done, 1);
}

TEST(files_are_named_after_period_and_boot)
{
	put(SATURDAY + 5 * HOURS, boot_one);
	put(MONDAY + 5 * HOURS, boot_one); /* of the next week */
	put(MONDAY + 6 * HOURS, boot_two);
	begin();
	work();
	ck_assert_uint_eq(count_files(TIER_MINUTE), 3);
	ck_assert_uint_eq(count_files(TIER_HOUR), 3);
	ck_assert_uint_eq(roller->n_failed, 0);
	char *path;
	ck_assert_int_eq(store_tier_path(store, TIER_HOUR, MONDAY + 7 * HOURS, boot_two, &path), 0);
	ck_assert_ptr_nonnull(find(store, path));
	free(path);
}

TEST(a_file_whose_period_is_over_is_sealed)
{
	put(SATURDAY, boot_one);
	begin();
	work();
	for (int i = 0; i < 2; i++) {
		now_ns += SEAL_LOOK_NS;
		work();
		work();
	}
	for (size_t i = 0; i < store->n_files; i++)
		ck_assert_msg(store->file[i].sealed, "%s", store->file[i].name);
	ck_assert_uint_eq(roller->n_failed, 0);
}

TEST(what_was_recovered_late_is_found)
{
	begin();
	work();
	put(SATURDAY, boot_one); /* and nobody says so */
	work();
	ck_assert_uint_eq(roller->n_done, 0);
	now_ns += LOOK_NS + SECOND_NS;
	work();
	ck_assert_uint_ge(roller->n_done, 1);
	ck_assert_int_eq(samples(TIER_MINUTE), 10);
}

TEST(a_segment_that_retention_took_is_passed_over)
{
	const char *path = put(SATURDAY, boot_one);
	begin();
	ck_assert_uint_eq(roller->n_waiting, 1);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(store_note(store, path), 0);
	work();
	ck_assert_uint_eq(roller->n_done + roller->n_failed, 0);
}

TEST(a_damaged_segment_is_set_aside)
{
	const char *path = put(SATURDAY, boot_one);
	put(SATURDAY + HOURS, boot_one);
	begin();
	ck_assert_int_eq(truncate(path, 5000), 0);
	work();
	ck_assert_uint_eq(roller->n_failed, 1);
	ck_assert_uint_eq(store->n_corrupt, 1);
	ck_assert_int_eq(samples(TIER_MINUTE), 10); /* of the other one */
}

TEST(a_damaged_roll_up_is_made_again_from_what_is_still_there)
{
	put(SATURDAY, boot_one);
	begin();
	work();
	for (size_t i = 0; i < store->n_files; i++) {
		char path[256];
		if (store->file[i].tier != TIER_MINUTE)
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, store->file[i].name);
		int fd = open(path, O_WRONLY | O_CLOEXEC);
		ck_assert_int_eq(pwrite(fd, "damage", 6, 0), 6);
		close(fd);
	}
	ck_assert_int_eq(roller_add(roller, put(SATURDAY + HOURS, boot_one)), 0);
	work();
	ck_assert_uint_eq(store->n_corrupt, 1);
	for (int i = 0; i < 4; i++) {
		now_ns += LOOK_NS_MAX;
		work();
	}
	ck_assert_int_eq(samples(TIER_MINUTE), 20);
	ck_assert_int_eq(samples(TIER_HOUR), 20);
}

TEST(what_fails_is_tried_again_ever_more_seldom)
{
	put(SATURDAY, boot_one);
	begin();
	char away[96], minutes[96];
	snprintf(away, sizeof(away), "%s/away", folder);
	snprintf(minutes, sizeof(minutes), "%s/minute", folder);
	ck_assert_int_eq(rename(minutes, away), 0);
	work();
	ck_assert_uint_eq(roller->n_failed, 1);
	for (int i = 0; i < 20; i++) {
		now_ns = roller->next_look_ns;
		work();
	}
	ck_assert_uint_eq(roller->n_failed, 21);
	ck_assert_uint_eq(roller->look_ns, LOOK_NS_MAX);
	ck_assert_int_eq(rename(away, minutes), 0);
	now_ns = roller->next_look_ns;
	work();
	ck_assert_int_eq(samples(TIER_MINUTE), 10);
	now_ns = roller->next_look_ns;
	work();
	ck_assert_uint_eq(roller->look_ns, LOOK_NS);
}

TEST(without_descriptors_it_waits)
{
	struct rlimit before, none;
	put(SATURDAY, boot_one);
	begin();
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	int r = roller_dispatch(roller, now_ns);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(r, 0);
	ck_assert_ptr_null(roller->child);
	work();
	ck_assert_int_eq(samples(TIER_MINUTE), 10);
	ck_assert_uint_eq(roller->n_failed, 0);
}

TEST(a_seal_that_finds_no_descriptors_is_forgotten)
{
	struct rlimit before, none;
	put(SATURDAY, boot_one);
	begin();
	roller->next_seal_ns = UINT64_MAX;
	work();
	roller->next_seal_ns = 0;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	int r = roller_dispatch(roller, now_ns);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_int_eq(r, 0);
	for (int tier = 0; tier < N_TIERS; tier++)
		ck_assert_ptr_null(roller->task.target[tier]);
}

TEST(more_than_may_wait_are_found_later)
{
	const char *path = put(SATURDAY, boot_one);
	begin();
	for (int i = 0; i < ROLLER_WAITING_MAX + 10; i++)
		ck_assert_int_eq(roller_add(roller, path), 0);
	ck_assert_uint_eq(roller->n_waiting, ROLLER_WAITING_MAX);
}

TEST(freed_at_its_work_it_leaves_no_child)
{
	put(SATURDAY, boot_one);
	begin();
	ck_assert_int_eq(roller_dispatch(roller, now_ns), 0);
	ck_assert_ptr_nonnull(roller->child);
	pid_t pid = offload_pid(roller->child);
	roller = roller_free(roller);
	ck_assert_int_eq(kill(pid, 0), -1);
	/* and the next one does the work */
	begin();
	work();
	ck_assert_int_eq(samples(TIER_MINUTE), 10);
}
