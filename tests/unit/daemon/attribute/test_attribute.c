/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/attribute.c and stack_walk.c: what becomes of samples */

#include "daemon/attribute/attribute.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define STEXT UINT64_C(0xffffffff81000000)

static struct bench *b;

/* Process 10 is "prog", with /bin/prog mapped at 0x10000. */
static void setup(void)
{
	b = bench_new();
	bench_start(b);
	bench_fork(b, SECOND, 10, 10, 1);
	bench_comm(b, SECOND + 1, 10, "prog", true);
	bench_map(b, 10, 0x10000, 0x1000, "/bin/prog");
}

static void teardown(void)
{
	bench_free(b);
}

EACH_TEST(.begin = setup, .end = teardown);

static void restart(void)
{
	attribute_free(b->attribute);
	bench_start(b);
}

static void sample_chain(const uint64_t *chain, size_t n, bool kernel)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0x10020);

	r.sample.callchain = chain;
	r.sample.n_callchain = n;
	r.sample.kernel = kernel;
	bench_take(b, &r, 0);
}

static void expect_frame(size_t sunk, uint32_t i, const char *path, uint64_t offset)
{
	const struct attribution *a = bench_got(b, sunk);

	ck_assert_uint_lt(i, a->n_frames);
	ck_assert_str_eq(a->frame[i]->file->path, path);
	ck_assert_uint_eq(a->frame[i]->offset, offset);
}

/* --- frames ----------------------------------------------------------------------------------- */

TEST(a_sample_without_a_callchain_has_its_leaf)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0x10020);

	bench_take(b, &r, 0);
	const struct attribution *a = bench_got(b, 0);
	ck_assert_str_eq(a->task->comm, "prog");
	ck_assert_uint_eq(a->count, 1);
	ck_assert_uint_eq(a->weight_ns, 10101010);
	ck_assert_int_eq(a->event, 2);
	ck_assert_int_eq(a->rung, RUNG_CLOCK);
	ck_assert_uint_eq(a->n_frames, 1);
	ck_assert_uint_eq(a->n_reads, 0);
	expect_frame(0, 0, "/bin/prog", 0x1020);
}

TEST(callers_are_one_byte_before_their_return_address)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x10020, 0x10030, 0x10040};

	sample_chain(chain, 4, false);
	ck_assert_uint_eq(bench_got(b, 0)->n_frames, 3);
	expect_frame(0, 0, "/bin/prog", 0x1020);
	expect_frame(0, 1, "/bin/prog", 0x102f);
	expect_frame(0, 2, "/bin/prog", 0x103f);
	ck_assert(!bench_got(b, 0)->truncated);
}

TEST(the_first_address_of_each_mode_is_exact)
{
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, STEXT + 0x20, STEXT + 0x30,
		PERF_CONTEXT_USER, 0x10020, 0x10030};

	sample_chain(chain, 6, true);
	ck_assert_uint_eq(bench_got(b, 0)->n_frames, 4);
	expect_frame(0, 0, "[kernel]", 0x20);
	expect_frame(0, 1, "[kernel]", 0x2f);
	expect_frame(0, 2, "/bin/prog", 0x1020);
	expect_frame(0, 3, "/bin/prog", 0x102f);
}

TEST(modules_have_files_of_their_own)
{
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffffc0000010};

	sample_chain(chain, 2, true);
	expect_frame(0, 0, "[nf_tables]", 0x10);
}

TEST(hidden_kernel_frames_are_one)
{
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, STEXT + 1, 0xffffffffc0000010, STEXT + 2,
		PERF_CONTEXT_USER, 0x10020};

	b->options.hide_kernel = true;
	restart();
	sample_chain(chain, 6, true);
	ck_assert_uint_eq(bench_got(b, 0)->n_frames, 2);
	expect_frame(0, 0, "[kernel]", 0);
	expect_frame(0, 1, "/bin/prog", 0x1020);
	ck_assert_int_eq(bench_got(b, 0)->frame[0]->state, FRAME_UNNAMED);
}

TEST(an_address_in_no_mapping_is_unknown)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0xdead, 0x10030};

	sample_chain(chain, 3, false);
	expect_frame(0, 0, "[unknown]", 0xdead);
	ck_assert_int_eq(bench_got(b, 0)->frame[0]->file->kind, FILE_UNKNOWN);
	ck_assert_int_eq(bench_got(b, 0)->frame[0]->state, FRAME_UNNAMED);
	expect_frame(0, 1, "/bin/prog", 0x102f);
}

TEST(guests_and_unknown_modes_are_passed_over)
{
	const uint64_t chain[] = {PERF_CONTEXT_GUEST, 0x1, PERF_CONTEXT_HV, 0x2,
		PERF_CONTEXT_GUEST_KERNEL, 0x3, (uint64_t)-700, 0x4, PERF_CONTEXT_USER, 0x10020};

	sample_chain(chain, 10, false);
	ck_assert_uint_eq(bench_got(b, 0)->n_frames, 1);
	expect_frame(0, 0, "/bin/prog", 0x1020);
}

/* Its cookie is no address: what is sampled in user mode has at least the ip. */
TEST(a_part_that_is_deferred_adds_no_frames, .times = 2)
{
	const uint64_t chain[] = {RECORD_CONTEXT_USER_DEFERRED, _i ? 0x10030 : PERF_CONTEXT_USER};

	sample_chain(chain, 2, false);
	ck_assert_uint_eq(bench_got(b, 0)->n_frames, 1);
	expect_frame(0, 0, "/bin/prog", 0x1020);
}

TEST(a_caller_in_no_code_ends_the_stack)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x10020, 0x10030, 0xdead, 0x10040};

	sample_chain(chain, 5, false);
	const struct attribution *a = bench_got(b, 0);
	ck_assert_uint_eq(a->n_frames, 2);
	ck_assert(a->truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 1);
}

TEST(a_chain_of_markers_alone_falls_back_to_the_ip)
{
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};

	sample_chain(chain, 2, false);
	ck_assert_uint_eq(bench_got(b, 0)->n_frames, 1);
	expect_frame(0, 0, "/bin/prog", 0x1020);
}

TEST(zeros_in_a_chain_are_no_frames)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x10020, 0, 0x10030, 0};

	sample_chain(chain, 5, false);
	ck_assert_uint_eq(bench_got(b, 0)->n_frames, 2);
}

TEST(a_chain_without_a_marker_is_of_the_mode_of_the_sample)
{
	const uint64_t user[] = {0x10020}, kernel[] = {STEXT + 1};

	sample_chain(user, 1, false);
	sample_chain(kernel, 1, true);
	expect_frame(0, 0, "/bin/prog", 0x1020);
	expect_frame(1, 0, "[kernel]", 1);
}

TEST(a_chain_as_deep_as_the_kernel_walks_is_truncated)
{
	uint64_t chain[5] = {PERF_CONTEXT_USER, 0x10020, 0x10030, 0x10040, 0x10050};

	bench_text(b, "proc/sys/kernel/perf_event_max_stack", "4\n");
	restart();
	sample_chain(chain, 4, false);
	ck_assert(!bench_got(b, 0)->truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 0);
	sample_chain(chain, 5, false);
	ck_assert(bench_got(b, 1)->truncated);
	ck_assert_uint_eq(bench_got(b, 1)->n_frames, 4);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 1);
}

static uint32_t deepest;

static void sink_deepest(void *userdata, const struct attribution *a)
{
	(void)userdata;
	deepest = a->n_frames;
}

TEST(a_chain_longer_than_we_keep_is_cut_and_counted_once)
{
	uint64_t chain[STACK_FRAMES_MAX + 10];

	for (size_t i = 0; i < STACK_FRAMES_MAX + 10; i++)
		chain[i] = 0x10020 + i;
	b->options.sink = sink_deepest;
	restart();
	sample_chain(chain, STACK_FRAMES_MAX + 10, false);
	ck_assert_uint_eq(deepest, STACK_FRAMES_MAX);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 1);
}

TEST(without_room_for_frames_the_sample_still_counts)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x10020, 0x10030};
	uint32_t n_frames = b->files.n_frames;

	b->files.n_frames = FRAMES_MAX;
	sample_chain(chain, 3, false);
	b->files.n_frames = n_frames;
	ck_assert_uint_eq(bench_got(b, 0)->n_frames, 0);
	ck_assert_uint_eq(bench_got(b, 0)->count, 1);
	ck_assert_uint_eq(b->lost[0][LOSS_ROOM], 1);
}

TEST(generated_code_keeps_its_addresses)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x7f0010};

	bench_map(b, 10, 0x7f0000, 0x1000, "//anon");
	sample_chain(chain, 2, false);
	expect_frame(0, 0, "/tmp/perf-10.map", 0x7f0010);
}

/* --- who -------------------------------------------------------------------------------------- */

TEST(idle_is_no_share)
{
	struct record r = bench_sample(b, BENCH_LEADER, 2 * SECOND, 0, STEXT);

	r.sample.kernel = true;
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 0);
	ck_assert_uint_eq(b->lost[0][LOSS_TASK], 0);
	ck_assert_uint_eq(b->lost[0][LOSS_OUTSIDE], 0);
}

TEST(a_task_outside_the_pid_namespace_is_counted_and_is_not_idle)
{
	struct record r = bench_sample(b, BENCH_LEADER, 2 * SECOND, 0, 0x10020);

	r.sample.kernel = false; /* idle never is in user mode */
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->lost[0][LOSS_OUTSIDE], 1);
	/* a clock does not fire in idle */
	r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 0, STEXT);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->lost[0][LOSS_OUTSIDE], 2);
	/* interrupted in a system call */
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, STEXT, PERF_CONTEXT_USER, 0x10020};
	r = bench_sample(b, BENCH_LEADER, 2 * SECOND, 0, STEXT);
	r.sample.kernel = true;
	r.sample.callchain = chain;
	r.sample.n_callchain = 4;
	bench_take(b, &r, 1);
	ck_assert_uint_eq(b->lost[1][LOSS_OUTSIDE], 1);
	ck_assert_uint_eq(b->n_sunk, 0);
}

TEST(a_task_that_nobody_knows_is_counted_and_kept)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 999, 0x10020);

	bench_take(b, &r, 1);
	ck_assert_uint_eq(b->lost[1][LOSS_TASK], 1);
	ck_assert_int_eq(bench_got(b, 0)->task->tid, 999);
	ck_assert_str_eq(bench_got(b, 0)->task->comm, "");
	bench_take(b, &r, 1);
	ck_assert_ptr_eq(bench_got(b, 1)->task, bench_got(b, 0)->task);
}

TEST(a_task_that_proc_knows_gets_its_name_there)
{
	struct bench_process p = {.pid = 500,
		.parent = 1,
		.comm = "late",
		.start_ns = SECOND,
		.maps = "20000-21000 r-xp 00000000 08:00 7 /bin/late\n"};
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 500, 0x20010);

	bench_process(b, &p);
	bench_take(b, &r, 0);
	ck_assert_str_eq(bench_got(b, 0)->task->comm, "late");
	ck_assert_uint_eq(bench_got(b, 0)->task->uid, 1000);
	expect_frame(0, 0, "/bin/late", 0x10);
	ck_assert_uint_eq(b->lost[0][LOSS_TASK], 0);
}

TEST(a_tid_with_another_pid_is_another_task)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 77, 0x10020);
	struct task *former = task_find(&b->tasks, 10);

	r.tid = 10;
	bench_take(b, &r, 0);
	ck_assert_ptr_ne(bench_got(b, 0)->task, former);
	ck_assert_int_eq(bench_got(b, 0)->task->pid, 77);
	ck_assert_uint_eq(former->end_ns, 2 * SECOND);
}

TEST(only_wanted_tasks_and_their_children_are_attributed)
{
	b->options.all = false;
	restart();
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 0);

	task_find(&b->tasks, 10)->wanted = true;
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 1);

	bench_fork(b, 2 * SECOND, 20, 20, 10);
	r = bench_sample(b, BENCH_ALONE, 3 * SECOND, 20, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 2);
	/* and unwanted ones lose nothing that anybody asked for */
	r = bench_sample(b, BENCH_ALONE, 3 * SECOND, 999, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 2);
	ck_assert_uint_eq(b->lost[0][LOSS_TASK], 0);
}

TEST(samples_after_the_exit_belong_to_who_exited)
{
	struct record r = bench_sample(b, BENCH_ALONE, 3 * SECOND + 5, 10, 0x10020);

	bench_exit(b, 3 * SECOND, 10, 10);
	bench_take(b, &r, 0);
	ck_assert_str_eq(bench_got(b, 0)->task->comm, "prog");
	expect_frame(0, 0, "/bin/prog", 0x1020); /* its mappings are still known */
	ck_assert_uint_eq(b->lost[0][LOSS_TASK], 0);

	/* reaped: the kernel has no number for it any more */
	r.pid = r.tid = UINT32_MAX;
	bench_take(b, &r, 0);
	ck_assert_ptr_eq(bench_got(b, 1)->task, bench_got(b, 0)->task);
	/* but on a hart where nobody exited it is nobody's */
	bench_take(b, &r, 1);
	ck_assert_uint_eq(b->n_sunk, 2);
}

TEST(a_new_task_of_the_tid_is_not_who_exited)
{
	struct record r = bench_sample(b, BENCH_ALONE, 4 * SECOND, 10, 0x10020);

	bench_exit(b, 3 * SECOND, 10, 10);
	bench_fork(b, 3 * SECOND + 1000, 10, 10, 1);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(bench_got(b, 0)->task->start_ns, 3 * SECOND + 1000);
}

TEST(a_sample_from_before_a_task_began_is_of_the_former)
{
	struct record r = bench_sample(b, BENCH_ALONE, 3 * SECOND + 500, 10, 0x10020);

	bench_exit(b, 3 * SECOND, 10, 10);
	bench_fork(b, 3 * SECOND + 1000, 10, 10, 1);
	bench_take(b, &r, 0);
	ck_assert_str_eq(bench_got(b, 0)->task->comm, "prog");
	ck_assert_uint_eq(bench_got(b, 0)->task->end_ns, 3 * SECOND);
}

TEST(long_after_its_exit_a_tid_is_somebody_else)
{
	struct record r = bench_sample(b, BENCH_ALONE, 300 * SECOND, 10, 0x10020);

	bench_exit(b, 3 * SECOND, 10, 10);
	bench_take(b, &r, 0);
	ck_assert_str_eq(bench_got(b, 0)->task->comm, "");
	ck_assert_uint_eq(b->lost[0][LOSS_TASK], 1);
}

TEST(a_task_that_proc_shows_below_a_wanted_one_is_wanted)
{
	struct bench_process p = {
		.pid = 500, .parent = 10, .comm = "late", .start_ns = SECOND, .maps = ""};
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 500, 0x20010);

	b->options.all = false;
	restart();
	task_find(&b->tasks, 10)->wanted = true;
	bench_process(b, &p);
	bench_thread(b, &p, 501);
	r.tid = 501;
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 1);
	ck_assert_int_eq(bench_got(b, 0)->task->tid, 501);
}

TEST(a_sample_brings_its_cgroup)
{
	struct record r = bench_record(b, RECORD_CGROUP, SECOND, 0);

	r.cgroup.id = 55;
	r.cgroup.path = "/ci/job";
	bench_take(b, &r, 0);
	r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0x10020);
	r.sample.cgroup = 55;
	bench_take(b, &r, 0);
	ck_assert_str_eq(bench_got(b, 0)->cgroup->path, "/ci/job");
	ck_assert_uint_eq(task_find(&b->tasks, 10)->cgroup, 55);
	/* one without a name is not that of before */
	r.sample.cgroup = 56;
	bench_take(b, &r, 0);
	ck_assert_ptr_null(bench_got(b, 1)->cgroup);
	ck_assert_uint_eq(task_find(&b->tasks, 10)->cgroup, 55);
}

/* --- the rest --------------------------------------------------------------------------------- */

TEST(losses_are_counted_on_their_hart)
{
	struct record r = bench_record(b, RECORD_LOST_SAMPLES, SECOND, 0);

	r.lost.n = 3;
	bench_take(b, &r, 1);
	r = bench_record(b, RECORD_THROTTLE, SECOND, 0);
	bench_take(b, &r, 1);
	r = bench_sample(b, 4711, SECOND, 10, 0);
	bench_take(b, &r, 1);
	ck_assert_uint_eq(b->lost[1][LOSS_RING_SAMPLES], 3);
	ck_assert_uint_eq(b->lost[1][LOSS_THROTTLE], 1);
	ck_assert_uint_eq(b->lost[1][LOSS_STREAM], 1);
	ck_assert_uint_eq(b->lost[0][LOSS_STREAM], 0);
	ck_assert_uint_eq(b->n_sunk, 0);
}

TEST(streams_that_do_not_sample_make_no_samples)
{
	struct record r = bench_sample(b, BENCH_SIBLING, 2 * SECOND, 10, 0x10020);

	bench_take(b, &r, 0);
	r = bench_sample(b, BENCH_SIDEBAND, 2 * SECOND, 10, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 0);
}

TEST(records_of_no_use_are_taken_in_peace)
{
	static const enum record_kind kinds[] = {RECORD_UNTHROTTLE, RECORD_KSYMBOL, RECORD_OTHER};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct record r = bench_record(b, kinds[i], SECOND, 10);
		bench_take(b, &r, 0);
	}
	ck_assert_uint_eq(b->n_sunk, 0);
}

TEST(a_hart_that_is_none_is_refused)
{
	struct record r = bench_record(b, RECORD_OTHER, SECOND, 10);

	ck_assert_int_eq(attribute_record(b->attribute, &r, -1), -EINVAL);
	ck_assert_int_eq(attribute_record(b->attribute, &r, 2), -EINVAL);
}
