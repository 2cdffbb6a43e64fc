/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/session/sideband_price.c and daemon/kernel/task_work.c: on made-up differences, on a
 * replayed machine whose tasks have a price, and on the running kernel
 */

#include "daemon/session/sideband_price.h"

#include <errno.h>

#include "tests/unit/sampler_case.h"
#include "tests/unit/test.h"

TEST(a_price_is_the_median_with_its_interval)
{
	double found[SIDEBAND_ROUNDS];
	for (int i = 0; i < SIDEBAND_ROUNDS; i++)
		found[i] = 100.0 * ((i * 8) % SIDEBAND_ROUNDS); /* each once, in no order */
	struct sideband_price p = sideband_price_judge(found);
	ck_assert(p.known);
	ck_assert_double_eq(p.ns, 1000);
	ck_assert_double_eq(p.low_ns, 500);
	ck_assert_double_eq(p.high_ns, 1500);
}

TEST(what_disturbs_some_rounds_does_not_reach_it)
{
	double found[SIDEBAND_ROUNDS];
	for (int i = 0; i < SIDEBAND_ROUNDS; i++)
		found[i] = i < 5 ? 1e9 : i < 10 ? -1e9 : 700;
	struct sideband_price p = sideband_price_judge(found);
	ck_assert_double_eq(p.ns, 700);
	ck_assert_double_eq(p.low_ns, 700);
	ck_assert_double_eq(p.high_ns, 700);
}

static struct replay *machine;
static struct kernel kernel;
static const double added_ns[] = {[TASK_FORK] = 1500, [TASK_EXEC] = 9000, [TASK_MAPPING] = 0};
static unsigned n_work;
static int refusal, n_enabled;

static int count_enabled(void *u, int fd, unsigned long request, uintptr_t arg)
{
	n_enabled += request == PERF_EVENT_IOC_ENABLE;
	n_enabled -= request == PERF_EVENT_IOC_DISABLE;
	return replay_kernel(machine)->event_ioctl(u, fd, request, arg);
}

/* With noise of some tens of ns. */
static int made_work(void *u, int hart, enum task_work what, unsigned n, uint64_t *ret_ns)
{
	(void)u;
	ck_assert_int_eq(hart, 0);
	if (refusal && what == TASK_EXEC)
		return refusal;
	double each_ns = 50000 + (double)(n_work++ % 7) * 20 + (n_enabled > 0 ? added_ns[what] : 0);
	*ret_ns = (uint64_t)(each_ns * n);
	return 0;
}

static int refuse(void *u, struct perf_event_attr *attr, pid_t pid, int hart, int group_fd,
	unsigned long flags)
{
	(void)u, (void)attr, (void)pid, (void)hart, (void)group_fd, (void)flags;
	return -EACCES;
}

static void begin(void)
{
	machine = case_load("trapping");
	kernel = *replay_kernel(machine);
	kernel.task_work = made_work;
	kernel.event_ioctl = count_enabled;
	n_work = 0;
	refusal = n_enabled = 0;
}

static void end(void)
{
	ck_assert_uint_eq(replay_n_events(machine), 0);
	ck_assert_uint_eq(replay_n_maps(machine), 0);
	replay_free(machine);
}

EACH_TEST(.begin = begin, .end = end, .seconds = 60);

TEST(what_the_side_band_adds_is_found)
{
	struct sideband_price p[N_TASK_WORKS] = {0};
	ck_assert_int_eq(sideband_price_measure(&kernel, p), 0);
	ck_assert_double_eq_tol(p[TASK_FORK].ns, 1500, 100);
	ck_assert_double_eq_tol(p[TASK_EXEC].ns, 9000, 100);
	ck_assert_double_gt(p[TASK_FORK].low_ns, 0);
	ck_assert(p[TASK_MAPPING].known);
	ck_assert_double_le(p[TASK_MAPPING].low_ns, 0);
	ck_assert_double_ge(p[TASK_MAPPING].high_ns, 0);
}

TEST(what_is_refused_stays_unknown_and_the_rest_is_measured)
{
	struct sideband_price p[N_TASK_WORKS] = {0};
	refusal = -EPERM;
	ck_assert_int_eq(sideband_price_measure(&kernel, p), 0);
	ck_assert(p[TASK_FORK].known && p[TASK_MAPPING].known);
	ck_assert(!p[TASK_EXEC].known);
}

TEST(a_machine_that_opens_nothing_is_refused)
{
	struct sideband_price p[N_TASK_WORKS] = {0};
	kernel.event_open = refuse;
	ck_assert_int_eq(sideband_price_measure(&kernel, p), SIDEBAND_REFUSED);
	ck_assert(!p[TASK_FORK].known);
}

TEST(the_running_kernel_has_prices)
{
	struct sideband_price p[N_TASK_WORKS] = {0};
	int r = sideband_price_measure(&kernel_real, p);
	if (r != 0) {
		printf("SKIP the_running_kernel_has_prices: no session of the whole system\n");
		return;
	}
	for (int what = 0; what < N_TASK_WORKS; what++) {
		ck_assert(p[what].known);
		ck_assert_double_le(p[what].low_ns, p[what].ns);
		ck_assert_double_le(p[what].ns, p[what].high_ns);
		printf("    %d: %.0f ns, %.0f to %.0f\n", what, p[what].ns, p[what].low_ns,
			p[what].high_ns);
	}
	ck_assert_double_lt(p[TASK_EXEC].ns, 1e6);
}
