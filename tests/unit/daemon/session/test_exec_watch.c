/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/exec_watch.c, on rings of a page that are filled by hand */

#include <errno.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/session/walk_private.h"
#include "tests/unit/attribute_bench.h"
#include "tests/unit/recording.h"
#include "tests/unit/test.h"

enum { TELLS_COMM = 500, FIRES = 501 };

static struct bench *b;
static struct ring rings[2];
static struct sampler sampler;
static struct exec_watch watch;
static struct recording_writer w;

static void setup(void)
{
	struct stream s = {.id = TELLS_COMM,
		.role = STREAM_EXEC,
		.sample_type = STREAM_SAMPLE_ID,
		.event = -1,
		.fd = -1};

	b = bench_new();
	bench_start(b);
	ck_assert_int_eq(stream_table_add(&b->streams, &s), 0);
	s.id = FIRES;
	ck_assert_int_eq(stream_table_add(&b->streams, &s), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			recording_mount(NULL, 0, (size_t)sysconf(_SC_PAGESIZE), 4000, &rings[i]),
			0);
	sampler = (struct sampler){.exec_ring = rings, .n_exec_rings = 2, .streams = b->streams};
	watch = (struct exec_watch){.sampler = &sampler, .attribute = b->attribute, .fd = 77};
}

static void teardown(void)
{
	recording_unmount(&rings[0]);
	recording_unmount(&rings[1]);
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static int put(int ring)
{
	return recording_append(&rings[ring], w.bytes, w.n);
}

static int comm(int ring, uint32_t pid, uint16_t misc, uint64_t id)
{
	recording_begin(&w, PERF_RECORD_COMM, misc);
	recording_put_u32(&w, pid);
	recording_put_u32(&w, pid);
	recording_put_string(&w, "x");
	recording_put_sample_id(&w, pid, pid, SECOND, 0, id);
	recording_end(&w);
	return put(ring);
}

static void fired(int ring, uint32_t pid)
{
	recording_begin(&w, PERF_RECORD_SAMPLE, 0);
	recording_put_u64(&w, FIRES);
	recording_put_u32(&w, pid);
	recording_put_u32(&w, pid);
	recording_put_u64(&w, SECOND);
	recording_put_u64(&w, 0);
	recording_end(&w);
	ck_assert_int_eq(put(ring), 0);
}

TEST(news_of_all_rings_are_taken_and_are_due_at_once)
{
	ck_assert_uint_eq(exec_watch_deadline_ns(&watch), UINT64_MAX);
	ck_assert_int_eq(comm(0, 10, PERF_RECORD_MISC_COMM_EXEC, TELLS_COMM), 0);
	fired(1, 11);
	ck_assert_uint_eq(exec_watch_deadline_ns(&watch), 0);
	/* the looks find an empty /proc, so both are settled as gone */
	exec_watch_dispatch(&watch, SECOND);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 2);
	uint64_t time_ns;
	ck_assert_int_eq(exec_argv_at(b->attribute->execs, 0, &time_ns), 10);
	ck_assert_int_eq(exec_argv_at(b->attribute->execs, 1, &time_ns), 11);
	ck_assert_uint_eq(time_ns, SECOND);
	ck_assert_uint_eq(exec_watch_deadline_ns(&watch), UINT64_MAX);
	ck_assert_uint_eq(watch.n_wakes, 1);
}

TEST(what_is_no_exec_is_passed_over)
{
	ck_assert_int_eq(comm(0, 10, 0, TELLS_COMM), 0);                   /* a new name alone */
	ck_assert_int_eq(comm(0, 10, PERF_RECORD_MISC_COMM_EXEC, 999), 0); /* a stranger */
	ck_assert_int_eq(comm(0, 10, PERF_RECORD_MISC_COMM_EXEC, BENCH_SIDEBAND), 0);
	ck_assert_int_eq(comm(0, UINT32_MAX, PERF_RECORD_MISC_COMM_EXEC, TELLS_COMM), 0);
	recording_begin(&w, PERF_RECORD_EXIT, 0); /* shorter than it must be */
	recording_put_u64(&w, 10);
	recording_end(&w);
	ck_assert_int_eq(put(0), 0);
	exec_watch_dispatch(&watch, SECOND);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);
	ck_assert_uint_eq(exec_watch_deadline_ns(&watch), UINT64_MAX);
}

TEST(what_was_taken_makes_room)
{
	/* several times what a page holds */
	for (uint32_t pid = 1; pid <= 300; pid++) {
		ck_assert_int_eq(comm(0, pid, PERF_RECORD_MISC_COMM_EXEC, TELLS_COMM), 0);
		exec_watch_dispatch(&watch, SECOND);
	}
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 300);
}

TEST(too_many_wakes_make_it_rest)
{
	for (int i = 0; i < EXEC_WAKES_MAX; i++) {
		ck_assert_int_eq(exec_watch_fd(&watch), 77);
		ck_assert_int_eq(comm(0, 10, 0, TELLS_COMM), 0);
		exec_watch_dispatch(&watch, SECOND + (uint64_t)i);
	}
	ck_assert_int_eq(comm(0, 10, 0, TELLS_COMM), 0);
	exec_watch_dispatch(&watch, SECOND + EXEC_WAKES_MAX);
	ck_assert_int_eq(exec_watch_fd(&watch), -1);
	ck_assert_int_eq(comm(0, 10, PERF_RECORD_MISC_COMM_EXEC, TELLS_COMM), 0);
	const uint64_t look_ns = SECOND + EXEC_WAKES_MAX + EXEC_REST_NS;
	ck_assert_uint_eq(exec_watch_deadline_ns(&watch), look_ns);
	exec_watch_dispatch(&watch, look_ns - 1);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 0);

	exec_watch_resume(&watch); /* a drain */
	exec_watch_dispatch(&watch, look_ns - 1);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 1);
	ck_assert_int_eq(exec_watch_fd(&watch), -1); /* still the same second */

	exec_watch_resume(&watch);
	ck_assert_int_eq(comm(0, 11, PERF_RECORD_MISC_COMM_EXEC, TELLS_COMM), 0);
	exec_watch_dispatch(&watch, SECOND * 2 + 1);
	ck_assert_int_eq(exec_watch_fd(&watch), 77);
	ck_assert_uint_eq(watch.n_wakes, 1);
}

TEST(execs_that_are_put_off_wait_for_the_drain)
{
	static struct walk walk;
	static struct walk_inner inner;
	walk = (struct walk){.sampler = watch.sampler, .inner = &inner};
	inner.execs = watch;
	walk.sampler->machine.n_harts = 2;
	walk_put_off_execs(&walk, true);
	ck_assert(!inner.execs.put_off); /* a session of a client's own is not concerned */
	inner.execs.wakes_max = EXEC_WAKES_ALWAYS;
	ck_assert(walk_is_woken_by_execs(&walk));
	walk_put_off_execs(&walk, true);
	ck_assert(inner.execs.put_off);
	ck_assert(walk_is_woken_by_execs(&walk));
	fired(0, 10);
	exec_watch_dispatch(&inner.execs, SECOND);
	ck_assert_int_eq(exec_watch_fd(&inner.execs), -1);
	ck_assert_uint_eq(exec_watch_deadline_ns(&inner.execs), UINT64_MAX);
	walk_put_off_execs(&walk, false);
	ck_assert(!inner.execs.put_off);
	for (int hart = 0; hart < walk.sampler->machine.n_harts; hart++)
		hart_set_add(&walk.sampler->exec_records, hart);
	ck_assert(!walk_is_woken_by_execs(&walk)); /* by BPF */
}

/* A ring with room for stacks must not fill while the watch rests. */
TEST(a_watch_that_rests_looks_after_rings_with_stacks)
{
	recording_unmount(&rings[1]);
	ck_assert_int_eq(recording_mount(NULL, 0, 131072, 4000, &rings[1]), 0);
	watch.wakes_max = 2;
	for (uint64_t i = 0; i < 3; i++) {
		exec_watch_resume(&watch);
		fired(1, 10);
		ck_assert_uint_eq(exec_watch_deadline_ns(&watch), 0);
		exec_watch_dispatch(&watch, SECOND + i);
	}
	ck_assert_int_eq(exec_watch_fd(&watch), -1);
	ck_assert_uint_eq(exec_watch_deadline_ns(&watch), SECOND + 2 + EXEC_REST_NS);
	fired(1, 11);
	exec_watch_dispatch(&watch, SECOND + 3);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 3);
	exec_watch_dispatch(&watch, SECOND + 2 + EXEC_REST_NS);
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 4);
	/* nobody came meanwhile: no more looks */
	exec_watch_dispatch(&watch, SECOND + 2 + 2 * EXEC_REST_NS);
	ck_assert_int_eq(exec_watch_fd(&watch), 77);
	ck_assert_uint_eq(exec_watch_deadline_ns(&watch), UINT64_MAX);
}

/* Turns of the loop in one second, in which this many processes begin; each forks, execs and ends after 2 ms. */
static unsigned turns_beside(uint32_t per_second)
{
	const uint64_t step_ns = MS / 2, begin_ns = 2 * SECOND,
		       apart = 2 * SECOND / MS / per_second;
	unsigned turns = 0;
	for (uint64_t i = 0; i < SECOND / step_ns; i++) {
		const uint64_t now_ns = begin_ns + i * step_ns;
		const uint32_t pid = (uint32_t)(10 + i / apart);
		bool news = i % apart == 0 || i % apart == 1 || i % apart == 5;
		if (news)
			ck_assert_int_eq(
				comm(0, pid, i % apart == 1 ? PERF_RECORD_MISC_COMM_EXEC : 0,
					TELLS_COMM),
				0);
		if (!(news && exec_watch_fd(&watch) >= 0) &&
			exec_watch_deadline_ns(&watch) > now_ns)
			continue;
		exec_watch_dispatch(&watch, now_ns);
		turns++;
	}
	return turns;
}

TEST(a_flood_of_execs_shares_few_turns)
{
	watch.wakes_max = EXEC_WAKES_ALWAYS;
	const unsigned few = turns_beside(20);
	ck_assert_uint_ge(few, 20 * 2); /* each is noticed at once */
	ck_assert_uint_eq(exec_argv_n(b->attribute->execs), 20);
	watch.n_wakes = 0;
	exec_watch_resume(&watch);
	const unsigned many = turns_beside(250);
	ck_assert_uint_le(many, 2 * EXEC_WAKES_ALWAYS + SECOND / EXEC_REST_NS);
	/* those of the last 20 ms are still to be read */
	ck_assert_uint_ge(
		exec_argv_n(b->attribute->execs), 20 + 250 - 250 * EXEC_REST_NS / SECOND - 1);
}

TEST(a_descriptor_that_cannot_be_waited_for_is_an_error)
{
	rings[0].fd = -1;
	ck_assert_int_lt(exec_watch_follow(&watch), 0);
	sampler.n_exec_rings = 0;
	ck_assert_int_eq(exec_watch_follow(&watch), 0);
}
