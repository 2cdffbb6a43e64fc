/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/store/account.c: what a run that was killed leaves behind, as it wrote it and as
 * it never would have.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/account.h"
#include "tests/unit/stored.h"
#include "tests/unit/test.h"

#define TAG UINT64_C(0x31636341666d70)
#define NAME "20261121T140000Z-11111111.mprf"

static struct stored s;
static struct store *store;
static struct store_error error;
static struct account *account;
static char store_folder[128], segment[256];
static uint64_t lost;

/* A segment with 5 samples of hart 1 and 7 of hart 2, as recovery has left it. */
static void make_segment(bool windows)
{
	stored_begin_clock(&s);
	struct task *task = stored_task(&s, 10, 10, "prog");
	struct frame *frame = stored_function(&s, "/bin/prog", "main");
	for (int hart = 1; hart <= 2 && windows; hart++)
		stored_add(&s, &(struct stored_sample){.task = task,
				       .hart = hart,
				       .count = hart == 1 ? 5 : 7,
				       .frame = {frame}});
	if (windows)
		ck_assert_int_eq(stored_flush(&s, 0, SECOND), 0);
	ck_assert_int_eq(segment_seal(s.segment, SECOND), 0);
	s.segment = NULL;
}

static void begin(bool windows)
{
	make_segment(windows);
	snprintf(store_folder, sizeof(store_folder), "%s/store", s.folder);
	ck_assert_int_eq(store_open(store_folder, &store, &error), 0);
	snprintf(segment, sizeof(segment), "%s/window/" NAME, store_folder);
	ck_assert_int_eq(rename(s.path, segment), 0);
	lost = 0;
}

static void setup(void)
{
	begin(true);
}

static void teardown(void)
{
	char command[256];
	account = account_free(account);
	store = store_free(store);
	snprintf(command, sizeof(command), "rm -rf '%s'", store_folder);
	ck_assert_int_eq(system(command), 0);
	stored_end(&s);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 60);

/* The next run, which finds that many harts. */
static int settle_with(int n_harts)
{
	account = account_free(account);
	ck_assert_int_eq(account_open(store, n_harts, &account), 0);
	return account_settle(account, store, &lost);
}

static int settle(void)
{
	return settle_with(STORED_HARTS);
}

static void take(uint64_t hart1, uint64_t hart2)
{
	ck_assert_int_eq(account_open(store, STORED_HARTS, &account), 0);
	account_begin(account, segment);
	account_taken(account)[1] += hart1;
	account_taken(account)[2] += hart2;
	account_write(account);
}

static int64_t in_segment(const char *sql)
{
	sqlite3 *db;
	struct segment_error broken;
	ck_assert_int_eq(segment_open(segment, &db, &broken), 0);
	int64_t n = stored_number(db, sql);
	sqlite3_close(db);
	return n;
}

static const char killed[] = "SELECT total(count) FROM loss WHERE cause = 'daemon killed'";

TEST(what_was_in_hand_is_entered_by_hart_and_once)
{
	take(8, 7);
	ck_assert_int_eq(settle(), ACCOUNT_SETTLED);
	ck_assert_uint_eq(lost, 3);
	ck_assert_int_eq(in_segment(killed), 3);
	ck_assert_int_eq(in_segment("SELECT hart FROM loss WHERE cause = 'daemon killed'"), 1);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(settle(), 0);
	ck_assert_int_eq(in_segment(killed), 3);
}

TEST(a_settlement_that_was_itself_killed_is_made_once)
{
	/* it had entered the loss, and died before it could say so in the account */
	take(8, 7);
	char left[4096];
	char path[160];
	snprintf(path, sizeof(path), "%s/account", store_folder);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t n = read(fd, left, sizeof(left));
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(settle(), ACCOUNT_SETTLED);
	ck_assert_int_eq(pwrite(fd, left, (size_t)n, 0), n);
	close(fd);
	ck_assert_int_eq(settle(), 0);
	ck_assert_int_eq(in_segment(killed), 3);
}

TEST(what_was_stored_or_counted_is_not_lost)
{
	take(5, 7);
	ck_assert_int_eq(settle(), 0);
	ck_assert_int_eq(in_segment(killed), 0);
	/* stored by a flush that the account did not live to see */
	account = account_free(account);
	take(4, 0);
	ck_assert_int_eq(settle(), 0);
	ck_assert_int_eq(in_segment(killed), 0);
}

TEST(a_run_that_ended_well_leaves_nothing_to_settle)
{
	take(50, 70);
	account_end(account);
	ck_assert_int_eq(settle(), 0);
	ck_assert_int_eq(in_segment(killed), 0);
}

TEST(each_segment_begins_at_nothing)
{
	take(50, 70);
	account_begin(account, segment);
	account_taken(account)[1] += 6;
	account_write(account);
	ck_assert_int_eq(settle(), ACCOUNT_SETTLED);
	ck_assert_uint_eq(lost, 1);
}

TEST(what_the_segment_was_taken_for_is_said_where_it_is_gone)
{
	take(8, 7);
	ck_assert_int_eq(unlink(segment), 0);
	ck_assert_int_eq(settle(), ACCOUNT_ORPHAN);
	ck_assert_uint_eq(lost, 15);
	ck_assert_int_eq(settle(), 0); /* and not again at every start */
}

TEST(a_segment_without_a_window_has_no_place_for_a_loss)
{
	teardown();
	begin(false);
	take(1, 0);
	ck_assert_int_eq(settle(), ACCOUNT_ORPHAN);
	ck_assert_uint_eq(lost, 1);
}

TEST(a_machine_that_has_other_harts_by_now_settles_those_it_had)
{
	take(8, 9);
	ck_assert_int_eq(settle_with(1), ACCOUNT_SETTLED);
	ck_assert_uint_eq(lost, 5);
	account = account_free(account);
	take(9, 9); /* 8 and 9 are answered for by now */
	ck_assert_int_eq(settle_with(64), ACCOUNT_SETTLED);
	ck_assert_uint_eq(lost, 1);
	ck_assert_int_eq(in_segment(killed), 6);
}

/* --- an account that we did not write --------------------------------------------------------- */

struct page {
	uint64_t tag;
	char segment[STORE_NAME_BYTES];
	uint64_t n_harts;
	uint64_t taken[STORED_HARTS];
};

static void leave(const void *bytes, size_t n)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/account", store_folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

static struct page good(void)
{
	return (struct page){
		.tag = TAG, .segment = NAME, .n_harts = STORED_HARTS, .taken = {0, 8, 9, 0}};
}

static void is_not_believed(const struct page *p)
{
	leave(p, sizeof(*p));
	ck_assert_int_eq(settle(), 0);
	ck_assert_int_eq(in_segment(killed), 0);
}

TEST(the_layout_is_as_it_is_described)
{
	struct page p = good();
	leave(&p, sizeof(p));
	ck_assert_int_eq(settle(), ACCOUNT_SETTLED);
	ck_assert_uint_eq(lost, 5);
}

TEST(an_account_of_any_length_is_no_harm)
{
	struct page p = good();
	for (size_t n = 0; n < 112; n += 7) {
		leave(&p, n);
		ck_assert_int_eq(settle(), 0);
	}
	/* cut among the counters: those that are there are believed */
	leave(&p, 112 + 2 * sizeof(uint64_t));
	ck_assert_int_eq(settle(), ACCOUNT_SETTLED);
	ck_assert_uint_eq(lost, 3);
	static char longer[100000];
	memset(longer, 'x', sizeof(longer));
	leave(longer, sizeof(longer));
	ck_assert_int_eq(settle(), 0);
}

TEST(another_tag_is_not_believed)
{
	struct page p = good();
	p.tag++;
	is_not_believed(&p);
	p.tag = 0;
	is_not_believed(&p);
}

TEST(a_segment_outside_the_folder_is_not_touched)
{
	static const char *const names[] = {
		"../" NAME, "/etc/passwd", "window/" NAME, "", ".", ".."};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct page p = good();
		memset(p.segment, 0, sizeof(p.segment));
		memcpy(p.segment, names[i], strlen(names[i]));
		leave(&p, sizeof(p));
		int r = settle();
		ck_assert_int_ge(r, 0);
		ck_assert_int_ne(r, ACCOUNT_SETTLED);
	}
	ck_assert_int_eq(in_segment(killed), 0);
}

TEST(a_link_in_the_segments_place_is_not_followed)
{
	char moved[300];
	snprintf(moved, sizeof(moved), "%s.moved", segment);
	struct page p = good();
	leave(&p, sizeof(p));
	ck_assert_int_eq(rename(segment, moved), 0);
	ck_assert_int_eq(symlink(moved, segment), 0);
	ck_assert_int_eq(settle(), ACCOUNT_ORPHAN);
	ck_assert_int_eq(unlink(segment), 0);
	ck_assert_int_eq(rename(moved, segment), 0);
	ck_assert_int_eq(in_segment(killed), 0);
}

TEST(a_name_that_does_not_end_is_not_believed)
{
	struct page p = good();
	memset(p.segment, 'a', sizeof(p.segment));
	is_not_believed(&p);
}

TEST(harts_that_no_machine_has_are_not_believed)
{
	static const uint64_t n[] = {0, HARTS_MAX + 1, UINT64_C(1) << 32, UINT64_MAX};
	for (size_t i = 0; i < sizeof(n) / sizeof(*n); i++) {
		struct page p = good();
		p.n_harts = n[i];
		is_not_believed(&p);
	}
}

TEST(more_samples_than_time_has_are_not_believed)
{
	static const uint64_t n[] = {
		UINT64_MAX, UINT64_C(1) << 63, (UINT64_C(1) << 63) - 1, UINT64_C(1) << 60};
	for (size_t i = 0; i < sizeof(n) / sizeof(*n); i++) {
		struct page p = good();
		p.taken[2] = n[i];
		is_not_believed(&p);
	}
}

TEST(what_is_no_segment_is_an_error_and_stays_as_it_is)
{
	struct page p = good();
	leave(&p, sizeof(p));
	int fd = open(segment, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ck_assert_int_eq(write(fd, "no database at all", 18), 18);
	close(fd);
	ck_assert_int_eq(settle(), -EIO);
	struct stat st;
	ck_assert_int_eq(stat(segment, &st), 0);
	ck_assert_int_eq(st.st_size, 18);
}

TEST(a_segment_that_counts_below_zero_is_no_harm)
{
	sqlite3 *db;
	ck_assert_int_eq(sqlite3_open(segment, &db), SQLITE_OK);
	sqlite3_exec(db, "PRAGMA ignore_check_constraints=1; UPDATE sample SET count = -1000", NULL,
		NULL, NULL);
	sqlite3_close(db);
	take(8, 7);
	ck_assert_int_eq(settle(), ACCOUNT_SETTLED);
	ck_assert_uint_eq(lost, 15);
}

TEST(an_account_that_is_no_file_cannot_be_opened)
{
	char path[160];
	snprintf(path, sizeof(path), "%s/account", store_folder);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_lt(account_open(store, STORED_HARTS, &account), 0);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_lt(account_open(store, STORED_HARTS, &account), 0);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink(segment, path), 0);
	ck_assert_int_lt(account_open(store, STORED_HARTS, &account), 0);
	ck_assert_ptr_null(account);
}

TEST(an_account_that_was_cut_while_it_is_written_is_no_harm)
{
	char path[160];
	take(1, 1);
	snprintf(path, sizeof(path), "%s/account", store_folder);
	ck_assert_int_eq(truncate(path, 0), 0);
	account_taken(account)[1] += 7;
	account_write(account);
	ck_assert_int_eq(settle(), ACCOUNT_SETTLED);
	ck_assert_uint_eq(lost, 3); /* 8 taken, 5 stored */
}
