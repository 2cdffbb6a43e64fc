/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/attribute/waiting.c, and of how stack_walk.c asks for names
 *
 * The two sources are built into this program with a namer of their own: one that only notes what
 * it is asked for.
 */

#define namer_name noted_name
#define namer_unwind noted_unwind
#define namer_unwind_now noted_unwind_now

#include "daemon/attribute/waiting.c"

#include "daemon/attribute/stack_walk.c"

#include "tests/unit/attribute_bench.h"
#include "tests/unit/test.h"

#define STEXT UINT64_C(0xffffffff81000000)

struct namer {
	int n_named, n_hurried, n_unwinds;
	uid_t uid; /* in whose name it was asked last */
	int unwind_result;
	struct file *opened;
	struct unwind_job job;
	struct unwind_result by_tables;
	void *ticket[WAITING_MAX + 1];
};

static struct namer namer;
static struct bench *b;

int noted_name(struct namer *n, struct frame *frame, uid_t uid)
{
	n->uid = uid;
	n->n_hurried += frame->state == FRAME_ASKED;
	if (frame->state != FRAME_NEW)
		return 0;
	n->n_named++;
	n->opened = frame->file;
	frame->file->state = FILE_OPENING;
	frame->state = FRAME_ASKED;
	return 0;
}

int noted_unwind(struct namer *n, const struct unwind_job *job)
{
	if (n->unwind_result)
		return n->unwind_result;
	n->job = *job;
	n->ticket[n->n_unwinds++] = job->ticket;
	return 0;
}

/* It has tables only where a test gives their result. */
bool noted_unwind_now(
	struct namer *n, const struct unwind_job *job, struct unwind_result *ret_result)
{
	(void)job;
	if (n->by_tables.n_frames == 0)
		return false;
	*ret_result = n->by_tables;
	return true;
}

static void setup(void)
{
	namer = (struct namer){0};
	b = bench_new();
	b->options.namer = &namer;
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

static const uint8_t stack[64];
static uint64_t regs[5]; /* those of BENCH_REGS, among them the ip of each machine that we know */

/* A sample with a copied stack, taken in user code at ip. */
static struct record stack_sample(uint64_t ip)
{
	struct record r = bench_sample(b, BENCH_STACKS, 2 * SECOND, 10, ip);

	memset(regs, 0x55, sizeof(regs));
	if (REGISTER_IP >= 0)
		regs[__builtin_popcountll(BENCH_REGS & ((UINT64_C(1) << REGISTER_IP) - 1))] = ip;
	r.sample.regs_abi = 2;
	r.sample.regs = regs;
	r.sample.stack = stack;
	r.sample.n_stack = sizeof(stack);
	return r;
}

static void take_stack(uint64_t ip)
{
	struct record r = stack_sample(ip);

	bench_take(b, &r, 0);
}

static struct file *prog(void)
{
	return space_find(task_space(task_find(&b->tasks, 10)), 0x10000)->file;
}

static void answer(void *ticket, size_t n_frames, bool truncated, bool failed)
{
	static struct unwind_result result;

	result.ticket = ticket;
	result.n_frames = n_frames;
	result.truncated = result.deep = truncated;
	result.failed = failed;
	for (size_t i = 0; i < n_frames; i++) {
		result.frame[i].file = i == 1 ? NULL : prog();
		result.frame[i].offset = 0x1020 + i;
	}
	attribute_unwound(b->attribute, &result);
}

/* --- names ------------------------------------------------------------------------------------ */

TEST(a_new_frame_is_named_once)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0x10020);

	ck_assert_int_eq(namer.n_named, 0); /* not for a mapping */
	bench_take(b, &r, 0);
	bench_take(b, &r, 0);
	ck_assert_int_eq(namer.n_named, 1);
	ck_assert_ptr_eq(namer.opened, prog());
	ck_assert_uint_eq(prog()->map_start, 0x10000);
}

TEST(a_file_is_opened_through_who_runs_in_it)
{
	bench_fork(b, SECOND + 2, 20, 20, 10);
	bench_exit(b, SECOND + 3, 10, 10);
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 20, 0x10020);
	bench_take(b, &r, 0);
	ck_assert_int_eq(namer.opened->pid, 20);
	ck_assert_uint_eq(namer.opened->pid_start_ns, SECOND + 2);
}

/* The one that asked first may have to wait for long. */
TEST(a_frame_that_waits_is_wanted_by_the_next_user_too)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, STEXT + 5);

	/* the kernel is the same for all: files of programs are each user's own */
	r.sample.kernel = true;
	task_find(&b->tasks, 10)->account = 7;
	bench_take(b, &r, 0);
	ck_assert_uint_eq(namer.uid, 7);
	bench_fork(b, SECOND + 2, 20, 20, 1);
	task_find(&b->tasks, 20)->account = 8;
	r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 20, STEXT + 5);
	r.sample.kernel = true;
	bench_take(b, &r, 0);
	ck_assert_int_eq(namer.n_named, 1);
	ck_assert_int_eq(namer.n_hurried, 1);
	ck_assert_uint_eq(namer.uid, 8);
}

TEST(nothing_is_asked_about_the_unknown_and_the_hidden)
{
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0xdead);

	bench_take(b, &r, 0);
	attribute_free(b->attribute);
	b->options.hide_kernel = true;
	bench_start(b);
	r.sample.ip = STEXT + 5;
	r.sample.kernel = true;
	bench_take(b, &r, 0);
	ck_assert_uint_eq(b->n_sunk, 2);
	ck_assert_int_eq(namer.n_named, 0);
}

TEST(an_unwanted_sample_asks_for_nothing)
{
	attribute_free(b->attribute);
	b->options.all = false;
	bench_start(b);
	struct record r = bench_sample(b, BENCH_ALONE, 2 * SECOND, 10, 0x10020);
	bench_take(b, &r, 0);
	take_stack(0x10020);
	ck_assert_int_eq(namer.n_named, 0);
	ck_assert_int_eq(namer.n_unwinds, 0);
}

/* --- stacks ----------------------------------------------------------------------------------- */

TEST(a_copied_stack_waits_and_comes_whole)
{
	take_stack(0x10020);
	ck_assert_uint_eq(b->n_sunk, 0);
	ck_assert_uint_eq(attribute_waiting(b->attribute), 1);
	ck_assert_ptr_eq(namer.job.stack, stack);
	ck_assert_ptr_eq(namer.job.space, task_space(task_find(&b->tasks, 10)));
	ck_assert_uint_eq(namer.job.regs_mask, BENCH_REGS);
	ck_assert_int_eq(namer.job.pid, 10);

	answer(namer.ticket[0], 3, false, false);
	ck_assert_uint_eq(attribute_waiting(b->attribute), 0);
	const struct attribution *a = bench_got(b, 0);
	ck_assert_uint_eq(a->n_frames, 3);
	ck_assert_uint_eq(a->frame[0]->offset, 0x1020);
	ck_assert_int_eq(a->frame[1]->file->kind, FILE_UNKNOWN);
	ck_assert_uint_eq(a->frame[2]->offset, 0x1022);
	ck_assert_uint_eq(a->count, 1);
	ck_assert(!a->truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_UNWIND], 0);
}

TEST(kernel_frames_stand_before_the_unwound)
{
	const uint64_t chain[] = {
		PERF_CONTEXT_KERNEL, STEXT + 0x20, STEXT + 0x30, PERF_CONTEXT_USER, 0x10020};
	struct record r = stack_sample(0x10020);

	r.sample.kernel = true;
	r.sample.callchain = chain;
	r.sample.n_callchain = 5;
	bench_take(b, &r, 0);
	answer(namer.ticket[0], 1, false, false);
	const struct attribution *a = bench_got(b, 0);
	ck_assert_uint_eq(a->n_frames, 3);
	ck_assert_uint_eq(a->frame[1]->offset, 0x2f);
	ck_assert_uint_eq(a->frame[2]->offset, 0x1020);
}

/* --- stacks on which the program changed to another ------------------------------------------- */

/* A sample whose walk by tables ends at its leaf, with this chain of the kernel. */
static const struct attribution *ends_at_leaf(const uint64_t *chain, uint64_t n)
{
	struct record r = stack_sample(0x10020);

	namer.by_tables = (struct unwind_result){.n_frames = 1, .truncated = true};
	namer.by_tables.frame[0].file = prog();
	namer.by_tables.frame[0].offset = 0x1020;
	namer.by_tables.frame[0].address = 0x10020;
	r.sample.callchain = chain;
	r.sample.n_callchain = n;
	bench_take(b, &r, 0);
	return bench_got(b, 0);
}

static void name_start(uint64_t offset)
{
	struct frame *frame;

	ck_assert_int_eq(frame_get(&b->files, prog(), offset, &frame), 0);
	frame->place = calloc(1, sizeof(*frame->place));
	frame->place->function = "runtime.goexit.abi0";
	frame->n_places = 1;
	frame->state = FRAME_NAMED;
}

TEST(a_walk_that_ends_early_goes_on_by_the_kernels_chain)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x10020, 0x10031, 0x10041};

	name_start(0x1040);
	const struct attribution *a = ends_at_leaf(chain, 4);
	ck_assert_uint_eq(a->n_frames, 3);
	ck_assert_uint_eq(a->frame[1]->offset, 0x1030);
	ck_assert_uint_eq(a->frame[2]->offset, 0x1040);
	ck_assert(!a->truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 0);
}

TEST(a_chain_that_leads_to_no_start_is_not_taken)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x10020, 0x10031, 0x10041, 3};

	const struct attribution *a = ends_at_leaf(chain, 5);
	ck_assert_uint_eq(a->n_frames, 1);
	ck_assert(a->truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 1);
}

TEST(a_chain_of_another_place_is_not_taken)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x10024, 0x10031, 0x10041};

	name_start(0x1040);
	ck_assert_uint_eq(ends_at_leaf(chain, 4)->n_frames, 1);
	ck_assert(bench_got(b, 0)->truncated);
}

TEST(a_walk_that_ends_at_a_start_is_whole)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x10020};

	name_start(0x1020);
	/* not as the leaf alone: main is a start wherever it is */
	ck_assert(!ends_at_leaf(chain, 2)->truncated);
}

TEST(counts_stay_with_the_sample_that_waits)
{
	struct record r = stack_sample(0x10020);

	r.stream = stream_table_find(&b->streams, BENCH_LEADER);
	r.sample.n_read = 1;
	r.sample.read[0].id = BENCH_LEADER;
	bench_take(b, &r, 0);
	r.sample.read[0].value = 70;
	bench_take(b, &r, 0);
	answer(namer.ticket[1], 1, false, false);
	ck_assert_uint_eq(bench_counted(b, 10, 0), 70);
	answer(namer.ticket[0], 1, false, false);
	ck_assert_uint_eq(bench_counted(b, 10, 0), 70);
}

static void expect_leaf(size_t i, uint64_t n_lost)
{
	const struct attribution *a = bench_got(b, i);

	ck_assert_uint_eq(a->n_frames, 1);
	ck_assert_str_eq(a->frame[0]->file->path, "/bin/prog");
	ck_assert_uint_eq(a->frame[0]->offset, 0x1020);
	ck_assert_uint_eq(a->count, 1);
	ck_assert(a->truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_UNWIND], n_lost);
}

TEST(a_stack_that_fails_leaves_the_leaf)
{
	take_stack(0x10020);
	/* as it was mapped at the time of the sample */
	bench_comm(b, 3 * SECOND, 10, "other", true);
	bench_map(b, 10, 0x10000, 0x1000, "/bin/other");
	struct unwind_result r = {.ticket = namer.ticket[0], .failed = true};
	attribute_unwound(b->attribute, &r);
	expect_leaf(0, 1);
}

TEST(an_answer_without_frames_has_failed)
{
	take_stack(0x10020);
	answer(namer.ticket[0], 0, false, false);
	expect_leaf(0, 1);
}

TEST(the_leaf_of_a_kernel_sample_is_in_the_registers)
{
	struct record r = stack_sample(0x10020);

	if (REGISTER_IP < 0) {
		puts("SKIP the_leaf_of_a_kernel_sample_is_in_the_registers: unknown machine");
		return;
	}
	r.sample.ip = STEXT + 0x20;
	r.sample.kernel = true;
	bench_take(b, &r, 0);
	answer(namer.ticket[0], 0, false, true);
	const struct attribution *a = bench_got(b, 0);
	ck_assert_uint_eq(a->n_frames, 2);
	ck_assert_str_eq(a->frame[0]->file->path, "[kernel]");
	ck_assert_uint_eq(a->frame[1]->offset, 0x1020);
}

TEST(a_full_unwinder_leaves_the_leaf)
{
	namer.unwind_result = NAMER_FULL;
	take_stack(0x10020);
	expect_leaf(0, 1);
	ck_assert_uint_eq(attribute_waiting(b->attribute), 0);
}

TEST(without_a_namer_the_leaf_is_left)
{
	attribute_free(b->attribute);
	b->options.namer = NULL;
	bench_start(b);
	take_stack(0x10020);
	expect_leaf(0, 1);
}

TEST(an_error_of_ours_is_forwarded_and_nothing_waits)
{
	struct record r = stack_sample(0x10020);

	namer.unwind_result = -ENOMEM;
	ck_assert_int_eq(attribute_record(b->attribute, &r, 0), -ENOMEM);
	ck_assert_uint_eq(attribute_waiting(b->attribute), 0);
}

TEST(a_stack_that_ends_early_is_counted)
{
	take_stack(0x10020);
	answer(namer.ticket[0], 2, true, false);
	ck_assert(bench_got(b, 0)->truncated);
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 1);
	ck_assert_uint_eq(b->lost[0][LOSS_DEEP], 0);
	ck_assert_uint_eq(b->lost[0][LOSS_UNWIND], 0);
}

TEST(a_stack_that_ends_with_its_copy_is_counted_as_deep)
{
	struct record r = stack_sample(0x10020);

	r.sample.stack_fills = true;
	bench_take(b, &r, 0);
	bench_take(b, &r, 0);
	bench_take(b, &r, 0);
	answer(namer.ticket[0], 2, true, false);
	answer(namer.ticket[1], 2, false, false);
	answer(namer.ticket[2], 0, true, true); /* nobody walked it */
	ck_assert_uint_eq(b->lost[0][LOSS_STACK_TRUNCATED], 1);
	ck_assert_uint_eq(b->lost[0][LOSS_DEEP], 1);
}

static uint32_t n_seen, n_wanted;

static bool see_leaf(void *userdata, const struct attribution *a)
{
	ck_assert_ptr_eq(userdata, b);
	ck_assert_uint_eq(a->n_frames, 1);
	ck_assert(a->truncated);
	return ++n_seen < n_wanted;
}

TEST(samples_that_wait_are_seen_with_their_leaf_and_wait_on)
{
	take_stack(0x10020);
	take_stack(0x10020);
	n_seen = 0;
	n_wanted = 10;
	ck_assert(attribute_each_waiting(b->attribute, UINT64_MAX, see_leaf, b));
	ck_assert_uint_eq(n_seen, 2);
	n_seen = 0;
	n_wanted = 1;
	ck_assert(!attribute_each_waiting(b->attribute, UINT64_MAX, see_leaf, b));
	ck_assert_uint_eq(n_seen, 1);
	ck_assert(attribute_each_waiting(b->attribute, 0, see_leaf, b)); /* before the first */
	ck_assert_uint_eq(n_seen, 1);
	ck_assert_uint_eq(b->n_sunk, 0);
	answer(namer.ticket[0], 3, false, false);
	answer(namer.ticket[1], 3, false, false);
	ck_assert_uint_eq(b->n_sunk, 2);
	ck_assert(attribute_each_waiting(b->attribute, UINT64_MAX, see_leaf, b));
	ck_assert_uint_eq(n_seen, 1);
}

TEST(tickets_that_nobody_gave_out_are_ignored)
{
	take_stack(0x10020);
	answer(NULL, 1, false, false);
	answer((void *)(uintptr_t)4711, 1, false, false);
	answer(namer.ticket[0], 1, false, false);
	answer(namer.ticket[0], 1, false, false);
	ck_assert_uint_eq(b->n_sunk, 1);
}

static uint64_t n_leaves;

static void sink_counting(void *userdata, const struct attribution *a)
{
	(void)userdata;
	n_leaves += a->n_frames == 1;
}

TEST(no_more_wait_than_the_limit)
{
	attribute_free(b->attribute);
	b->options.sink = sink_counting;
	bench_start(b);
	n_leaves = 0;
	for (int i = 0; i < WAITING_MAX; i++)
		take_stack(0x10020);
	ck_assert_uint_eq(n_leaves, 0);
	take_stack(0x10020);
	ck_assert_uint_eq(n_leaves, 1);
	ck_assert_uint_eq(attribute_waiting(b->attribute), WAITING_MAX);
	ck_assert_uint_eq(b->lost[0][LOSS_UNWIND], 1);
}

TEST(registers_without_a_stack_are_no_copied_stack)
{
	struct record r = stack_sample(0x10020);

	r.sample.n_stack = 0;
	bench_take(b, &r, 0);
	r = stack_sample(0x10020);
	r.sample.regs_abi = 0;
	bench_take(b, &r, 0);
	ck_assert_int_eq(namer.n_unwinds, 0);
	ck_assert_uint_eq(b->n_sunk, 2);
	ck_assert_uint_eq(bench_got(b, 1)->n_frames, 1);
}

TEST(a_process_without_mappings_is_not_unwound)
{
	bench_comm(b, 3 * SECOND, 10, "new", true);
	take_stack(0x10020);
	ck_assert_int_eq(namer.n_unwinds, 0);
	ck_assert_uint_eq(b->n_sunk, 1);
}

TEST(what_still_waits_is_freed_with_the_station)
{
	take_stack(0x10020);
	b->attribute = attribute_free(b->attribute);
	ck_assert_ptr_null(b->attribute);
	ck_assert_uint_eq(b->n_sunk, 0);
}
