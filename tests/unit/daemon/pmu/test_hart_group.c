/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Counters that share the groups of a replayed machine's harts: each has what was counted since its own
 * start, and what is open is open once.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/count/counter.h"
#include "daemon/metric/hart_counts.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define MSEC 1000000u
#define READ_NS 1000u

/* cycles 1000 and instructions 500 a microsecond; r11 10; r12 opens nowhere, r13 in no group; a group with r14
 * gets no counter; r15 is in use on hart 1. */
static struct core_case machine(void)
{
	struct core_case c = core_case_made(
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/possible\":\"0-1\\n\","
		"\"/sys/devices/system/cpu/online\":\"0-1\\n\","
		"\"/proc/sys/kernel/perf_event_paranoid\":\"-1\\n\","
		"\"/proc/100/task/100/comm\":\"main\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"rules\":["
		"{\"type\":\"hardware\",\"config\":0,\"per_us\":1000},"
		"{\"type\":\"hardware\",\"config\":1,\"per_us\":500},"
		"{\"type\":\"software\",\"per_us\":1},"
		"{\"type\":\"raw\",\"config\":\"0x12\",\"errno\":\"EINVAL\"},"
		"{\"type\":\"raw\",\"config\":\"0x13\",\"leader\":false,\"errno\":\"EINVAL\"},"
		"{\"type\":\"raw\",\"config\":\"0x14\",\"starves\":true},"
		"{\"type\":\"raw\",\"config\":\"0x15\",\"harts\":\"1\",\"errno\":\"EBUSY\"},"
		"{\"type\":\"raw\",\"per_us\":10}]}",
		NULL);
	replay_set_read_cost(c.replay, READ_NS);
	return c;
}

static struct counter *begin(const struct core_case *c, const char *events)
{
	struct event_list list = core_case_events(c, events);
	struct event_error error = {""};
	struct counter *counter = NULL;
	const struct counter_options o = {.events = &list, .cores = c->cores};
	int r = counter_new(c->kernel, &c->machine, &o, &counter, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	ck_assert_int_eq(counter_start(counter), 0);
	return counter;
}

static const struct counter_value *value(struct counter *c, int event)
{
	ck_assert_int_eq(counter_read(c), 0);
	return &c->value[event];
}

static unsigned n_open(const struct core_case *c)
{
	return replay_n_events(c->replay);
}

TEST(the_same_events_are_open_once_and_each_counter_has_its_own_span)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,instructions}");
	ck_assert_uint_eq(n_open(&c), 4);
	replay_run(c.replay, 0, 100, 100 * MSEC);
	struct counter *b = begin(&c, "{cycles,instructions}");
	ck_assert_uint_eq(n_open(&c), 4);
	replay_run(c.replay, 1, 100, 50 * MSEC);
	ck_assert_uint_eq(value(a, 0)->value, 150000000);
	ck_assert_uint_eq(value(a, 1)->value, 75000000);
	ck_assert_uint_eq(value(b, 0)->value, 50000000);
	ck_assert_uint_eq(value(b, 1)->value, 25000000);
	ck_assert(b->value[0].scaled == 50000000 && b->value[1].scaled == 25000000);
	/* of two harts, and of some reads at either end */
	uint64_t enabled_ns = b->value[0].enabled_ns;
	ck_assert(enabled_ns >= 100 * MSEC && enabled_ns < 100 * MSEC + 100 * READ_NS);
	ck_assert_uint_eq(b->value[0].running_ns, enabled_ns);
	counter_free(a);
	counter_free(b);
	core_case_end(&c);
}

TEST(readings_go_on_from_the_start_of_each_counter)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "cycles");
	replay_run(c.replay, 0, 100, 7 * MSEC);
	struct counter *b = begin(&c, "cycles");
	for (uint64_t ms = 1; ms <= 5; ms++) {
		replay_run(c.replay, 0, 100, MSEC);
		ck_assert_uint_eq(value(b, 0)->value, ms * 1000000);
		ck_assert_uint_eq(value(a, 0)->value, (7 + ms) * 1000000);
	}
	counter_free(b);
	counter_free(a);
	core_case_end(&c);
}

TEST(what_was_scaled_before_a_start_scales_nothing_after_it)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,instructions}");
	replay_take_counters(c.replay, 50);
	replay_run(c.replay, 0, 100, 100 * MSEC);
	replay_take_counters(c.replay, 0);
	struct counter *b = begin(&c, "{cycles,instructions}");
	replay_run(c.replay, 0, 100, 10 * MSEC);
	ck_assert(value(b, 0)->scaled == 10000000 &&
		  b->value[0].running_ns == b->value[0].enabled_ns);
	ck_assert(value(a, 0)->running_ns < a->value[0].enabled_ns);
	counter_free(a);
	counter_free(b);
	core_case_end(&c);
}

TEST(some_events_of_an_open_group_are_read_there)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,instructions,r11}");
	struct counter *b = begin(&c, "instructions,{r11,cycles}");
	size_t n_harts;
	ck_assert_uint_eq(n_open(&c), 6);
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_uint_eq(value(b, 0)->value, 500000);
	ck_assert_uint_eq(value(b, 1)->value, 10000);
	ck_assert_uint_eq(value(b, 2)->value, 1000000);
	/* once, however many of its events are used */
	ck_assert_uint_eq(counter_n_others(a, 0, &n_harts), 1);
	ck_assert_uint_eq(n_harts, 2);
	ck_assert_uint_eq(counter_n_others(b, 2, &n_harts), 1);
	counter_free(b);
	ck_assert_uint_eq(counter_n_others(a, 0, &n_harts), 0);
	ck_assert_uint_eq(n_harts, 0);
	counter_free(a);
	core_case_end(&c);
}

TEST(other_events_other_modes_and_more_events_have_groups_of_their_own)
{
	static const struct {
		const char *events;
		unsigned n_more; /* descriptors */
	} wishes[] = {{"r11", 2}, {"cycles:u", 2}, {"{cycles,instructions,r11}", 6},
		{"{cycles:u,instructions}", 4}, {"cycles,r11", 2}, {"page-faults", 2}};
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,instructions}");
	for (size_t i = 0; i < sizeof(wishes) / sizeof(wishes[0]); i++) {
		struct counter *b = begin(&c, wishes[i].events);
		ck_assert_msg(
			n_open(&c) == 4 + wishes[i].n_more, "%s: %u", wishes[i].events, n_open(&c));
		counter_free(b);
		ck_assert_uint_eq(n_open(&c), 4);
	}
	counter_free(a);
	core_case_end(&c);
}

TEST(tasks_have_groups_of_their_own)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "cycles"), *b = NULL;
	struct event_list list = core_case_events(&c, "cycles");
	struct event_error error = {""};
	const pid_t pid = 100;
	const struct counter_options o = {
		.events = &list, .cores = c.cores, .pids = &pid, .n_pids = 1};
	ck_assert_int_eq(counter_new(c.kernel, &c.machine, &o, &b, &error), 0);
	ck_assert_uint_eq(n_open(&c), 3);
	ck_assert_uint_eq(counter_n_fds(b), 1);
	counter_free(b);
	counter_free(a);
	core_case_end(&c);
}

TEST(a_counter_that_has_not_started_is_not_shared)
{
	struct core_case c = machine();
	struct event_list list = core_case_events(&c, "cycles");
	struct event_error error = {""};
	const struct counter_options o = {.events = &list, .cores = c.cores};
	struct counter *a = NULL;
	ck_assert_int_eq(counter_new(c.kernel, &c.machine, &o, &a, &error), 0);
	struct counter *b = begin(&c, "cycles");
	ck_assert_uint_eq(n_open(&c), 4);
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_uint_eq(value(b, 0)->value, 1000000);
	ck_assert_uint_eq(value(a, 0)->value, 0);
	counter_free(a);
	counter_free(b);
	core_case_end(&c);
}

/* --- who pays, and what stays ----------------------------------------------------------------- */

TEST(each_counter_is_charged_for_all_that_is_open_for_it)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,instructions,r11}");
	struct counter *b = begin(&c, "instructions");
	struct counter *d = begin(&c, "r11,cycles");
	ck_assert_uint_eq(counter_n_fds(a), 6);
	ck_assert_uint_eq(counter_n_fds(b), 4); /* its own, and the leader on each hart */
	ck_assert_uint_eq(counter_n_fds(d), 4);
	counter_free(a);
	ck_assert_uint_eq(counter_n_fds(b), 4);
	ck_assert_uint_eq(n_open(&c), 6);
	counter_free(d);
	ck_assert_uint_eq(counter_n_fds(b), 4);
	ck_assert_uint_eq(n_open(&c), 4);
	counter_free(b);
	core_case_end(&c);
}

TEST(what_nobody_reads_is_closed_and_the_leader_last)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,instructions,r11}");
	replay_run(c.replay, 0, 100, MSEC);
	struct counter *b = begin(&c, "instructions");
	replay_run(c.replay, 0, 100, 2 * MSEC);
	counter_free(a);
	ck_assert_uint_eq(n_open(&c), 4);
	replay_run(c.replay, 0, 100, 3 * MSEC);
	ck_assert_uint_eq(value(b, 0)->value, 2500000);
	/* what was closed is not found there */
	struct counter *d = begin(&c, "{instructions,r11}");
	ck_assert_uint_eq(n_open(&c), 8);
	counter_free(d);
	struct counter *e = begin(&c, "{cycles,instructions}");
	ck_assert_uint_eq(n_open(&c), 4);
	counter_free(b);
	ck_assert_uint_eq(n_open(&c), 4);
	replay_run(c.replay, 1, 100, MSEC);
	ck_assert_uint_eq(value(e, 1)->value, 500000);
	counter_free(e);
	core_case_end(&c);
}

/* --- refusals --------------------------------------------------------------------------------- */

TEST(a_refused_member_is_tried_again_and_the_others_are_shared)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,r12,instructions}");
	struct counter *b = begin(&c, "{cycles,r12,instructions}");
	ck_assert_int_eq(a->value[1].error, EINVAL);
	ck_assert_int_eq(b->value[1].error, EINVAL);
	ck_assert_uint_eq(n_open(&c), 4);
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_uint_eq(value(b, 2)->value, 500000);
	counter_free(a);
	ck_assert_uint_eq(value(b, 0)->value, 1000000);
	counter_free(b);
	core_case_end(&c);
}

TEST(an_event_that_one_hart_refuses_is_an_error_and_leaves_the_others_open)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,r15}");
	ck_assert_int_eq(a->value[1].error, EBUSY);
	ck_assert_uint_eq(n_open(&c), 2);
	struct counter *b = begin(&c, "{cycles,r15}");
	ck_assert_int_eq(b->value[1].error, EBUSY);
	ck_assert_uint_eq(n_open(&c), 2);
	ck_assert_uint_eq(counter_n_fds(b), 2);
	counter_free(a);
	counter_free(b);
	core_case_end(&c);
}

/* It opens outside its group, so only who wants all of that group has nothing to win by a group of its own. */
TEST(events_that_are_not_counted_together_are_shared_as_a_whole_or_one_by_one)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,instructions,r13}");
	ck_assert_uint_eq(n_open(&c), 6);
	struct counter *whole = begin(&c, "{cycles,instructions,r13}");
	struct counter *one = begin(&c, "r13");
	ck_assert_uint_eq(n_open(&c), 6);
	struct counter *some = begin(&c, "{instructions,r13}");
	ck_assert_uint_eq(n_open(&c), 10);
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_uint_eq(value(whole, 2)->value, 10000);
	ck_assert_uint_eq(value(one, 0)->value, 10000);
	ck_assert_uint_eq(value(some, 1)->value, 10000);
	counter_free(a);
	counter_free(whole);
	counter_free(some);
	/* what it leaves is no leader of others */
	ck_assert_uint_eq(n_open(&c), 2);
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_uint_eq(value(one, 0)->value, 20000);
	counter_free(one);
	core_case_end(&c);
}

/* Alone it is counted all of the time, whoever else counts what. */
TEST(what_needs_no_counter_does_not_wait_for_one)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,page-faults,context-switches}");
	struct counter *b = begin(&c, "page-faults");
	ck_assert_uint_eq(n_open(&c), 8);
	struct counter *d = begin(&c, "{page-faults,cycles}");
	struct counter *e = begin(&c, "page-faults");
	ck_assert_uint_eq(n_open(&c), 8);
	replay_take_counters(c.replay, 50);
	replay_run(c.replay, 0, 100, 10 * MSEC);
	ck_assert_uint_eq(value(b, 0)->value, 10000);
	ck_assert(value(e, 0)->running_ns == e->value[0].enabled_ns);
	ck_assert(value(d, 0)->running_ns < d->value[0].enabled_ns);
	counter_free(a);
	counter_free(b);
	counter_free(d);
	counter_free(e);
	core_case_end(&c);
}

TEST(groups_come_and_go_in_any_order)
{
	static const char *const wishes[] = {"r21", "r22", "r23", "r24", "r25"};
	static const size_t orders[][5] = {
		{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 3, 0, 4, 2}};
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		struct core_case c = machine();
		struct counter *counter[5];
		for (size_t j = 0; j < 5; j++)
			counter[j] = begin(&c, wishes[j]);
		for (size_t j = 0; j < 5; j++) {
			counter_free(counter[orders[i][j]]);
			for (size_t k = j + 1; k < 5; k++) {
				unsigned before = n_open(&c);
				struct counter *again = begin(&c, wishes[orders[i][k]]);
				ck_assert_uint_eq(n_open(&c), before);
				counter_free(again);
			}
		}
		core_case_end(&c);
	}
}

/* --- groups that count no more ---------------------------------------------------------------- */

TEST(a_group_that_gets_no_counters_is_not_joined)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "{cycles,r14}");
	replay_run(c.replay, 0, 100, 200 * MSEC);
	struct counter *b = begin(&c, "cycles");
	ck_assert_uint_eq(n_open(&c), 6);
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_uint_eq(value(b, 0)->value, 1000000);
	ck_assert_uint_eq(value(a, 0)->running_ns, 0);
	counter_free(a);
	counter_free(b);
	core_case_end(&c);
}

TEST(a_group_that_lost_its_counters_is_not_joined_until_it_has_them_again)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "cycles");
	replay_run(c.replay, 0, 100, 200 * MSEC);
	ck_assert(value(a, 0)->running_ns > 0);
	replay_take_counters(c.replay, 100);
	replay_run(c.replay, 0, 100, 200 * MSEC);
	struct counter *b = begin(&c, "cycles");
	ck_assert_uint_eq(n_open(&c), 4);
	counter_free(b);
	replay_take_counters(c.replay, 0);
	replay_run(c.replay, 0, 100, 200 * MSEC);
	ck_assert_int_eq(counter_read(a), 0);
	b = begin(&c, "cycles");
	ck_assert_uint_eq(n_open(&c), 2);
	counter_free(b);
	counter_free(a);
	core_case_end(&c);
}

TEST(some_events_of_a_group_that_mostly_waits_are_counted_apart)
{
	struct core_case c = machine();
	replay_take_counters(c.replay, 80);
	struct counter *a = begin(&c, "{cycles,r11}");
	replay_run(c.replay, 0, 100, 200 * MSEC);
	const size_t before = n_open(&c);
	struct counter *b = begin(&c, "cycles");
	ck_assert_uint_gt(n_open(&c), before);
	counter_free(b);
	/* all of them wait together */
	b = begin(&c, "{cycles,r11}");
	ck_assert_uint_eq(n_open(&c), before);
	counter_free(b);
	replay_take_counters(c.replay, 0);
	replay_run(c.replay, 0, 100, 200 * MSEC);
	counter_read(a);
	b = begin(&c, "cycles");
	ck_assert_uint_eq(n_open(&c), before);
	counter_free(b);
	counter_free(a);
	core_case_end(&c);
}

TEST(the_group_with_the_most_time_on_the_counters_is_joined)
{
	struct core_case c = machine();
	replay_take_counters(c.replay, 50);
	struct counter *a = begin(&c, "cycles");
	replay_run(c.replay, 0, 100, 200 * MSEC);
	struct counter *b = begin(&c, "{cycles,r11}");
	replay_take_counters(c.replay, 0);
	replay_run(c.replay, 0, 100, 200 * MSEC);
	counter_read(b); /* of a, the time before was seen last */
	struct counter *d = begin(&c, "cycles");
	size_t n_harts;
	ck_assert_uint_eq(counter_n_others(b, 0, &n_harts), 1);
	ck_assert_uint_eq(counter_n_others(a, 0, &n_harts), 0);
	counter_free(a);
	counter_free(b);
	counter_free(d);
	core_case_end(&c);
}

TEST(a_hart_that_was_offline_has_a_new_group)
{
	struct core_case c = machine();
	struct counter *a = begin(&c, "cycles");
	replay_run(c.replay, 1, 100, MSEC);
	replay_set_text(c.replay, "/sys/devices/system/cpu/online", "0\n");
	replay_set_text(c.replay, "/sys/devices/system/cpu/online", "0-1\n");
	struct counter *b = begin(&c, "cycles");
	ck_assert_uint_eq(n_open(&c), 3);
	struct counter *d = begin(&c, "cycles");
	ck_assert_uint_eq(n_open(&c), 3);
	replay_run(c.replay, 1, 100, MSEC);
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_uint_eq(value(a, 0)->value, 2000000); /* hart 1 before, hart 0 after */
	ck_assert_uint_eq(value(b, 0)->value, 2000000);
	ck_assert_uint_eq(value(d, 0)->value, 2000000);
	counter_free(a);
	counter_free(b);
	counter_free(d);
	core_case_end(&c);
}

/* --- kinds of core, and counts over time ------------------------------------------------------ */

TEST(a_name_with_two_codes_is_shared_on_the_hart_where_the_code_is_open)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	replay_set_read_cost(c.replay, READ_NS);
	struct counter *a = begin(&c, "r22");
	ck_assert_uint_eq(n_open(&c), 1);
	struct counter *b = begin(&c, "own_cycles");
	ck_assert_uint_eq(n_open(&c), 2);
	replay_run(c.replay, 0, 100, MSEC);
	replay_run(c.replay, 1, 100, MSEC);
	ck_assert_uint_eq(value(b, 0)->value, 1000000 + 800000);
	/* without a code on hart 1, it is nobody's code there */
	struct counter *d = begin(&c, "r44,big_only");
	ck_assert_uint_eq(n_open(&c), 4);
	counter_free(a);
	counter_free(b);
	counter_free(d);
	core_case_end(&c);
	made_folder_remove(&folder);
}

/* Big's loads and big_only change codes. */
static void swap_codes(const struct made_folder *folder)
{
	char path[512], text[4096];
	snprintf(path, sizeof(path), "%s/big.json", folder->path);
	FILE *f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	char *only = strstr(text, "0x44"), *loads = strstr(text, "0x55");
	ck_assert(only && loads);
	memcpy(only, "0x55", 4);
	memcpy(loads, "0x44", 4);
	made_file(folder, "big.json", text);
}

TEST(a_generic_event_whose_code_a_reload_changed_is_not_read_where_the_old_code_counts)
{
	struct made_folder folder;
	struct core_case c = core_case_two_kinds(&folder);
	replay_set_read_cost(c.replay, READ_NS);
	struct counter *a = begin(&c, "L1-dcache-loads");
	swap_codes(&folder);
	ck_assert_int_eq(cores_reload(c.cores), 0);
	struct counter *b = begin(&c, "L1-dcache-loads"), *d = begin(&c, "L1-dcache-loads");
	ck_assert_uint_eq(n_open(&c), 2 + 1); /* on Little it is the same as before */
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_uint_eq(value(a, 0)->value, 50000);
	ck_assert_uint_eq(value(b, 0)->value, 7000);
	ck_assert_uint_eq(value(d, 0)->value, 7000);
	counter_free(a);
	counter_free(b);
	counter_free(d);
	core_case_end(&c);
	made_folder_remove(&folder);
}

TEST(counts_over_time_and_a_counter_share_what_both_count)
{
	struct core_case c = core_case_riscv(CORE_CVA6);
	struct event_error error = {""};
	struct hart_counts *counts = NULL;
	replay_set_read_cost(c.replay, READ_NS);
	const struct hart_counts_options o = {
		.kernel = c.kernel, .machine = &c.machine, .cores = c.cores, .groups = "ipc"};
	struct counter *a = begin(&c, "{instructions,cycles}");
	replay_run(c.replay, 0, 100, MSEC);
	ck_assert_int_eq(hart_counts_new(&o, &counts, &error), 0);
	ck_assert_uint_eq(n_open(&c), 4);
	replay_run(c.replay, 0, 100, 2 * MSEC);
	struct hart_count_rows rows = hart_counts_take(counts);
	ck_assert_uint_eq(rows.n, 4);
	ck_assert(rows.row[0].hart == 0 && rows.row[0].value == 2000000);
	counter_free(a);
	replay_run(c.replay, 0, 100, MSEC);
	rows = hart_counts_take(counts);
	ck_assert(rows.row[0].value == 1000000 && rows.row[1].value == 1000000);
	hart_counts_free(counts);
	core_case_end(&c);
}

/* Which descriptors were stopped: those from `first_own` on are of the counts over time alone. */
static struct {
	const struct kernel *kernel;
	int first_own;
	unsigned n_own, n_others;
} stopped;

static int watch_ioctl(void *u, int fd, unsigned long request, uintptr_t arg)
{
	if (request == PERF_EVENT_IOC_DISABLE)
		*(fd >= stopped.first_own ? &stopped.n_own : &stopped.n_others) += 1;
	return stopped.kernel->event_ioctl(u, fd, request, arg);
}

TEST(the_price_of_turns_is_measured_on_groups_that_nobody_reads)
{
	struct core_case c =
		core_case_riscv("\"mvendorid\":\"0x489\","
				"\"marchid\":\"0x8000000000000007\",\"mimpid\":\"0x0\"");
	struct event_error error = {""};
	struct hart_counts *counts = NULL;
	replay_set_read_cost(c.replay, READ_NS);
	struct counter *a =
		begin(&c, "{instructions,cycles,branch-misses,branches},{instructions,cache-misses,"
			  "cache-references}");
	struct kernel watched = *c.kernel;
	watched.event_ioctl = watch_ioctl;
	stopped.kernel = c.kernel;
	for (size_t i = 0; i < 14; i++)
		stopped.first_own =
			a->fd[i] >= stopped.first_own ? a->fd[i] + 1 : stopped.first_own;
	const struct hart_counts_options o = {.kernel = &watched,
		.machine = &c.machine,
		.cores = c.cores,
		.groups = "General,Branch,Cache"};
	ck_assert_int_eq(hart_counts_new(&o, &counts, &error), 0);
	ck_assert_uint_eq(n_open(&c), 14);
	ck_assert_uint_gt(stopped.n_own, 0);
	ck_assert_uint_eq(stopped.n_others, 0);
	hart_counts_free(counts);
	counter_free(a);
	core_case_end(&c);
}
