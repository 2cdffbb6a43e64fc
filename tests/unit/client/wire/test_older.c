/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* What older daemons do not know of a request. */

#include "client/wire/older.h"

#include "proto/frame.h"
#include "tests/unit/test.h"

TEST(a_daemon_of_this_version_knows_all)
{
	Mperf__TimelineRequest timeline = MPERF__TIMELINE_REQUEST__INIT;
	Mperf__Request r = MPERF__REQUEST__INIT;
	r.body_case = MPERF__REQUEST__BODY_TIMELINE;
	r.timeline = &timeline;
	ck_assert_ptr_null(older_lacks(PROTOCOL_MINOR, &r));
	ck_assert_ptr_null(older_lacks(PROTOCOL_MINOR + 1, &r));
	ck_assert_str_eq(older_lacks(5, &r), "a timeline");
}

TEST(an_older_daemon_is_asked_what_it_knows)
{
	Mperf__HotspotsRequest hotspots = MPERF__HOTSPOTS_REQUEST__INIT;
	Mperf__Request r = MPERF__REQUEST__INIT;
	r.body_case = MPERF__REQUEST__BODY_HOTSPOTS;
	r.hotspots = &hotspots;
	ck_assert_ptr_null(older_lacks(0, &r));
	hotspots.wall = true;
	ck_assert_str_eq(older_lacks(5, &r), "wall time");
	ck_assert_ptr_null(older_lacks(6, &r));
}

TEST(an_action_is_known_by_itself)
{
	Mperf__JobRequest job = MPERF__JOB_REQUEST__INIT;
	Mperf__Request r = MPERF__REQUEST__INIT;
	r.body_case = MPERF__REQUEST__BODY_JOB;
	r.job = &job;
	ck_assert_ptr_null(older_lacks(5, &r));
	job.action = MPERF__JOB_ACTION__JOB_REPORT;
	ck_assert_str_eq(older_lacks(5, &r), "a report on a job");
}
