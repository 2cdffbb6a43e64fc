/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A record of a switch that bears another session's id is found by its group, one of another
 * software event by its hart, and no other is. */

#include "tests/unit/daemon/decode/made.h"
#include "tests/unit/test.h"

static struct stream_table streams;
static struct record r;

static void setup(void)
{
	streams = (struct stream_table){};
	r = (struct record){.pid = 4711};
	made_streams(&streams);
}

static void teardown(void)
{
	stream_table_clear(&streams);
}

EACH_TEST(.begin = setup, .end = teardown);

static int decode(void)
{
	return record_decode(made.bytes, made.n, &streams, &r);
}

enum { SWITCHED_LEADER = 100, SWITCHED_SIBLING, SWITCHED, SWITCHED_OTHER };

static void add_switched(uint64_t id, uint64_t leader, enum stream_role role, uint64_t more)
{
	const struct stream s = {
		.id = id,
		.leader = leader,
		.role = role,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_READ | more,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		.fd = -1,
	};
	ck_assert_int_eq(stream_table_add(&streams, &s), 0);
}

static void check_switched(void)
{
	ck_assert_int_eq(decode(), 0);
	ck_assert_int_eq((int)r.kind, RECORD_SAMPLE);
	ck_assert_uint_eq(r.id, SWITCHED);
	ck_assert_ptr_eq(r.stream, stream_table_find(&streams, SWITCHED));
	ck_assert_uint_eq(r.time_ns, 123456789);
	ck_assert_uint_eq(r.cpu, 3);
}

static void made_switch(uint64_t id, uint64_t leader, uint64_t n_values)
{
	recording_begin(&made, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	recording_put_u64(&made, id);
	recording_put_u64(&made, 0xffffffff81000000);
	made_put_task_time();
	made_put_cpu();
	recording_put_u64(&made, 1);
	recording_put_u64(&made, n_values);
	recording_put_u64(&made, 1000);
	recording_put_u64(&made, 1000);
	for (uint64_t i = 0; i < n_values; i++) {
		recording_put_u64(&made, 500 + i);
		recording_put_u64(&made, leader + i);
	}
	recording_end(&made);
}

TEST(switch_with_anothers_id_is_found_by_its_group)
{
	add_switched(SWITCHED_LEADER, SWITCHED_LEADER, STREAM_SAMPLER, PERF_SAMPLE_CGROUP);
	add_switched(SWITCHED_SIBLING, SWITCHED_LEADER, STREAM_SIBLING, 0);
	add_switched(SWITCHED, SWITCHED_LEADER, STREAM_SWITCH, 0);
	made_switch(123, SWITCHED_LEADER, 3);
	check_switched();
	ck_assert_uint_eq(r.sample.n_read, 3);
	ck_assert_uint_eq(r.sample.read[2].id, SWITCHED);
	ck_assert_uint_eq(r.sample.read[2].value, 502);
	made_switch(SWITCHED, SWITCHED_LEADER, 3);
	check_switched();
}

TEST(sample_with_anothers_id_that_is_no_switch_of_ours_is_a_stranger)
{
	add_switched(SWITCHED_LEADER, SWITCHED_LEADER, STREAM_SAMPLER, 0);
	add_switched(SWITCHED_SIBLING, SWITCHED_LEADER, STREAM_SIBLING, 0);
	made_switch(123, SWITCHED_LEADER, 2); /* the group has no such sibling */
	ck_assert_int_eq(decode(), RECORD_STRANGER);
	add_switched(SWITCHED, SWITCHED_LEADER, STREAM_SWITCH, PERF_SAMPLE_CGROUP);
	made_switch(123, SWITCHED_LEADER, 3); /* has one, whose samples look otherwise */
	ck_assert_int_eq(decode(), RECORD_STRANGER);
	add_switched(SWITCHED_OTHER, MADE_PLAIN, STREAM_SWITCH, 0);
	made_switch(123, 99, 3); /* a group that is not ours */
	ck_assert_int_eq(decode(), RECORD_STRANGER);
	made_switch(123, MADE_PLAIN, 0); /* ends before a leader's id */
	ck_assert_int_eq(decode(), RECORD_STRANGER);
	made_switch(123, MADE_PLAIN, 1);
	ck_assert_int_eq(decode(), 0);
	memcpy(made.bytes + 56, &(uint64_t){2}, 8); /* announces more than it has */
	ck_assert_int_eq(decode(), RECORD_TRUNCATED);
	made_switch(123, MADE_PLAIN, 2);
	memcpy(made.bytes + 56, &(uint64_t){1}, 8);
	ck_assert_int_eq(decode(), RECORD_HOSTILE);
}

static void add_software(uint64_t id, int event, int hart, uint64_t more)
{
	const struct stream s = {
		.id = id,
		.leader = id,
		.role = STREAM_SAMPLER,
		.hart = hart,
		.event = event,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | more,
		.software = true,
		.fd = -1,
	};
	ck_assert_int_eq(stream_table_add(&streams, &s), 0);
}

/* On hart 3, as made_put_cpu says. */
static void made_fault(uint64_t id)
{
	recording_begin(&made, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	recording_put_u64(&made, id);
	recording_put_u64(&made, 0x401000);
	made_put_task_time();
	made_put_cpu();
	recording_put_u64(&made, 1);
	recording_end(&made);
}

enum { FAULTS = 200, FAULTS_ELSEWHERE, FAULTS_OF_ANOTHER_TASK, OTHER_FAULTS };

TEST(page_fault_with_anothers_id_is_found_by_its_hart)
{
	add_software(FAULTS_ELSEWHERE, 0, 2, 0);
	made_fault(123);
	ck_assert_int_eq(decode(), RECORD_STRANGER);
	add_software(FAULTS, 0, 3, 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(r.id, FAULTS);
	ck_assert_ptr_eq(r.stream, stream_table_find(&streams, FAULTS));
	ck_assert_uint_eq(r.cpu, 3);
	ck_assert_uint_eq(r.sample.ip, 0x401000);
	ck_assert_uint_eq(r.sample.period, 1);
	/* the same event of another task is as good: the record says whose it is */
	add_software(FAULTS_OF_ANOTHER_TASK, 0, 3, 0);
	ck_assert_int_eq(decode(), 0);
	ck_assert_int_eq(r.stream->event, 0);
	made_fault(FAULTS_ELSEWHERE); /* its own id is believed first */
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(r.id, FAULTS_ELSEWHERE);
}

TEST(page_fault_with_anothers_id_that_two_events_may_have_fired_is_a_stranger)
{
	add_software(FAULTS, 0, 3, 0);
	add_software(OTHER_FAULTS, 1, 3, 0);
	made_fault(123);
	ck_assert_int_eq(decode(), RECORD_STRANGER);
	made_fault(OTHER_FAULTS);
	ck_assert_int_eq(decode(), 0);
	ck_assert_uint_eq(r.id, OTHER_FAULTS);
	made_fault(123);
	ck_assert_int_eq((int)record_decode(made.bytes, 32, &streams, &r), RECORD_TRUNCATED);
}

TEST(page_fault_whose_samples_look_otherwise_is_a_stranger)
{
	add_software(FAULTS, 0, 3, PERF_SAMPLE_ADDR);
	made_fault(123);
	ck_assert_int_eq(decode(), RECORD_STRANGER);
}
