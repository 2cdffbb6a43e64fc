/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Records as a second and a third listener get them, whose size counts the sample_id of the
 * listeners before them: of every kind, with stale bytes of every sort behind it. */

#include "daemon/decode/trailer.h"
#include "tests/unit/daemon/decode/made.h"
#include "tests/unit/test.h"

#define OTHER_BYTES_MAX 48u /* a sample_id with all its fields */
#define TIME_NS 123456789u

static struct stream_table streams;
static struct record r;

static void setup(void)
{
	made_streams(&streams);
}

static void teardown(void)
{
	stream_table_clear(&streams);
}

EACH_TEST(.begin = setup, .end = teardown);

/* Bytes that were in the ring before, as long as the sample_ids of others. */
static void put_stale(size_t n, uint64_t with)
{
	for (size_t i = 0; i < n; i += 8)
		recording_put_u64(&made, with);
	recording_end(&made);
}

static uint64_t time_of_made(void)
{
	uint64_t time_ns = 0;

	ck_assert_int_eq(record_time(made.bytes, made.n, &streams, &time_ns), 0);
	return time_ns;
}

static uint32_t type_of_made(void)
{
	struct perf_event_header h;

	memcpy(&h, made.bytes, sizeof(h));
	return h.type;
}

/* With our id at the very end, and a time ahead of now before it, and with neither. */
TEST(a_record_with_stale_bytes_behind_it_is_read_by_its_content, .times = N_MADE)
{
	static const uint64_t stale[] = {0, 1, MADE_SIDE, 3, UINT64_MAX};

	for (size_t n = 8; n <= 3 * (size_t)OTHER_BYTES_MAX; n += 8)
		for (size_t i = 0; i < sizeof(stale) / sizeof(stale[0]); i++) {
			made_all[_i]();
			if (type_of_made() == PERF_RECORD_SAMPLE)
				return; /* its id stands in front */
			struct record whole;
			ck_assert_int_eq(record_decode(made.bytes, made.n, &streams, &whole), 0);
			put_stale(n, stale[i]);
			ck_assert_uint_eq(time_of_made(), TIME_NS);
			ck_assert_int_eq(record_decode(made.bytes, made.n, &streams, &r), 0);
			ck_assert_int_eq((int)r.kind, (int)whole.kind);
			ck_assert_uint_eq(r.time_ns, TIME_NS);
			ck_assert_uint_eq(r.id, MADE_SIDE);
			ck_assert_uint_eq(r.pid, whole.pid);
			ck_assert_uint_eq(r.cpu, 3);
		}
}

static void begin_text_poke(uint16_t old_bytes, uint16_t new_bytes)
{
	recording_begin(&made, PERF_RECORD_TEXT_POKE, 0);
	recording_put_u64(&made, 0xffffffff81000000u);
	recording_put_u16(&made, old_bytes);
	recording_put_u16(&made, new_bytes);
	for (unsigned i = 0; i < (unsigned)old_bytes + new_bytes; i++)
		recording_put(&made, "\x90", 1);
	while (made.n % 8)
		recording_put(&made, "", 1);
	made_finish_side();
}

TEST(code_that_the_kernel_changed_is_as_long_as_it_says, .times = 17)
{
	begin_text_poke((uint16_t)_i, (uint16_t)(2 * _i));
	ck_assert_uint_eq(time_of_made(), TIME_NS);
	put_stale(32, UINT64_MAX);
	ck_assert_uint_eq(time_of_made(), TIME_NS);
	put_stale(32, MADE_SIDE);
	ck_assert_uint_eq(time_of_made(), TIME_NS);
}

TEST(kinds_without_a_body_of_use_are_read_too, .times = 6)
{
	static const struct {
		uint32_t type;
		int words;
	} kinds[] = {
		{PERF_RECORD_SWITCH, 0},
		{PERF_RECORD_SWITCH_CPU_WIDE, 1},
		{PERF_RECORD_ITRACE_START, 1},
		{PERF_RECORD_AUX, 3},
		{PERF_RECORD_BPF_EVENT, 2},
		{PERF_RECORD_AUX_OUTPUT_HW_ID, 1},
	};

	recording_begin(&made, kinds[_i].type, 0);
	for (int i = 0; i < kinds[_i].words; i++)
		recording_put_u64(&made, MADE_SIDE);
	made_finish_side();
	ck_assert_uint_eq(time_of_made(), TIME_NS);
	put_stale(64, MADE_SIDE);
	ck_assert_uint_eq(time_of_made(), TIME_NS);
}

/* Stale bytes that end with our id do not make it ours. */
TEST(a_strangers_record_stays_a_strangers)
{
	uint64_t time_ns;

	recording_begin(&made, PERF_RECORD_KSYMBOL, 0);
	recording_put_u64(&made, 1);
	recording_put_u64(&made, 2);
	recording_put_string(&made, "f");
	recording_put_sample_id(&made, 1, 1, TIME_NS, 3, 999);
	put_stale(32, MADE_SIDE);
	ck_assert_int_eq(record_time(made.bytes, made.n, &streams, &time_ns), RECORD_STRANGER);
	ck_assert_int_eq(record_decode(made.bytes, made.n, &streams, &r), RECORD_STRANGER);
}

TEST(a_kind_that_does_not_say_where_it_ends_ends_with_its_sample_id)
{
	recording_begin(&made, PERF_RECORD_READ, 0);
	for (int i = 0; i < 5; i++)
		recording_put_u64(&made, 9);
	made_finish_side();
	ck_assert_uint_eq(time_of_made(), TIME_NS);
}

TEST(another_harts_number_beside_the_time_makes_it_no_time)
{
	uint64_t time_ns;

	recording_begin(&made, PERF_RECORD_LOST_SAMPLES, 0);
	recording_put_u64(&made, 5);
	recording_put_sample_id(&made, 1, 1, TIME_NS, 4, MADE_SIDE);
	recording_end(&made);
	ck_assert_int_eq(record_time(made.bytes, made.n, &streams, &time_ns), RECORD_UNTIMED);
	ck_assert_int_eq(record_decode(made.bytes, made.n, &streams, &r), 0);
	ck_assert_uint_eq(r.lost.n, 5);
}
