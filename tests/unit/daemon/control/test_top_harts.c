/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/control/top.c and top_harts.c: what a frame says of the harts, and to whom. The file is included,
 * since its tables are made in static functions.
 */

#include "daemon/control/top.c"
#include "daemon/control/top_harts.c"

#include "tests/unit/stored.h"
#include "tests/unit/test.h"

static struct stored s;
static struct walk walk;
static struct top_feed feed;
static struct hart_time times[STORED_HARTS];
static struct top_job job;
static struct control_options options;
static struct peer peer;
static struct request request;

static void setup(void)
{
	stored_begin_group(&s);
	s.sampler.machine.n_harts = STORED_HARTS;
	hart_set_add(&s.sampler.machine.online, 0);
	walk = (struct walk){.sampler = &s.sampler};
	stored_add(&s, &(struct stored_sample){.task = stored_task(&s, 10, 10, "prog"),
			       .read = {{1, 1000, 100, 100}, {2, 2500, 100, 100}},
			       .n_reads = 2});
	feed = (struct top_feed){.walk = &walk, .n_harts = STORED_HARTS};
	feed.last.window = s.window;
	feed.last.time = times;
	static Mperf__TopRequest asked = MPERF__TOP_REQUEST__INIT;
	job = (struct top_job){
		.walk = &walk, .feed = &feed, .by = QUERY_BY_HART, .request = &asked};
	feed.last.lost = s.lost;
	feed.last.stacks = s.stacks;
	peer = (struct peer){.options = &options, .fd = -1, .uid = 1000};
	request = (struct request){.peer = &peer, .id = 7};
}

static void teardown(void)
{
	frame_buffer_clear(&peer.out);
	stored_end(&s);
}

EACH_TEST(.begin = setup, .end = teardown);

/* The IPC of hart 0 in the frame; below 0: it says none. */
static double ipc_told(void)
{
	double ipc = -2;

	ck_assert_int_eq(tell_frame(&job, &request), 0);
	for (Mperf__Message *m; frame_take(&peer.out, &m) == 0;
		mperf__message__free_unpacked(m, NULL)) {
		if (ipc != -2 || m->answer->body_case != MPERF__ANSWER__BODY_ROWS)
			continue;
		const Mperf__Row *row = m->answer->rows->row[0];
		ck_assert_uint_eq(row->n_value, ROW_LENGTH(HART_TABLE));
		ck_assert_int_eq(row->value[7]->integer, 1); /* samples: as busy as it was */
		bool there = row->value[6]->is_case == MPERF__VALUE__IS_REAL;
		ipc = there ? row->value[6]->real : -1;
	}
	ck_assert(ipc != -2);
	return ipc;
}

TEST(the_ipc_of_a_hart_is_for_those_who_see_all)
{
	peer.sees_all = true;
	ck_assert_double_eq_tol(ipc_told(), 2.5, 1e-9);
	peer.sees_all = false;
	ck_assert_double_eq(ipc_told(), -1);
}

/* --- the first frame -------------------------------------------------------------------------- */

/* One sample of a frame in that state. */
static void sampled(enum frame_state state, uint8_t asker)
{
	struct frame *f = stored_frame(&s, FILE_ELF, "/bin/slow", 64);
	f->state = state;
	f->asker = asker;
	stored_add(&s, &(struct stored_sample){
			       .task = stored_task(&s, 20, 20, "slow"), .count = 10, .frame = {f}});
	feed.last.window = s.window;
	feed.last.stacks = s.stacks;
	feed.interval_ns = 1000000000;
	feed.n_cuts = 1;
}

TEST(the_first_frame_waits_for_names_as_long_as_an_interval)
{
	sampled(FRAME_ASKED, 0);
	ck_assert(waits_for_names(&job, 5000000000));
	ck_assert(waits_for_names(&job, 5900000000));
	ck_assert(!waits_for_names(&job, 6000000000));
	job.told = 1; /* a later one does not */
	ck_assert(!waits_for_names(&job, 5900000000));
}

TEST(the_wait_for_names_is_neither_shorter_nor_longer_than_its_bounds)
{
	ck_assert_uint_eq(names_wait_ns(100000000), TOP_NAMES_NS_MIN);
	ck_assert_uint_eq(names_wait_ns(500000000), 500000000);
	ck_assert_uint_eq(names_wait_ns(3600000000000), TOP_NAMES_NS_MAX);
}

TEST(a_frame_whose_names_are_there_or_may_never_come_is_not_kept_back)
{
	sampled(FRAME_UNNAMED, 0);
	ck_assert(!waits_for_names(&job, 5000000000));
	sampled(FRAME_ASKED, FRAME_LATE);
	ck_assert(!waits_for_names(&job, 5000000000));
}
