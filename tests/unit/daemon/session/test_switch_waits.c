/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/switch_waits.c: what switches of threads made by hand stand for */

#include "daemon/session/switch_waits.h"

#include "daemon/sampler/sampler.h"
#include "tests/unit/test.h"

#define PID 10
#define START (100 * SECOND)
#define US (SECOND / 1000000)

static struct sampler sampler;
static uint64_t lost[2][N_LOSSES];
static struct task_table tasks;
static struct file_table files;
static struct attribute *attribute;
static struct switch_waits *waits;
static struct task *thread;
static const struct stream stream = {.role = STREAM_WAITS, .fd = -1};
static uint64_t waited_ns[N_OFFCPU_KINDS], n_taken;
static struct attribution last;

static void take(void *userdata, const struct attribution *a)
{
	(void)userdata;
	last = *a;
	n_taken++;
	for (int kind = 0; kind < N_OFFCPU_KINDS; kind++)
		if (sampler.offcpu[kind].event == a->event)
			waited_ns[kind] += a->weight_ns;
}

static void take_found(void *userdata, const struct attribution *a)
{
	(void)userdata;
	switch_waits_found(waits, a);
}

static void begin(void)
{
	sampler = (struct sampler){.lost = lost};
	ck_assert(sampler_add_offcpu(&sampler, true));
	ck_assert_int_eq(task_add(&tasks, PID, PID, START - SECOND, &thread), 0);
	const struct attribute_options a = {
		.files = &files,
		.tasks = &tasks,
		.streams = &sampler.streams,
		.lost = lost,
		.n_harts = 2,
		.n_events = sampler.events.n_events,
		.proc = "/nonexistent",
		.all = true,
		.sink = take_found,
	};
	ck_assert_int_eq(attribute_new(&a, &attribute), 0);
	const struct switch_waits_options o = {
		.sampler = &sampler,
		.attribute = attribute,
		.tasks = &tasks,
		.proc = "/nonexistent",
		.start_ns = START,
		.seed = 7,
		.take = take,
	};
	ck_assert_int_eq(switch_waits_new(&o, &waits), 0);
}

static void end(void)
{
	switch_waits_free(waits);
	attribute_free(attribute);
	task_table_clear(&tasks);
	file_table_clear(&files);
}

EACH_TEST(.begin = begin, .end = end);

static void record(enum record_kind kind, uint64_t time_ns, int hart, bool out, bool preempted)
{
	static struct record r;
	r = (struct record){
		.kind = kind, .stream = &stream, .time_ns = time_ns, .pid = PID, .tid = PID};
	r.cpu = (uint32_t)hart;
	if (kind == RECORD_SWITCH) {
		r.switched.out = out;
		r.switched.preempted = preempted;
	} else if (kind == RECORD_LOST) {
		r.lost.n = 5;
	}
	ck_assert_int_eq(switch_waits_record(waits, &r, hart), 0);
}

static void leaves(uint64_t time_ns, bool preempted)
{
	record(RECORD_SAMPLE, time_ns - 1, 0, false, false);
	record(RECORD_SWITCH, time_ns, 0, true, preempted);
}

static void returns(uint64_t time_ns, int hart)
{
	record(RECORD_SWITCH, time_ns, hart, false, false);
}

static uint64_t all_ns(void)
{
	uint64_t ns = 0;
	for (int kind = 0; kind < N_OFFCPU_KINDS; kind++)
		ns += waited_ns[kind];
	return ns;
}

TEST(a_long_wait_has_its_time_whichever_hart_it_ends_on)
{
	leaves(START, false);
	returns(START + 70 * MS, 1);
	ck_assert_uint_eq(waited_ns[OFFCPU_OTHER], 70 * MS);
	ck_assert_ptr_eq(last.task, thread);
	ck_assert_uint_eq(last.time_ns, START + 70 * MS);
	ck_assert_uint_eq(last.count, 1);
	ck_assert(last.is_offcpu && last.truncated);
	returns(START + 90 * MS, 1); /* it had one */
	ck_assert_uint_eq(all_ns(), 70 * MS);
}

TEST(a_preempted_thread_waits_for_a_hart)
{
	leaves(START, true);
	returns(START + 30 * MS, 0);
	ck_assert_uint_eq(waited_ns[OFFCPU_HART], 30 * MS);
	ck_assert_uint_eq(all_ns(), 30 * MS);
}

TEST(short_waits_add_up_and_few_of_them_are_taken)
{
	uint64_t now_ns = START;
	for (int i = 0; i < 10000; i++, now_ns += 400 * US) {
		leaves(now_ns, false);
		returns(now_ns + 300 * US, 0);
	}
	ck_assert_uint_ge(all_ns(), 2990 * MS);
	ck_assert_uint_le(all_ns(), 3010 * MS);
	ck_assert_uint_le(n_taken, 302);
}

TEST(a_place_is_found_as_often_as_it_is_waited_in)
{
	/* preempted ones are another place: 5 ms each, in turns */
	uint64_t now_ns = START;
	for (int i = 0; i < 4000; i++, now_ns += 6 * MS) {
		leaves(now_ns, i % 2);
		returns(now_ns + 5 * MS, 0);
	}
	/* 2,000 draws of one in two: the standard deviation is 22 */
	ck_assert_uint_ge(waited_ns[OFFCPU_HART], 9100 * MS);
	ck_assert_uint_le(waited_ns[OFFCPU_HART], 10900 * MS);
	ck_assert_uint_ge(all_ns(), 19990 * MS);
	ck_assert_uint_le(all_ns(), 20010 * MS);
}

TEST(records_of_two_events_of_one_switch_count_once)
{
	leaves(START, false);
	leaves(START + 3 * US, false);
	returns(START + 50 * MS, 0);
	returns(START + 50 * MS + 3 * US, 0);
	ck_assert_uint_eq(all_ns(), 50 * MS);
	ck_assert_uint_eq(lost[0][LOSS_WAITS], 0);
}

TEST(a_wait_whose_end_was_lost_is_missing_and_counted)
{
	leaves(START, false);
	leaves(START + 80 * MS, false);
	ck_assert_uint_eq(all_ns(), 0);
	ck_assert_uint_eq(lost[0][LOSS_WAITS], 1);
	returns(START + 100 * MS, 0);
	ck_assert_uint_eq(all_ns(), 20 * MS);
}

TEST(time_for_which_a_ring_was_full_is_left_out)
{
	leaves(START, false);
	record(RECORD_LOST, START + 30 * MS, 0, false, false);
	returns(START + 100 * MS, 0);
	ck_assert_uint_eq(all_ns(), 70 * MS);
	ck_assert_uint_eq(lost[0][LOSS_WAITS], 5);
}

TEST(a_wait_in_doubt_that_proc_does_not_confirm_is_missing)
{
	leaves(START, false);
	record(RECORD_LOST, START + 30 * MS, 0, false, false);
	switch_waits_give(waits, START + SECOND, true);
	ck_assert_uint_eq(all_ns(), 0);
	ck_assert_uint_eq(lost[0][LOSS_WAITS], 6);
}

TEST(very_many_waits_in_doubt_are_looked_up_some_at_a_time)
{
	for (uint32_t i = 0; i < 300; i++) {
		struct record r = {.kind = RECORD_SWITCH,
			.stream = &stream,
			.time_ns = START,
			.pid = 1000 + i,
			.tid = 1000 + i,
			.switched = {.out = true}};
		ck_assert_int_eq(switch_waits_record(waits, &r, 0), 0);
	}
	record(RECORD_LOST, START + 30 * MS, 0, false, false);
	switch_waits_give(waits, START + SECOND, false);
	ck_assert_uint_eq(lost[0][LOSS_WAITS], 5 + 256);
	switch_waits_give(waits, START + SECOND, false);
	ck_assert_uint_eq(lost[0][LOSS_WAITS], 5 + 300);
}

TEST(a_wait_under_way_is_handed_out_in_parts)
{
	leaves(START, false);
	switch_waits_give(waits, START + 100 * MS, false);
	ck_assert_uint_eq(all_ns(), 0);
	switch_waits_give(waits, START + 300 * MS, false);
	ck_assert_uint_eq(all_ns(), 300 * MS);
	switch_waits_give(waits, START + 350 * MS, true);
	ck_assert_uint_eq(all_ns(), 350 * MS);
	returns(START + 400 * MS, 0);
	ck_assert_uint_eq(all_ns(), 400 * MS);
}

TEST(waits_end_with_waiting_for_a_hart_as_linux_counts_it)
{
	switch_waits_ready(waits, thread, 7 * SECOND); /* from before */
	uint64_t now_ns = START;
	for (int i = 0; i < 20; i++, now_ns += 100 * MS) {
		leaves(now_ns, false);
		returns(now_ns + 60 * MS, 0);
		switch_waits_ready(waits, thread, 7 * SECOND + (uint64_t)(i + 1) * 20 * MS);
	}
	/* all but the last one's is known when the next ends */
	ck_assert_uint_eq(waited_ns[OFFCPU_HART], 19 * 20 * MS);
	ck_assert_uint_eq(all_ns(), 20 * 60 * MS);
}

TEST(what_was_preempted_is_not_counted_again)
{
	switch_waits_ready(waits, thread, 0);
	leaves(START, true);
	returns(START + 50 * MS, 0);
	switch_waits_ready(waits, thread, 50 * MS);
	leaves(START + 60 * MS, false);
	returns(START + 100 * MS, 0);
	ck_assert_uint_eq(waited_ns[OFFCPU_HART], 50 * MS);
	ck_assert_uint_eq(waited_ns[OFFCPU_OTHER], 40 * MS);
}

TEST(a_thread_that_waits_already_counts_from_the_beginning)
{
	switch_waits_seed(waits, thread, OFFCPU_PIPE, NULL, START, START + MS);
	returns(START + 40 * MS, 0);
	ck_assert_uint_eq(waited_ns[OFFCPU_PIPE], 40 * MS);
	ck_assert(last.truncated && last.n_frames == 0);
}

TEST(what_proc_said_of_a_later_wait_does_not_count)
{
	switch_waits_seed(waits, thread, OFFCPU_PIPE, NULL, START, START + 20 * MS);
	returns(START + 10 * MS, 0);
	leaves(START + 11 * MS, false);
	returns(START + 41 * MS, 0);
	ck_assert_uint_eq(waited_ns[OFFCPU_PIPE], 0);
	ck_assert_uint_eq(waited_ns[OFFCPU_OTHER], 30 * MS);
	ck_assert_uint_eq(lost[0][LOSS_WAITS], 0);
}

TEST(a_thread_that_ended_is_forgotten)
{
	leaves(START, false);
	switch_waits_end(waits, thread);
	switch_waits_give(waits, START + SECOND, true);
	ck_assert_uint_eq(all_ns(), 0);
}
