/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What the log says of the namer: each change once, and whatever users do, few lines.
 */
#include <errno.h>
#include <syslog.h>

#include "daemon/service/naming_news.h"
#include "tests/unit/test.h"

static struct naming_said said;
static struct namer_status s;
static char text[512];
static uint64_t now;

static void setup(void)
{
	said = (struct naming_said){0};
	s = (struct namer_status){.opener.pid = 1, .parser.pid = 2};
	now = 1000 * SECOND;
}

EACH_TEST(.begin = setup);

static int news(void)
{
	*text = 0;
	return naming_news(&said, &s, now, text, sizeof(text));
}

static void refuse(uid_t uid)
{
	if (s.n_refused < NAMER_REFUSED_SHOWN_MAX)
		s.refused[s.n_refused] = (struct namer_refused){.uid = uid,
			.what = "files",
			.deaths = 4,
			.since_ns = now,
			.until_ns = now + 10 * SECOND};
	s.n_refused++;
	s.n_deaths += 4;
}

TEST(nothing_is_said_while_all_is_well)
{
	for (int i = 0; i < 100; i++, now += SECOND)
		ck_assert_int_eq(news(), NAMING_NO_NEWS);
}

TEST(a_worker_that_does_not_come_up_is_told_when_it_begins_and_ends)
{
	s.off = true;
	s.parser = (struct namer_worker_status){.error = EAGAIN};
	ck_assert_int_eq(news(), LOG_WARNING);
	ck_assert_ptr_nonnull(strstr(text, "parser does not start: Resource temporarily"));
	ck_assert_int_eq(news(), NAMING_NO_NEWS);
	s.off = false;
	s.parser.pid = 3;
	ck_assert_int_eq(news(), LOG_NOTICE);
	ck_assert_int_eq(news(), NAMING_NO_NEWS);
	s.off = true;
	s.opener = (struct namer_worker_status){.pid = 0};
	ck_assert_int_eq(news(), LOG_WARNING);
	ck_assert_ptr_nonnull(strstr(text, "opener does not start;"));
}

TEST(a_user_for_whom_naming_rests_is_told_once)
{
	refuse(1000);
	ck_assert_int_eq(news(), LOG_WARNING);
	ck_assert_ptr_nonnull(strstr(text, "user 1000 (files) for 10 s"));
	ck_assert_ptr_nonnull(strstr(text, "4 times"));
	for (int i = 0; i < 100; i++, now += SECOND)
		ck_assert_int_eq(news(), NAMING_NO_NEWS);
	s.refused[0].since_ns = now;
	s.refused[0].until_ns = now + 20 * SECOND;
	ck_assert_int_eq(news(), LOG_WARNING);
	ck_assert_ptr_nonnull(strstr(text, "for 20 s"));
}

TEST(many_users_fill_no_log)
{
	uint32_t lines = 0;

	for (uid_t uid = 1; uid <= 1000; uid++, now += SECOND / 10) {
		refuse(uid);
		lines += news() != NAMING_NO_NEWS;
	}
	ck_assert_uint_le(lines, 1000 * SECOND / 10 / NAMING_SAY_NS + 1);
	now += NAMING_SAY_NS;
	s.n_refused = 0;
	refuse((uid_t)-1);
	refuse(5);
	ck_assert_int_eq(news(), LOG_WARNING);
	ck_assert_ptr_nonnull(strstr(text, "unknown users"));
	ck_assert_ptr_nonnull(strstr(text, "the same for 1 more"));
}

TEST(single_files_are_told_in_sum)
{
	uint32_t lines = 0;

	for (int i = 0; i < 1000; i++, now += SECOND) {
		s.n_deaths++;
		lines += news() == LOG_NOTICE;
	}
	ck_assert_uint_eq(lines, 1000 * SECOND / NAMING_DEATHS_NS + 1);
	now += NAMING_DEATHS_NS;
	ck_assert_int_eq(news(), LOG_NOTICE);
	ck_assert_ptr_nonnull(strstr(text, "399 files"));
}
