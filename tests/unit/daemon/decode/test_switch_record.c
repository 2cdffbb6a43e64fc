/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of what a record of the BPF programs decodes to, daemon/decode/record.c */

#include <linux/types.h>

#include "daemon/decode/record.h"
#include "daemon/kernel/exec_layout.h"
#include "daemon/kernel/switch_layout.h"
#include "tests/unit/recording.h"
#include "tests/unit/test.h"

#define OUTPUT 7
#define LEADER 5

static struct stream_table streams;
static struct recording_writer made;
static struct record record;

static void setup(void)
{
	const struct stream s = {
		.id = OUTPUT,
		.leader = LEADER,
		.role = STREAM_SWITCH_BPF,
		.event = -1,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_RAW,
	};
	ck_assert_int_eq(stream_table_add(&streams, &s), 0);
}

static void teardown(void)
{
	stream_table_clear(&streams);
}

EACH_TEST(.begin = setup, .end = teardown);

static struct switch_values values(uint64_t n)
{
	struct switch_values v = {
		.pid = 40,
		.tid = 41,
		.n_members = n,
		.enabled_ns = 1000,
		.running_ns = 900,
	};
	for (unsigned i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		v.member[i].value = 100 + i;
		v.member[i].id = LEADER + i;
	}
	return v;
}

/* As the kernel writes it: the raw part's length, its bytes, and padding, which the length
 * includes. */
static int decode(uint32_t tid, const void *v, size_t n_bytes, uint32_t raw_bytes)
{
	static const uint8_t zeros[64];
	recording_begin(&made, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	recording_put_u64(&made, OUTPUT);
	recording_put_u32(&made, 30);
	recording_put_u32(&made, tid);
	recording_put_u64(&made, 123456);
	recording_put_u64(&made, 3);
	recording_put_u32(&made, raw_bytes);
	recording_put(&made, v, n_bytes);
	size_t padding = raw_bytes > n_bytes ? raw_bytes - n_bytes : 0;
	recording_put(&made, zeros, padding < sizeof(zeros) ? padding : sizeof(zeros));
	recording_end(&made);
	memset(&record, 0, sizeof(record));
	return record_decode(made.bytes, made.n, &streams, &record);
}

static int decode_whole(uint32_t tid, const struct switch_values *v)
{
	uint32_t n = (uint32_t)SWITCH_VALUES_BYTES(v->n_members);
	return decode(tid, v, n, n + 4);
}

TEST(values_of_a_switch_are_a_read_of_the_group, .times = SWITCH_MEMBERS_MAX + 1)
{
	struct switch_values v = values((uint64_t)_i);
	v.n_missed = 9;
	ck_assert_int_eq(decode_whole(31, &v), 0);
	ck_assert_int_eq(record.kind, RECORD_SAMPLE);
	ck_assert_uint_eq(record.pid, 30);
	ck_assert_uint_eq(record.tid, 31);
	ck_assert_uint_eq(record.time_ns, 123456);
	ck_assert_uint_eq(record.cpu, 3);
	ck_assert_uint_eq(record.sample.n_read, (unsigned)_i);
	ck_assert_uint_eq(record.sample.n_missed, 9);
	ck_assert_uint_eq(record.sample.enabled_ns, 1000);
	ck_assert_uint_eq(record.sample.running_ns, 900);
	for (int i = 0; i < _i; i++) {
		ck_assert_uint_eq(record.sample.read[i].value, 100u + (unsigned)i);
		ck_assert_uint_eq(record.sample.read[i].id, LEADER + (unsigned)i);
	}
}

TEST(a_buried_thread_is_who_the_program_says)
{
	struct switch_values v = values(2);
	ck_assert_int_eq(decode_whole(RECORD_TID_GONE, &v), 0);
	ck_assert_uint_eq(record.pid, 40);
	ck_assert_uint_eq(record.tid, 41);
	v.pid = v.tid = 0; /* it cannot tell either */
	ck_assert_int_eq(decode_whole(RECORD_TID_GONE, &v), 0);
	ck_assert_uint_eq(record.pid, 30);
	ck_assert_uint_eq(record.tid, RECORD_TID_GONE);
}

TEST(more_members_than_a_group_has_are_hostile, .times = 4)
{
	static const uint64_t counts[] = {
		SWITCH_MEMBERS_MAX + 1, UINT32_MAX, UINT64_MAX, UINT64_MAX / 16};
	struct switch_values v = values(counts[_i]);
	ck_assert_int_eq(decode(31, &v, sizeof(v), sizeof(v) + 4), RECORD_HOSTILE);
}

TEST(members_that_are_not_there_are_not_read)
{
	struct switch_values v = values(3);
	for (uint32_t n = 0; n < SWITCH_VALUES_BYTES(3); n += 4)
		ck_assert_int_eq(decode(31, &v, n, n), RECORD_TRUNCATED);
}

TEST(bytes_behind_the_last_member_are_hostile)
{
	struct switch_values v = values(3);
	ck_assert_int_eq(decode(31, &v, sizeof(v), sizeof(v) + 4), RECORD_HOSTILE);
	v.n_members = 0;
	ck_assert_int_eq(decode(31, &v, 40, 52), RECORD_HOSTILE);
}

TEST(a_raw_part_beyond_the_record_is_hostile)
{
	struct switch_values v = values(1);
	ck_assert_int_eq(decode(31, &v, 56, 4096), RECORD_HOSTILE);
	ck_assert_int_eq(decode(31, &v, 56, UINT32_MAX), RECORD_HOSTILE);
}

/* Only this role's raw parts are ours. */
TEST(raw_parts_of_others_are_stepped_over)
{
	struct switch_values v = values(UINT64_MAX);
	streams.stream[0].role = STREAM_EXEC;
	ck_assert_int_eq(decode(31, &v, sizeof(v), sizeof(v) + 4), 0);
	ck_assert_uint_eq(record.sample.n_read, 0);
}

/* --- sums ------------------------------------------------------------------------------------- */

static int decode_sums(uint32_t tid, const struct switch_sums *v, size_t n_bytes)
{
	streams.stream[0].role = STREAM_SWITCH_SUMS;
	return decode(tid, v, n_bytes, (uint32_t)n_bytes + 4);
}

static struct switch_sums sums(uint64_t n)
{
	struct switch_sums v = {
		.head = {.pid = 40,
			.tid = 41,
			.n_missed = 9,
			.n_members = n,
			.ran_ns = 5000,
			.enabled_ns = 1000,
			.running_ns = 900},
	};
	for (unsigned i = 0; i < SWITCH_MEMBERS_MAX; i++) {
		v.member[i].id = LEADER + i;
		v.member[i].sum = 100 + i;
	}
	return v;
}

TEST(sums_of_a_task_are_what_it_counted, .times = SWITCH_MEMBERS_MAX + 1)
{
	struct switch_sums v = sums((uint64_t)_i);
	ck_assert_int_eq(decode_sums(31, &v, SWITCH_SUMS_BYTES((size_t)_i)), 0);
	ck_assert_uint_eq(record.tid, 31);
	ck_assert_uint_eq(record.sample.n_read, (unsigned)_i);
	ck_assert_uint_eq(record.sample.n_missed, 9);
	ck_assert_uint_eq(record.sample.ran_ns, 5000);
	ck_assert_uint_eq(record.sample.enabled_ns, 1000);
	ck_assert_uint_eq(record.sample.running_ns, 900);
	for (int i = 0; i < _i; i++) {
		ck_assert_uint_eq(record.sample.read[i].value, 100u + (unsigned)i);
		ck_assert_uint_eq(record.sample.read[i].id, LEADER + (unsigned)i);
	}
}

TEST(sums_of_a_buried_thread_are_of_whom_the_program_says)
{
	struct switch_sums v = sums(2);
	ck_assert_int_eq(decode_sums(RECORD_TID_GONE, &v, SWITCH_SUMS_BYTES(2)), 0);
	ck_assert_uint_eq(record.pid, 40);
	ck_assert_uint_eq(record.tid, 41);
}

/* decode() adds 4 bytes of padding, which are zeros as well as a value may be. */
TEST(sums_that_are_cut_off_are_no_record, .times = SWITCH_SUMS_BYTES(2) - 4)
{
	struct switch_sums v = sums(2);
	ck_assert_int_eq(decode_sums(31, &v, (size_t)_i), RECORD_TRUNCATED);
}

TEST(sums_of_more_members_than_there_can_be_are_hostile)
{
	struct switch_sums v = sums(SWITCH_MEMBERS_MAX + 1);
	ck_assert_int_eq(decode_sums(31, &v, sizeof(v)), RECORD_HOSTILE);
	v = sums(UINT64_MAX);
	ck_assert_int_eq(decode_sums(31, &v, sizeof(v)), RECORD_HOSTILE);
}

TEST(sums_with_more_behind_them_are_hostile)
{
	struct switch_sums v = sums(1);
	ck_assert_int_eq(decode_sums(31, &v, SWITCH_SUMS_BYTES(2)), RECORD_HOSTILE);
}

/* --- execs ------------------------------------------------------------------------------------ */

static struct exec_news news;

static int decode_exec(
	const struct exec_head *h, const char *args, size_t n_bytes, uint32_t raw_bytes)
{
	streams.stream[0].role = STREAM_EXEC_BPF;
	news.head = *h;
	memcpy(news.args, args, n_bytes);
	return decode(31, &news, sizeof(news.head) + n_bytes, raw_bytes);
}

TEST(an_exec_has_arguments_and_an_owner)
{
	static const char args[] = "gcc\0-c\0a.c"; /* and its NUL */
	struct exec_head h = {.uid = 1000,
		.gid = 100,
		.flags = EXEC_WHOLE,
		.n_args = sizeof(args),
		.n_copied = sizeof(args)};
	ck_assert_int_eq(decode_exec(&h, args, sizeof(args), sizeof(h) + sizeof(args) + 1), 0);
	ck_assert_int_eq(record.kind, RECORD_EXEC);
	ck_assert_uint_eq(record.pid, 30);
	ck_assert_uint_eq(record.tid, 31);
	ck_assert_uint_eq(record.time_ns, 123456);
	ck_assert_uint_eq(record.exec.uid, 1000);
	ck_assert_uint_eq(record.exec.gid, 100);
	ck_assert(record.exec.whole);
	ck_assert(!record.exec.unjudged);
	ck_assert(!record.exec.cut);
	ck_assert_uint_eq(record.exec.n_args, sizeof(args));
	ck_assert_mem_eq(record.exec.args, args, sizeof(args));
}

TEST(an_exec_without_all_its_arguments_says_so)
{
	struct exec_head h = {.flags = EXEC_UNJUDGED, .n_args = 5000, .n_copied = 4};
	ck_assert_int_eq(decode_exec(&h, "true", 4, sizeof(h) + 4), 0);
	ck_assert(record.exec.cut);
	ck_assert(record.exec.unjudged);
	ck_assert(!record.exec.whole);
	ck_assert_uint_eq(record.exec.n_args, 4);
	h.n_args = h.n_copied = 0;
	ck_assert_int_eq(decode_exec(&h, "", 0, sizeof(h) + 4), 0);
	ck_assert(!record.exec.cut);
	ck_assert_uint_eq(record.exec.n_args, 0);
}

TEST(an_exec_that_contradicts_itself_is_hostile)
{
	struct exec_head h = {.n_args = 4, .n_copied = 4};
	ck_assert_int_eq(decode_exec(&h, "true", 4, sizeof(h)), RECORD_HOSTILE);
	ck_assert_int_eq(decode_exec(&h, "true", 4, sizeof(h) + 12), RECORD_HOSTILE);
	h.n_args = 3;
	ck_assert_int_eq(decode_exec(&h, "true", 4, sizeof(h) + 4), RECORD_HOSTILE);
	h.n_args = h.n_copied = UINT32_MAX;
	ck_assert_int_eq(decode_exec(&h, "true", 4, sizeof(h) + 4), RECORD_HOSTILE);
}

TEST(an_exec_without_its_head_is_truncated)
{
	for (uint32_t n = 0; n < sizeof(struct exec_head); n += 4) {
		streams.stream[0].role = STREAM_EXEC_BPF;
		ck_assert_int_eq(decode(31, &news, n, n), RECORD_TRUNCATED);
	}
	/* it has no raw part at all */
	streams.stream[0].sample_type = STREAM_SAMPLE_ID;
	ck_assert_int_ne(decode(31, &news, 0, 0), 0);
}
