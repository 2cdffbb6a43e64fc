/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/budget/usage.c and hart_time.c: the kernel's texts, right and wrong. */

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/budget/usage.h"
#include "daemon/session/hart_time.h"
#include "tests/unit/test.h"

#define TEXT_HEAD "cpu  1000 0 0 0 0 0 0 0 0 0\n"

static struct hart_time t[4];

EACH_TEST(.seconds = 60);

TEST(the_times_of_each_hart_are_read)
{
	hart_time_parse(TEXT_HEAD "cpu0 10 2 30 400 5 6 7 8 1 1\ncpu2 1 1 1 1 1 1 1 1 0 0\n"
				  "intr 5 6 7\n",
		t, 4);
	ck_assert(t[0].known && !t[1].known && t[2].known && !t[3].known);
	ck_assert_uint_eq(t[0].user, 12);
	ck_assert_uint_eq(t[0].kernel, 43);
	ck_assert_uint_eq(t[0].total, 468);
}

TEST(texts_that_are_no_stat_leave_harts_unknown)
{
	static const char *const texts[] = {
		"",
		"cpu",
		"cpu0",
		"cpu0 1 2 3",
		"cpu0 1 2 3 4 5 6 7",
		"cpu0 a b c d e f g h\n",
		"cpu0 -1 2 3 4 5 6 7 8\n",
		"cpu9 1 2 3 4 5 6 7 8\n",
		"cpu99999999999999999999999 1 2 3 4 5 6 7 8\n",
		"intr 1 2 3\ncpu0 1 2 3 4 5 6 7 8\n",
		"cpufreq 1 2 3 4 5 6 7 8\n",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		memset(t, 0xff, sizeof(t));
		hart_time_parse(texts[i], t, 4);
		for (int hart = 0; hart < 4; hart++)
			ck_assert_msg(!t[hart].known, "%zu: hart %d", i, hart);
	}
}

TEST(a_difference_needs_two_readings_that_rise)
{
	struct hart_time a = {true, 10, 20, 100}, b = {true, 15, 22, 110}, none = {0};
	struct hart_time d = hart_time_since(&b, &a);
	ck_assert(d.known);
	ck_assert_uint_eq(d.user, 5);
	ck_assert_uint_eq(d.kernel, 2);
	ck_assert_uint_eq(d.total, 10);
	ck_assert(!hart_time_since(&a, &b).known);
	ck_assert(!hart_time_since(&a, &a).known);
	ck_assert(!hart_time_since(&a, &none).known);
	ck_assert(!hart_time_since(&none, &a).known);
}

TEST(this_machine_has_at_least_one_hart)
{
	static struct hart_time all[1024];
	int n = 0;
	ck_assert_int_eq(hart_time_read(all, 1024), 0);
	for (int i = 0; i < 1024; i++)
		n += all[i].known && all[i].total > 0;
	ck_assert_int_ge(n, 1);
}

TEST(kilobytes_are_found_by_their_key)
{
	static const char text[] = "Name:\tVmRSS\nVmHWM:\t   123 kB\nVmRSS:\t     7 kB\n";
	ck_assert_uint_eq(usage_kilobytes(text, "VmRSS"), 7 * 1024);
	ck_assert_uint_eq(usage_kilobytes(text, "VmHWM"), 123 * 1024);
	ck_assert_uint_eq(usage_kilobytes(text, "VmSwap"), 0);
	ck_assert_uint_eq(usage_kilobytes("VmRSS: x kB\n", "VmRSS"), 0);
	ck_assert_uint_eq(usage_kilobytes("VmRSS: 99999999999999999999 kB\n", "VmRSS"), 0);
	ck_assert_uint_eq(usage_kilobytes("VmRSS", "VmRSS"), 0);
	ck_assert_uint_eq(usage_kilobytes("", "VmRSS"), 0);
	ck_assert_uint_eq(usage_kilobytes("\n\n\n", "VmRSS"), 0);
}

static void burn(uint64_t ns)
{
	struct timespec at;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	uint64_t end = (uint64_t)at.tv_sec * SECOND + (uint64_t)at.tv_nsec + ns;
	while ((uint64_t)at.tv_sec * SECOND + (uint64_t)at.tv_nsec < end)
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
}

static const struct usage_process *of(const struct usage_process *p, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (p[i].pid == pid)
			return &p[i];
	ck_abort_msg("no process %d", (int)pid);
	return NULL;
}

TEST(our_own_time_and_memory_are_told)
{
	struct usage_process p[USAGE_PROCESSES_MAX];
	burn(SECOND / 50);
	size_t n = usage_read(NULL, NULL, 0, SECOND, p);
	const struct usage_process *own = of(p, n, getpid());
	ck_assert_str_eq(own->what, "daemon");
	ck_assert_uint_ge(own->cpu_ns, SECOND / 50);
	ck_assert_uint_gt(own->rss_bytes, 100000);
	ck_assert_uint_ge(own->peak_bytes, own->rss_bytes);
	ck_assert_double_lt(own->minute_share, 0); /* nothing is remembered */
}

TEST(the_last_minute_is_what_was_used_since_the_oldest_moment)
{
	static struct usage u;
	struct usage_process p[USAGE_PROCESSES_MAX];
	usage_tick(&u, NULL, 0, 100 * SECOND);
	burn(SECOND / 20);
	size_t n = usage_read(&u, NULL, 0, 101 * SECOND, p);
	double share = of(p, n, getpid())->minute_share;
	ck_assert_double_ge(share, 0.05);
	ck_assert_double_lt(share, 1);
	for (int i = 0; i < 20; i++)
		usage_tick(&u, NULL, 0, (110 + (uint64_t)i * 10) * SECOND);
	ck_assert_uint_eq(u.past[0].at_ns, 240 * SECOND);
	n = usage_read(&u, NULL, 0, 301 * SECOND, p);
	ck_assert_double_lt(of(p, n, getpid())->minute_share, share);
}

TEST(a_child_that_ended_is_in_the_sum)
{
	static struct usage u;
	struct usage_process p[USAGE_PROCESSES_MAX];
	usage_tick(&u, NULL, 0, 100 * SECOND);
	pid_t pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		burn(SECOND / 20);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	size_t n = usage_read(&u, NULL, 0, 101 * SECOND, p);
	const struct usage_process *ended = of(p, n, 0);
	ck_assert_str_eq(ended->what, "ended");
	ck_assert_uint_ge(ended->cpu_ns, SECOND / 25);
	ck_assert_double_ge(ended->minute_share, 0.04);
}
