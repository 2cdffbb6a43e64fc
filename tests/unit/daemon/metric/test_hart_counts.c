/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What harts count all the time, on replayed machines: rows of each kind of core, what others who use counters
 * leave of them, and what rotation does to them. A system call that takes a group off its counters, or puts it on,
 * takes 1,000 ns for each event that is open.
 */
#include <errno.h>
#include <string.h>

#include "daemon/metric/hart_counts.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define EVENT_NS 1000u
#define RUN_NS 4000000u

static struct core_case c;
static struct kernel kernel;
static uint64_t slow_ns;

static int slow_control(void *u, int fd, unsigned long request, uintptr_t arg)
{
	const struct kernel *k = replay_kernel(c.replay);
	if (replay_attr(c.replay, fd)->type != PERF_TYPE_SOFTWARE)
		slow_ns += EVENT_NS * replay_n_events(c.replay);
	return k->event_ioctl(u, fd, request, arg);
}

static uint64_t slow_now(void *u)
{
	return replay_kernel(c.replay)->now_ns(u) + slow_ns;
}

/* The n-th read fails. */
static int n_reads, broken_read;

static ssize_t broken(void *u, int fd, void *buffer, size_t n)
{
	return ++n_reads == broken_read ? -EIO
					: replay_kernel(c.replay)->event_read(u, fd, buffer, n);
}

static struct hart_counts *begin(const char *machine, const char *groups)
{
	struct event_error error = {""};
	struct hart_counts *counts = NULL;
	c = core_case_of(machine);
	slow_ns = 0;
	broken_read = 0;
	kernel = *replay_kernel(c.replay);
	kernel.event_ioctl = slow_control;
	kernel.now_ns = slow_now;
	kernel.event_read = broken;
	const struct hart_counts_options o = {.kernel = &kernel,
		.machine = &c.machine,
		.cores = c.cores,
		.groups = groups,
		.serial = 1};
	int r = hart_counts_new(&o, &counts, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	return counts;
}

static void end(struct hart_counts *counts)
{
	hart_counts_free(counts);
	core_case_end(&c);
}

/* The row of that event on that hart. */
static const struct hart_count *row_of(const struct hart_counts *counts,
	const struct hart_count_rows *rows, int hart, const char *event)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->row[i].hart == hart &&
			strcmp(hart_counts_events(counts)->event[rows->row[i].event].name, event) ==
				0)
			return &rows->row[i];
	ck_abort_msg("hart %d has no row of %s", hart, event);
	return NULL;
}

static void run_all(void)
{
	for (int hart = 0; hart < c.machine.n_harts; hart++)
		replay_run(c.replay, hart, 100, RUN_NS);
}

TEST(each_kind_of_core_counts_its_own_events)
{
	struct hart_counts *counts = begin("alderlake", "TopdownL1");
	run_all();
	struct hart_count_rows rows = hart_counts_take(counts);
	ck_assert_uint_eq(rows.n, 4 * 6 + 2 * 4);
	ck_assert_uint_eq(row_of(counts, &rows, 0, "slots")->value, 30000 * (RUN_NS / 1000));
	ck_assert_uint_eq(
		row_of(counts, &rows, 3, "topdown-be-bound")->value, 9000 * (RUN_NS / 1000));
	ck_assert_uint_eq(
		row_of(counts, &rows, 4, "topdown_fe_bound.all")->value, 5000 * (RUN_NS / 1000));
	ck_assert_uint_eq(
		row_of(counts, &rows, 5, "cpu_clk_unhalted.core")->value, 4000 * (RUN_NS / 1000));
	end(counts);
}

TEST(a_descriptor_that_cannot_be_read_costs_its_own_row)
{
	struct hart_counts *counts = begin("alderlake", "TopdownL1");
	run_all();
	n_reads = 0;
	broken_read = 5;
	struct hart_count_rows rows = hart_counts_take(counts);
	ck_assert_uint_eq(rows.n, 4 * 6 + 2 * 4 - 1);
	run_all();
	rows = hart_counts_take(counts); /* what was missed is in the next */
	ck_assert_uint_eq(rows.n, 4 * 6 + 2 * 4);
	uint64_t largest_ns = 0;
	for (size_t i = 0; i < rows.n; i++)
		largest_ns =
			rows.row[i].enabled_ns > largest_ns ? rows.row[i].enabled_ns : largest_ns;
	ck_assert_uint_gt(largest_ns, RUN_NS * 3 / 2);
	end(counts);
}

/* Groups that count are not pinned: whoever counts as well takes turns with them, and rows say so. */
TEST(what_others_take_of_the_counters_is_in_the_running_time)
{
	struct hart_counts *counts = begin("zen4", "TopdownL1");
	replay_take_counters(c.replay, 60);
	replay_run(c.replay, 0, 100, RUN_NS);
	struct hart_count_rows rows = hart_counts_take(counts);
	const struct hart_count *ops = row_of(counts, &rows, 0, "ex_ret_ops");
	ck_assert_uint_eq(ops->enabled_ns, RUN_NS);
	ck_assert_uint_gt(ops->running_ns, 0);
	ck_assert_uint_lt(ops->running_ns, RUN_NS * 3 / 4);
	ck_assert_uint_eq(ops->value, ops->running_ns / 1000); /* what it counted, not scaled */
	end(counts);
}

/* Another program's pinned events come first, and may leave none. */
TEST(a_group_that_never_gets_counters_has_no_running_time)
{
	struct hart_counts *counts = begin("zen4", "TopdownL1");
	replay_pin_counters(c.replay, true);
	replay_run(c.replay, 0, 100, RUN_NS);
	struct hart_count_rows rows = hart_counts_take(counts);
	const struct hart_count *ops = row_of(counts, &rows, 0, "ex_ret_ops");
	ck_assert_uint_eq(ops->enabled_ns, RUN_NS);
	ck_assert_uint_eq(ops->running_ns, 0);
	ck_assert_uint_eq(ops->value, 0);
	end(counts);
}

/* Six events of the thread's own group, beside six on each of four harts, are stopped and started. */
TEST(rotations_of_a_pass_are_measured)
{
	struct hart_counts *counts = begin("zen4", "TopdownL1");
	size_t n;
	const struct hart_rotation *rotation = hart_counts_rotations(counts, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(rotation->pass, 0);
	ck_assert_int_eq(hart_set_count(&rotation->harts), 4);
	ck_assert_double_eq_tol(rotation->part, 2.0 * EVENT_NS * (4 * 6 + 6) / 4e6, 1e-9);
	end(counts);
}
