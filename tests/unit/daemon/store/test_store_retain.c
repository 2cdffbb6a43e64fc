/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Retention, on stores that are made up: what goes, in which order, and what is never touched. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/store/pin.h"
#include "daemon/store/store_private.h"
#include "proto/base/memory.h"
#include "tests/unit/test.h"

#define HOUR (3600 * 1000000000ll)
#define DAY (24 * HOUR)
/* A Monday, 2026-11-16T00:00:00Z */
#define MONDAY 1794787200000000000ll

static struct store s;
static char folder[64];
static struct store_limits limits;

static void begin(void)
{
	memcpy(folder, "/tmp/retain.XXXXXX", 19);
	ck_assert_ptr_nonnull(mkdtemp(folder));
	s = (struct store){.path = folder, .free_bytes = 1u << 30, .last_reason = ""};
	s.fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	limits = (struct store_limits){
		.budget_bytes = 1u << 30,
		.keep_ns = {7 * DAY, 60 * DAY, 1000 * DAY},
	};
}

static void end(void)
{
	close(s.fd);
	free(s.file);
	rmdir(folder);
}

EACH_TEST(.begin = begin, .end = end);

/* A sealed file that starts `hours` after that Monday and lasts its tier's period. */
static struct store_file *add(enum tier tier, int hours, uint64_t bytes)
{
	struct store_file f = {.tier = tier, .start_ns = MONDAY + hours * HOUR, .bytes = bytes};
	size_t at;
	f.sealed = true;
	f.end_ns = f.start_ns + (int64_t)tier_period_ns(tier);
	store_name(f.name, tier, f.start_ns, "abcdef01", 1);
	ck_assert_int_eq(store_enter(&s, &f, &at), 0);
	store_sum(&s);
	return &s.file[at];
}

static bool fits;

static int retain(int64_t now_ns)
{
	return store_retain(&s, &limits, now_ns, 0, NULL, &fits);
}

/* "window+3 minute+0": what is kept, in hours. */
static const char *kept(void)
{
	static char text[512];
	size_t n = 0;
	*text = '\0';
	for (size_t i = 0; i < s.n_files; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s+%d", n ? " " : "",
			s.file[i].corrupt ? "corrupt" : tier_name(s.file[i].tier),
			(int)((s.file[i].start_ns - MONDAY) / HOUR));
	return text;
}

TEST(nothing_goes_while_all_fits)
{
	add(TIER_WINDOW, 0, 1000);
	add(TIER_MINUTE, 0, 1000);
	ck_assert_int_eq(retain(MONDAY + DAY), 0);
	ck_assert(fits);
	ck_assert_str_eq(kept(), "window+0 minute+0");
}

TEST(each_tier_has_its_age)
{
	limits.keep_ns[TIER_WINDOW] = 10 * (uint64_t)HOUR;
	limits.keep_ns[TIER_MINUTE] = 3 * (uint64_t)DAY;
	add(TIER_WINDOW, 0, 1);
	add(TIER_WINDOW, 1, 1);
	add(TIER_MINUTE, 0, 1);
	add(TIER_HOUR, 0, 1);
	/* the first ends at one o'clock */
	ck_assert_int_eq(retain(MONDAY + 11 * HOUR - 1), 0);
	ck_assert_int_eq(retain(MONDAY + 11 * HOUR), 1);
	ck_assert_str_eq(kept(), "window+1 minute+0 hour+0");
	ck_assert_str_eq(s.last_reason, "age");
	ck_assert_int_eq(retain(MONDAY + 4 * DAY), 2);
	ck_assert_str_eq(kept(), "hour+0");
	ck_assert_uint_eq(s.n_unlinked, 3);
}

TEST(budget_takes_the_oldest_of_the_finest_tier)
{
	add(TIER_WINDOW, 5, 300);
	add(TIER_WINDOW, 3, 300);
	add(TIER_MINUTE, 0, 300);
	add(TIER_HOUR, 0, 300);
	limits.budget_bytes = 900;
	ck_assert_int_eq(retain(MONDAY + DAY), 1);
	ck_assert_str_eq(kept(), "window+5 minute+0 hour+0");
	ck_assert_str_eq(s.last_reason, "budget");
	ck_assert_uint_eq(s.bytes, 900);
	limits.budget_bytes = 300;
	ck_assert_int_eq(retain(MONDAY + DAY), 2);
	ck_assert_str_eq(kept(), "hour+0");
	ck_assert(fits);
}

TEST(damaged_files_go_before_good_ones)
{
	add(TIER_WINDOW, 0, 100);
	struct store_file f = {.corrupt = true, .bytes = 100, .start_ns = MONDAY + 9 * HOUR};
	size_t at;
	snprintf(f.name, sizeof(f.name), "corrupt/window-x.mprf");
	store_enter(&s, &f, &at);
	store_sum(&s);
	limits.budget_bytes = 150;
	ck_assert_int_eq(retain(MONDAY + DAY), 1);
	ck_assert_str_eq(kept(), "window+0");
}

TEST(headroom_is_made_before_it_is_needed)
{
	add(TIER_WINDOW, 0, 100);
	add(TIER_WINDOW, 1, 100);
	limits.budget_bytes = 250;
	ck_assert_int_eq(store_retain(&s, &limits, MONDAY + DAY, 51, NULL, &fits), 1);
	ck_assert(fits);
	/* one that is larger than the budget itself cannot be had */
	ck_assert_int_eq(store_retain(&s, &limits, MONDAY + DAY, UINT64_MAX, NULL, &fits), 1);
	ck_assert(!fits);
	ck_assert_str_eq(kept(), "");
}

TEST(free_space_is_kept_for_others)
{
	add(TIER_WINDOW, 0, 100);
	add(TIER_WINDOW, 1, 100);
	s.free_bytes = 50;
	limits.min_free_bytes = 120;
	ck_assert_int_eq(retain(MONDAY + DAY), 1);
	ck_assert(fits);
	ck_assert_uint_eq(s.free_bytes, 150);
	ck_assert_str_eq(s.last_reason, "free space");
}

TEST(history_is_not_given_up_for_space_that_others_took)
{
	add(TIER_WINDOW, 0, 100);
	add(TIER_WINDOW, 1, 100);
	s.free_bytes = 50;
	limits.min_free_bytes = 1000;
	ck_assert_int_eq(retain(MONDAY + DAY), 0);
	ck_assert(!fits);
	ck_assert_str_eq(kept(), "window+0 window+1");
}

TEST(file_that_is_written_or_spared_stays)
{
	struct store_file *f = add(TIER_WINDOW, 0, 500);
	f->sealed = false;
	f->end_ns = 0;
	add(TIER_WINDOW, 1, 500);
	limits.budget_bytes = 100;
	limits.keep_ns[TIER_WINDOW] = 0;
	char path[200];
	snprintf(path, sizeof(path), "%s/%s", s.path, s.file[1].name);
	ck_assert_int_eq(store_retain(&s, &limits, MONDAY + 30 * DAY, 0, path, &fits), 0);
	ck_assert(!fits);
	ck_assert_str_eq(kept(), "window+0 window+1");
	ck_assert_int_eq(store_retain(&s, &limits, MONDAY + 30 * DAY, 0, s.file[1].name, &fits), 0);
	ck_assert_int_eq(retain(MONDAY + 30 * DAY), 1);
	ck_assert_str_eq(kept(), "window+0");
}

TEST(leftover_of_a_writer_that_is_gone_may_go)
{
	struct store_file *f = add(TIER_WINDOW, 0, 500);
	f->sealed = false;
	f->end_ns = 0;
	f->left = true;
	limits.budget_bytes = 100;
	ck_assert_int_eq(retain(MONDAY + DAY), 1);
	ck_assert(fits);
}

TEST(coarse_file_may_go_once_its_period_is_over)
{
	struct store_file *f = add(TIER_MINUTE, 0, 500);
	f->sealed = false;
	f->start_ns += 5 * HOUR; /* its first source began then */
	limits.budget_bytes = 100;
	ck_assert_int_eq(retain(MONDAY + 20 * HOUR), 0);
	ck_assert(!fits);
	ck_assert_int_eq(retain(MONDAY + 25 * HOUR), 1);
	ck_assert(fits);
}

TEST(clock_that_was_set_back_takes_nothing)
{
	add(TIER_WINDOW, 0, 1);
	add(TIER_MINUTE, 0, 1);
	ck_assert_int_eq(retain(0), 0);
	ck_assert_int_eq(retain(-DAY), 0);
	ck_assert_str_eq(kept(), "window+0 minute+0");
}

TEST(keeping_for_ever_does_not_overflow)
{
	add(TIER_WINDOW, 0, 1);
	limits.keep_ns[TIER_WINDOW] = UINT64_MAX;
	ck_assert_int_eq(retain(INT64_MAX), 0);
	limits.keep_ns[TIER_WINDOW] = INT64_MAX;
	ck_assert_int_eq(retain(INT64_MAX - 1), 0);
}

TEST(what_cannot_be_unlinked_does_not_fit)
{
	add(TIER_WINDOW, 0, 500);
	add(TIER_WINDOW, 1, 500);
	/* a folder of that name with something in it is not unlinked */
	char path[200];
	ck_assert_int_eq(mkdirat(s.fd, "window", 0700), 0);
	ck_assert_int_eq(mkdirat(s.fd, s.file[0].name, 0700), 0);
	limits.budget_bytes = 600;
	ck_assert_int_eq(retain(MONDAY + DAY), 0);
	ck_assert(!fits);
	ck_assert_uint_eq(s.n_files, 2);
	snprintf(path, sizeof(path), "%s/%s", folder, s.file[0].name);
	rmdir(path);
	unlinkat(s.fd, "window", AT_REMOVEDIR);
}

/* --- what will be ----------------------------------------------------------------------------- */

TEST(next_to_go_is_the_one_that_is_first_in_time)
{
	struct store_forecast f;
	for (int i = 0; i < 24; i++)
		add(TIER_WINDOW, i, 100);
	/* 2,400 bytes a day: in two days the budget is full, long before anything is too old */
	limits.budget_bytes = 2400 * 3;
	store_forecast(&s, &limits, MONDAY + DAY, &f);
	ck_assert_ptr_eq(f.next, &s.file[0]);
	ck_assert_str_eq(f.reason, "budget");
	limits.budget_bytes = 2400 * 30;
	store_forecast(&s, &limits, MONDAY + DAY, &f);
	ck_assert_ptr_eq(f.next, &s.file[0]);
	ck_assert_str_eq(f.reason, "age");
}

TEST(nothing_is_next_in_a_store_without_files)
{
	struct store_forecast f;
	store_forecast(&s, &limits, MONDAY, &f);
	ck_assert_ptr_null(f.next);
	struct store_file *file = add(TIER_WINDOW, 0, 100);
	file->sealed = false;
	file->end_ns = 0;
	store_forecast(&s, &limits, MONDAY, &f);
	ck_assert_ptr_null(f.next);
}

TEST(forecast_tells_rates_and_spans)
{
	struct store_forecast f;
	for (int i = 0; i < 24; i++)
		add(TIER_WINDOW, i, 1000);
	add(TIER_MINUTE, 0, 2400);
	/* a day of windows has 24,000 bytes, one of minutes 2,400: sixty days of the latter leave
	 * 120,000 for windows, which is five days of the seven */
	limits.budget_bytes = 60 * 2400 + 120000;
	s.free_bytes = UINT64_MAX / 2;
	store_forecast(&s, &limits, MONDAY + DAY, &f);
	ck_assert_uint_eq(f.bytes_a_day[TIER_WINDOW], 24000);
	ck_assert_uint_eq(f.bytes_a_day[TIER_MINUTE], 2400);
	ck_assert_uint_eq(f.bytes_a_day[TIER_HOUR], 0);
	ck_assert_uint_eq(f.keeps_ns[TIER_MINUTE], 60 * (uint64_t)DAY);
	ck_assert_uint_eq(f.keeps_ns[TIER_WINDOW] / (uint64_t)HOUR, 5 * 24);
	ck_assert_ptr_eq(f.next, &s.file[0]);
	/* pins take of it first */
	struct store_pin pinned = {.bytes = 24000};
	s.pin = &pinned;
	s.n_pins = 1;
	store_forecast(&s, &limits, MONDAY + DAY, &f);
	ck_assert_uint_eq(f.keeps_ns[TIER_WINDOW] / (uint64_t)HOUR, 4 * 24);
	s.n_pins = 0;
	store_forecast(&s, &limits, MONDAY + DAY, &f);
	/* 233,600 bytes are left at 26,400 a day */
	ck_assert_int_eq((f.next_ns - MONDAY - DAY) / HOUR,
		233600 * 24 / 26400 < 7 * 24 + 1 - 24 ? 233600 * 24 / 26400 : 6 * 24 + 1);
}

TEST(rate_of_a_beginning_is_not_told)
{
	struct store_forecast f;
	struct store_file *file = add(TIER_WINDOW, 0, 1000000);
	file->sealed = false;
	file->end_ns = 0;
	store_forecast(&s, &limits, MONDAY + 5000000000, &f);
	ck_assert_uint_eq(f.bytes_a_day[TIER_WINDOW], 0);
	ck_assert_int_eq(f.next_ns, INT64_MAX);
	store_forecast(&s, &limits, MONDAY + HOUR, &f);
	ck_assert_uint_eq(f.bytes_a_day[TIER_WINDOW], 24000000);
}
