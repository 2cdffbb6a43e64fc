/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Rings of a page, filled so that records wrap, are merged; what comes out is compared to the times
 * that went in. */

#include <errno.h>
#include <unistd.h>

#include "daemon/decode/merge.h"
#include "daemon/kernel/switch_layout.h"
#include "tests/unit/recording.h"
#include "tests/unit/test.h"

#define N_RINGS 3

static struct stream_table streams;
static struct ring rings[N_RINGS];
static uint64_t lost[N_RINGS][N_LOSSES];
static struct merge m;
static struct recording_writer w;
static size_t page;

static void setup(void)
{
	struct stream s = {
		.id = 1, .leader = 1, .sample_type = STREAM_SAMPLE_ID, .hart = -1, .fd = -1};

	page = (size_t)sysconf(_SC_PAGESIZE);
	memset(lost, 0, sizeof(lost));
	streams = (struct stream_table){};
	ck_assert_int_eq(stream_table_add(&streams, &s), 0);
	for (int i = 0; i < N_RINGS; i++) {
		/* Begin shortly before the end, and not at the same place in all. */
		uint64_t tail = page * 5 - 64 - 24 * (uint64_t)i;
		ck_assert_int_eq(recording_mount(NULL, 0, page, tail, &rings[i]), 0);
		rings[i].hart = i;
	}
	m = (struct merge){.ring = rings, .n_rings = N_RINGS, .streams = &streams, .lost = lost};
}

static void teardown(void)
{
	merge_clear(&m);
	stream_table_clear(&streams);
	for (int i = 0; i < N_RINGS; i++)
		recording_unmount(&rings[i]);
}

EACH_TEST(.begin = setup, .end = teardown);

static void put(int ring)
{
	ck_assert_int_eq(recording_append(&rings[ring], w.bytes, w.n), 0);
}

/* Records of different sizes, so that edges fall everywhere. */
static void add(int ring, uint64_t time_ns)
{
	static const char *const names[] = {"a", "eleven byte", "a name of twenty-six bytes"};

	recording_begin(&w, PERF_RECORD_COMM, 0);
	recording_put_u32(&w, 1);
	recording_put_u32(&w, 1);
	recording_put_string(&w, names[time_ns % 3]);
	recording_put_sample_id(&w, 1, 1, time_ns, (uint32_t)ring, 1);
	recording_end(&w);
	put(ring);
}

static void add_stranger(int ring)
{
	recording_begin(&w, PERF_RECORD_LOST_SAMPLES, 0);
	recording_put_u64(&w, 1);
	recording_put_sample_id(&w, 1, 1, 5, 0, 999);
	recording_end(&w);
	put(ring);
}

static void add_unknown(int ring)
{
	recording_begin(&w, 60, 0);
	recording_put_u64(&w, 1);
	recording_end(&w);
	put(ring);
}

/* A sane header, a time that can be read, and no NUL in the name. */
static void add_hostile(int ring, uint64_t time_ns)
{
	recording_begin(&w, PERF_RECORD_COMM, 0);
	recording_put_u64(&w, 1);
	recording_put(&w, "xxxxxxxx", 8);
	recording_put_sample_id(&w, 1, 1, time_ns, 0, 1);
	recording_end(&w);
	put(ring);
}

static void expect(uint64_t time_ns, int hart)
{
	struct record r;
	int h;

	ck_assert_int_eq(merge_next(&m, &r, &h), 0);
	ck_assert_uint_eq(r.time_ns, time_ns);
	ck_assert_int_eq(h, hart);
}

static void expect_end(void)
{
	struct record r;
	int h;

	ck_assert_int_eq(merge_next(&m, &r, &h), MERGE_END);
	ck_assert_int_eq(merge_next(&m, &r, &h), MERGE_END);
}

static uint64_t unread(int ring)
{
	const struct perf_event_mmap_page *control = rings[ring].map;
	return control->data_head - control->data_tail;
}

TEST(three_rings_come_out_in_order_of_time)
{
	add(0, 10), add(0, 40), add(0, 41);
	add(1, 20), add(1, 30);
	add(2, 5), add(2, 50);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(5, 2), expect(10, 0), expect(20, 1), expect(30, 1), expect(40, 0), expect(41, 0);
	expect(50, 2), expect_end();
	merge_end(&m);
	for (int i = 0; i < N_RINGS; i++)
		ck_assert_uint_eq(unread(i), 0);
	ck_assert_uint_eq(m.last_ns, 50);
}

TEST(order_holds_over_many_drains_and_wraps)
{
	uint64_t written = 0, read = 0, random = 12345;

	/* 200 drains of up to 40 records: each ring goes around more than ten times. */
	for (int drain = 0; drain < 200; drain++) {
		for (int i = 0; i < 40; i++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			add((int)(random >> 33) % N_RINGS, ++written);
		}
		ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
		struct record r;
		int hart;
		while (merge_next(&m, &r, &hart) == 0)
			ck_assert_uint_eq(r.time_ns, ++read);
		merge_end(&m);
		ck_assert_uint_eq(read, written);
	}
	ck_assert_uint_gt(rings[0].tail, page * 10);
	ck_assert_uint_eq(lost[0][LOSS_LATE] + lost[1][LOSS_LATE] + lost[2][LOSS_LATE], 0);
}

TEST(record_that_wraps_is_whole)
{
	struct record r;
	int hart;

	add(0, 2); /* 80 bytes, 64 before the edge */
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	ck_assert_int_eq(merge_next(&m, &r, &hart), 0);
	ck_assert_str_eq(r.comm.name, "a name of twenty-six bytes");
	merge_end(&m);
}

TEST(records_at_or_behind_the_cut_stay)
{
	add(0, 10), add(0, 20), add(0, 30);
	add(1, 19), add(1, 25);
	ck_assert_int_eq(merge_begin(&m, 20), 0);
	expect(10, 0), expect(19, 1), expect_end();
	merge_end(&m);
	ck_assert_uint_gt(unread(0), 0);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(20, 0), expect(25, 1), expect(30, 0), expect_end();
	merge_end(&m);
	ck_assert_uint_eq(unread(0) + unread(1), 0);
}

TEST(what_arrives_during_a_drain_waits_for_the_next)
{
	add(0, 10);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	add(0, 11), add(1, 12);
	expect(10, 0), expect_end();
	merge_end(&m);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(11, 0), expect(12, 1), expect_end();
}

TEST(drain_that_stops_early_loses_nothing)
{
	add(0, 10), add(0, 20), add(1, 15);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(10, 0);
	merge_end(&m);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(15, 1), expect(20, 0), expect_end();
}

TEST(drain_that_stops_early_trusts_what_it_left)
{
	const uint64_t s = MERGE_BEHIND_NS;

	add(0, 2 * s), add(0, 3 * s), add(1, 4 * s);
	ck_assert_int_eq(merge_begin(&m, 10 * s), 0);
	expect(2 * s, 0);
	merge_end(&m);
	ck_assert_int_eq(merge_begin(&m, 10 * s), 0);
	expect(3 * s, 0), expect(4 * s, 1), expect_end();
	ck_assert_uint_eq(lost[0][LOSS_LATE] + lost[1][LOSS_LATE], 0);
}

TEST(rings_may_come_and_go_between_drains)
{
	m.n_rings = 1;
	add(0, 10), add(2, 20);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(10, 0), expect_end();
	merge_end(&m);
	m.n_rings = N_RINGS;
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(20, 2), expect_end();
	merge_end(&m);
	m.n_rings = 0;
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect_end();
	merge_end(&m);
}

TEST(closed_ring_is_passed_over)
{
	struct ring open = rings[1];

	add(0, 10), add(1, 11);
	rings[1] = (struct ring){.hart = 1, .fd = -1};
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(10, 0), expect_end();
	merge_end(&m);
	rings[1] = open;
}

TEST(empty_rings_end_at_once)
{
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect_end();
	merge_end(&m);
}

/* --- what should not be ----------------------------------------------------------------------- */

TEST(late_record_is_counted_and_handed_out)
{
	add(0, 100);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(100, 0), expect_end();
	merge_end(&m);
	add(1, 90), add(0, 110);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(90, 1), expect(110, 0), expect_end();
	ck_assert_uint_eq(lost[1][LOSS_LATE], 1);
	ck_assert_uint_eq(lost[0][LOSS_LATE], 0);
	ck_assert_uint_eq(m.last_ns, 110);
}

TEST(inversion_within_a_ring_is_late_too)
{
	add(2, 50), add(2, 49), add(2, 51);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(50, 2), expect(49, 2), expect(51, 2), expect_end();
	ck_assert_uint_eq(lost[2][LOSS_LATE], 1);
}

/* A record of the BPF program, as short as can be. */
static void add_sums(int ring, uint64_t time_ns)
{
	const struct stream s = {
		.id = 2,
		.leader = 2,
		.role = STREAM_SWITCH_SUMS,
		.sample_type = STREAM_SAMPLE_ID | PERF_SAMPLE_RAW,
		.hart = -1,
		.fd = -1,
	};
	const struct switch_sums_head head = {.ran_ns = 1};

	if (!stream_table_find(&streams, s.id))
		ck_assert_int_eq(stream_table_add(&streams, &s), 0);
	recording_begin(&w, PERF_RECORD_SAMPLE, 0);
	recording_put_u64(&w, s.id);
	recording_put_u32(&w, 1);
	recording_put_u32(&w, 1);
	recording_put_u64(&w, time_ns);
	recording_put_u64(&w, (uint64_t)ring);
	recording_put_u32(&w, sizeof(head) + 4);
	recording_put(&w, &head, sizeof(head));
	recording_put_u32(&w, 0);
	recording_end(&w);
	put(ring);
}

TEST(a_sample_just_before_its_sums_is_not_late)
{
	add_sums(2, 50), add(2, 49), add(1, 50), add(2, 51);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(50, 1), expect(50, 2), expect(49, 2), expect(51, 2), expect_end();
	ck_assert_uint_eq(lost[2][LOSS_LATE], 0);
	merge_end(&m);
	add_sums(2, 60), add(2, 61), add(2, 60); /* only the one that follows */
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(60, 2), expect(61, 2), expect(60, 2), expect_end();
	ck_assert_uint_eq(lost[2][LOSS_LATE], 1);
}

TEST(stranger_is_counted_and_passed_over)
{
	add_stranger(0), add(0, 10), add_stranger(0), add_stranger(1);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(10, 0), expect_end();
	merge_end(&m);
	ck_assert_uint_eq(lost[0][LOSS_STREAM], 2);
	ck_assert_uint_eq(lost[1][LOSS_STREAM], 1);
	ck_assert_uint_eq(unread(0) + unread(1), 0);
}

TEST(unknown_type_is_passed_over_uncounted)
{
	add_unknown(0), add(0, 10), add_unknown(0);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(10, 0), expect_end();
	merge_end(&m);
	for (int cause = 0; cause < N_LOSSES; cause++)
		ck_assert_uint_eq(lost[0][cause], 0);
	ck_assert_uint_eq(unread(0), 0);
}

TEST(hostile_record_is_counted_and_passed_over)
{
	add_hostile(0, 10), add(0, 11), add_hostile(0, 12), add(1, 12);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(11, 0), expect(12, 1), expect_end();
	merge_end(&m);
	ck_assert_uint_eq(lost[0][LOSS_RECORD], 2);
	ck_assert_uint_eq(unread(0), 0);
}

TEST(broken_header_costs_its_ring_alone)
{
	add(0, 10);
	recording_begin(&w, PERF_RECORD_COMM, 0); /* size 0 */
	put(0);
	add(0, 12), add(1, 13);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(10, 0), expect(13, 1), expect_end();
	merge_end(&m);
	ck_assert_uint_eq(lost[0][LOSS_RECORD], 1);
	add(0, 20); /* the ring goes on */
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(20, 0), expect_end();
}

TEST(size_beyond_the_head_costs_its_ring_alone)
{
	recording_begin(&w, PERF_RECORD_COMM, 0);
	w.n = 4000;
	recording_end(&w);
	w.n = 16;
	put(1);
	add(0, 12);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(12, 0), expect_end();
	ck_assert_uint_eq(lost[1][LOSS_RECORD], 1);
}

TEST(ring_of_nothing_but_garbage_ends)
{
	for (size_t i = 0; i < page / 16; i++)
		add_unknown(0);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect_end();
	merge_end(&m);
	ck_assert_uint_eq(unread(0), 0);
}

TEST(last_drain_takes_the_end_of_time)
{
	add(0, UINT64_MAX), add(0, UINT64_MAX - 1), add(1, 3);
	ck_assert_int_eq(merge_begin(&m, UINT64_MAX), 0);
	expect(3, 1), expect(UINT64_MAX - 1, 0), expect(UINT64_MAX - 1, 0), expect_end();
	merge_end(&m);
	ck_assert_uint_eq(unread(0), 0);
}

/* --- times that cannot be --------------------------------------------------------------------- */

static uint64_t clock_of_test_ns;

static uint64_t now_of_test_ns(void)
{
	return clock_of_test_ns;
}

TEST(what_says_to_be_ahead_of_now_stops_nothing)
{
	const uint64_t s = 1000000000u;

	m.now_ns = now_of_test_ns;
	clock_of_test_ns = 20 * s;
	add(0, 10 * s), add(0, 999999 * s), add(0, UINT64_MAX), add(0, 11 * s), add(1, 12 * s);
	ck_assert_int_eq(merge_begin(&m, 19 * s), 0);
	expect(10 * s, 0), expect(10 * s, 0), expect(10 * s, 0), expect(11 * s, 0);
	expect(12 * s, 1), expect_end();
	merge_end(&m);
	ck_assert_uint_eq(unread(0), 0);
	ck_assert_uint_eq(lost[0][LOSS_LATE], 2);
	ck_assert_uint_eq(m.last_ns, 12 * s);
}

TEST(what_is_behind_the_cut_but_not_ahead_of_now_waits)
{
	m.now_ns = now_of_test_ns;
	clock_of_test_ns = 100 + MERGE_SLACK_NS;
	add(0, 99), add(0, 100), add(0, clock_of_test_ns + MERGE_SLACK_NS);
	ck_assert_int_eq(merge_begin(&m, 100), 0);
	expect(99, 0), expect_end();
	merge_end(&m);
	ck_assert_uint_eq(lost[0][LOSS_LATE], 0);
	clock_of_test_ns += 2 * MERGE_SLACK_NS;
	ck_assert_int_eq(merge_begin(&m, clock_of_test_ns), 0);
	expect(100, 0), expect(100 + 2 * MERGE_SLACK_NS, 0), expect_end();
}

TEST(what_says_to_be_far_behind_the_last_drain_is_of_its_neighbours_time)
{
	const uint64_t s = MERGE_BEHIND_NS;

	add(0, 8 * s);
	ck_assert_int_eq(merge_begin(&m, 10 * s), 0);
	expect(8 * s, 0), expect_end();
	merge_end(&m);
	add(0, 9 * s), add(0, 9 * s - 1), add(0, 0), add(0, 11 * s);
	ck_assert_int_eq(merge_begin(&m, 12 * s), 0);
	expect(9 * s, 0), expect(9 * s, 0), expect(9 * s, 0), expect(11 * s, 0), expect_end();
	ck_assert_uint_eq(lost[0][LOSS_LATE], 2);
}

TEST(what_bears_another_harts_number_is_of_its_neighbours_time)
{
	streams.stream[0].hart = 0;
	add(0, 10);
	recording_begin(&w, PERF_RECORD_LOST_SAMPLES, 0);
	recording_put_u64(&w, 1);
	recording_put_sample_id(&w, 1, 1, 17, 5, 1);
	recording_end(&w);
	put(0);
	add(0, 18);
	ck_assert_int_eq(merge_begin(&m, 20), 0);
	expect(10, 0), expect(10, 0), expect(18, 0), expect_end();
	ck_assert_uint_eq(lost[0][LOSS_LATE], 1);
}

/* The kernel tells a second listener of a KSYMBOL with the first one's bytes counted in: what is
 * behind its sample_id was in the ring before. */
TEST(stale_bytes_behind_a_ksymbol_do_not_blind_a_ring)
{
	const uint64_t s = 1000000000u;

	m.now_ns = now_of_test_ns;
	clock_of_test_ns = 20 * s;
	add(0, 10 * s);
	recording_begin(&w, PERF_RECORD_KSYMBOL, 0);
	recording_put_u64(&w, 0xffffffffa0001000u);
	recording_put_u64(&w, 4096);
	recording_put_string(&w, "bpf_prog_0123456789abcdef");
	recording_put_sample_id(&w, 1, 1, 11 * s, 0, 1);
	recording_put_sample_id(&w, 1, 1, 5000000 * s, 0, 1);
	recording_end(&w);
	put(0);
	add(0, 12 * s);
	ck_assert_int_eq(merge_begin(&m, 19 * s), 0);
	expect(10 * s, 0), expect(11 * s, 0), expect(12 * s, 0), expect_end();
	merge_end(&m);
	ck_assert_uint_eq(unread(0), 0);
	for (int cause = 0; cause < N_LOSSES; cause++)
		ck_assert_uint_eq(lost[0][cause], 0);
}

/* A real recording, through rings that wrap: as many records as were written, in order. */
TEST(recorded_processes_come_out_in_order)
{
	struct recording recording;
	uint64_t last_ns = 0;
	struct record r;
	int hart, n_samples = 0, n_forks = 0;

	ck_assert_int_eq(recording_load("tests/records/processes.ring", &recording), 0);
	ck_assert_uint_eq(recording.n_rings, 2);
	struct ring two[2] = {};
	for (size_t i = 0; i < 2; i++) {
		ck_assert_int_eq(recording_mount(recording.ring[i].bytes, recording.ring[i].n, 0,
					 0x12345678, &two[i]),
			0);
		two[i].hart = recording.ring[i].hart;
	}
	struct merge both = {
		.ring = two, .n_rings = 2, .streams = &recording.streams, .lost = lost};
	ck_assert_int_eq(merge_begin(&both, UINT64_MAX), 0);
	while (merge_next(&both, &r, &hart) == 0) {
		ck_assert_uint_ge(r.time_ns, last_ns);
		last_ns = r.time_ns;
		n_samples += r.kind == RECORD_SAMPLE;
		n_forks += r.kind == RECORD_FORK;
	}
	merge_end(&both);
	merge_clear(&both);
	ck_assert_int_eq(n_forks, 26);
	ck_assert_int_gt(n_samples, 20);
	for (int cause = 0; cause < N_LOSSES; cause++)
		ck_assert_uint_eq(lost[0][cause] + lost[1][cause], 0);
	for (size_t i = 0; i < 2; i++)
		recording_unmount(&two[i]);
	recording_clear(&recording);
}
