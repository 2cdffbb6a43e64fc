/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metrics of a stat beside the groups of other clients: what those cover needs no pass, the values are the same,
 * and the plan says with how many others they are shared.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/metric/live_metrics.h"
#include "daemon/metric/plan_says.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

#define N(table) (sizeof(table) / sizeof((table)[0]))
#define RUN_NS 10000000u
/* Two counters beside those of cycles and instructions. */
#define CORE_U74 "\"mvendorid\":\"0x489\",\"marchid\":\"0x8000000000000007\",\"mimpid\":\"0x0\""

static struct core_case machine(void)
{
	struct core_case c = core_case_riscv(CORE_U74);
	c.machine.may_see_kernel = true;
	replay_set_read_cost(c.replay, 1000);
	return c;
}

/* A client's stat of metrics. */
struct client {
	const struct core_case *core;
	struct event_list events;
	struct live_metrics *metrics;
	struct counter *counter;
	struct plan_says *says;
	unsigned n_opened; /* descriptors */
};

static void open_counter(struct client *a, const struct hart_set *harts)
{
	struct event_error error = {""};
	const struct counter_options o = {
		.events = &a->events, .cores = a->core->cores, .harts = harts};
	unsigned before = replay_n_events(a->core->replay);
	int r = counter_new(a->core->kernel, &a->core->machine, &o, &a->counter, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
	a->n_opened = replay_n_events(a->core->replay) - before;
	const struct planned planned = {
		.kernel = a->core->kernel,
		.cores = a->core->cores,
		.harts = &a->core->machine.online,
		.events = &a->counter->events,
		.n_by_name = (size_t)(a->metrics ? a->metrics->first : a->events.n_events),
		.metrics = a->metrics ? a->metrics->plan : NULL,
		.counter = a->counter,
	};
	ck_assert_int_eq(plan_says_new(&planned, &a->says), 0);
	ck_assert_int_eq(counter_start(a->counter), 0);
}

static void plan_metrics(struct client *a, char *const *names, size_t n, bool user_only)
{
	struct event_error error = {""};
	const struct counter_options o = {.cores = a->core->cores, .user_only = user_only};
	const struct counter_terms terms = counter_terms_of(a->core->kernel, &a->core->machine, &o);
	const struct metric_wish wish = {names, n, false, 0};
	const struct metric_harts harts = {a->core->cores, metric_plan_platform(a->core->cores),
		a->core->machine.online, &terms};
	int r = live_metrics_new(a->core->kernel, &harts, &wish, &a->events, &a->metrics, &error);
	ck_assert_msg(r == 0, "%d: %s", r, error.text);
}

static struct client begin(const struct core_case *c, char *const *names, size_t n)
{
	struct client a = {.core = c};
	plan_metrics(&a, names, n, false);
	open_counter(&a, NULL);
	return a;
}

static struct client begin_events(
	const struct core_case *c, const char *events, const struct hart_set *harts)
{
	struct client a = {.core = c, .events = core_case_events(c, events)};
	open_counter(&a, harts);
	return a;
}

static void end(struct client *a)
{
	plan_says_free(a->says);
	counter_free(a->counter);
	live_metrics_free(a->metrics);
}

/* Every metric has this value. */
static void must_be(struct client *a, double value)
{
	struct counter_value last[EVENTS_MAX] = {{0}};
	struct counts counts;
	struct metric_values values;
	ck_assert_int_eq(counter_read(a->counter), 0);
	counts_take(&counts, &a->core->machine, a->counter, last);
	ck_assert_int_eq(live_metrics_values(a->metrics, &counts, &values), 0);
	for (size_t i = 0; i < metric_plan_n_metrics(a->metrics->plan); i++)
		ck_assert_msg(values.metric[i].value == value, "%s: %g, %s",
			metric_plan_metric(a->metrics->plan, i)->metric->name,
			values.metric[i].value, values.metric[i].reason);
	metric_values_clear(&values);
}

static bool says(const struct plan_says *s, const char *line)
{
	for (size_t i = 0; i < s->n_lines; i++)
		if (strcmp(s->line[i], line) == 0)
			return true;
	return false;
}

static char *all[] = {"ipc", "branch_miss_rate", "branch_mpki", "cache_miss_rate", "cache_mpki"};

TEST(metrics_that_an_open_group_covers_need_no_pass)
{
	char *branch[] = {"Branch"};
	struct core_case c = machine();
	struct client alone = begin(&c, all, N(all));
	ck_assert_uint_eq(metric_plan_n_passes(alone.metrics->plan), 2);
	ck_assert_uint_eq(metric_plan_n_covered(alone.metrics->plan), 0);
	ck_assert_uint_eq(alone.n_opened, 14);
	end(&alone);

	struct client a = begin(&c, branch, N(branch));
	ck_assert_uint_eq(a.n_opened, 6);
	struct client b = begin(&c, all, N(all));
	ck_assert_uint_eq(metric_plan_n_passes(b.metrics->plan), 2);
	ck_assert_uint_eq(metric_plan_n_covered(b.metrics->plan), 1);
	ck_assert(!metric_plan_is_minimal(b.metrics->plan));
	ck_assert_uint_eq(b.n_opened, 8);
	ck_assert(says(b.says, "pass 2 of 2: instructions; branch-misses; branches"));
	ck_assert(says(b.says, "pass 2 is shared with 1 other count: it takes no further counters "
			       "and no pass of its own"));
	end(&a);
	end(&b);
	core_case_end(&c);
}

TEST(the_same_metrics_open_nothing_and_have_their_values)
{
	struct core_case c = machine();
	struct client a = begin(&c, all, N(all));
	replay_run(c.replay, 0, 100, RUN_NS);
	struct client b = begin(&c, all, N(all));
	struct client d = begin(&c, all, N(all));
	ck_assert_uint_eq(b.n_opened + d.n_opened, 0);
	ck_assert_uint_eq(counter_n_fds(b.counter), 14);
	ck_assert(says(d.says, "pass 1 is shared with 2 other counts: it takes no further counters "
			       "and no pass of its own"));
	end(&a);
	replay_run(c.replay, 0, 100, RUN_NS);
	/* each event counts 1,000 a microsecond */
	struct counter_value *v = b.counter->value;
	ck_assert_int_eq(counter_read(b.counter), 0);
	for (int e = 0; e < b.events.n_events; e++)
		ck_assert_uint_eq(v[e].value, RUN_NS);
	end(&b);
	end(&d);
	core_case_end(&c);
}

TEST(values_are_of_the_groups_that_were_read)
{
	char *ratios[] = {"ipc", "cache_miss_rate"}, *cache[] = {"cache_miss_rate"};
	struct core_case c = machine();
	struct client a = begin(&c, cache, N(cache));
	replay_run(c.replay, 0, 100, RUN_NS);
	struct client b = begin(&c, ratios, 1);
	ck_assert_uint_eq(b.n_opened, 4);
	replay_run(c.replay, 1, 100, RUN_NS);
	must_be(&b, 1);
	struct client d = begin(&c, ratios, N(ratios));
	ck_assert_uint_eq(d.n_opened, 0);
	ck_assert_uint_eq(metric_plan_n_covered(d.metrics->plan), 2);
	replay_run(c.replay, 1, 100, RUN_NS);
	ck_assert_int_eq(counter_read(d.counter), 0);
	ck_assert_uint_eq(d.counter->value[0].value, RUN_NS);
	end(&a);
	end(&b);
	end(&d);
	core_case_end(&c);
}

TEST(a_group_of_some_harts_or_other_modes_covers_nothing)
{
	char *ipc[] = {"ipc"};
	struct core_case c = machine();
	struct hart_set first = {0};
	hart_set_add(&first, 0);
	struct client a = begin_events(&c, "{cycles,instructions}", &first);
	struct client b = {.core = &c};
	plan_metrics(&b, ipc, 1, false);
	ck_assert_uint_eq(metric_plan_n_covered(b.metrics->plan), 0);
	/* it is read where it is open all the same */
	open_counter(&b, NULL);
	ck_assert_uint_eq(b.n_opened, 2);
	ck_assert(says(b.says, "pass 1 is shared with 1 other count on 1 of 2 harts: it takes no "
			       "further counters and no pass of its own"));
	struct client d = {.core = &c};
	plan_metrics(&d, ipc, 1, true);
	ck_assert_uint_eq(metric_plan_n_covered(d.metrics->plan), 0);
	struct client e = {.core = &c};
	plan_metrics(&e, ipc, 1, false);
	ck_assert_uint_eq(metric_plan_n_covered(e.metrics->plan), 1);
	live_metrics_free(d.metrics);
	live_metrics_free(e.metrics);
	end(&a);
	end(&b);
	core_case_end(&c);
}

/* {instructions,cache-misses} covers one metric, whose events the others need as well. */
TEST(a_plan_that_would_have_too_many_events_shares_no_metrics)
{
	struct core_case c = machine();
	struct client a = begin_events(&c, "{instructions,cache-misses}", NULL);
	struct client room = {.core = &c}, full = {.core = &c};
	plan_metrics(&room, all, N(all), false);
	ck_assert_uint_eq(room.metrics->n_events, 8);
	for (int i = 0; i < EVENTS_MAX - 7; i++) {
		char name[8];
		struct event_error error;
		snprintf(name, sizeof(name), "r%x", 0x100 + i);
		ck_assert_int_eq(event_parse_for(c.kernel, c.cores, name, &full.events, &error), 0);
	}
	plan_metrics(&full, all, N(all), false);
	ck_assert_uint_eq(full.metrics->n_events, 7);
	ck_assert_uint_eq(metric_plan_n_covered(full.metrics->plan), 0);
	live_metrics_free(room.metrics);
	live_metrics_free(full.metrics);
	end(&a);
	core_case_end(&c);
}

TEST(events_by_name_say_what_they_share)
{
	struct core_case c = machine();
	struct client a = begin_events(&c, "{cycles,instructions},r102", NULL);
	struct client b = begin_events(&c, "cycles,{instructions,cycles},r202", NULL);
	ck_assert(says(b.says, "cycles is shared with 1 other count: it takes no further counters "
			       "and no pass of its own"));
	ck_assert(says(b.says, "the group of instructions is shared with 1 other count: it takes "
			       "no further counters and no pass of its own"));
	for (size_t i = 0; i < a.says->n_lines; i++)
		ck_assert_ptr_null(strstr(a.says->line[i], "shared"));
	for (size_t i = 0; i < b.says->n_lines; i++)
		ck_assert_ptr_null(strstr(b.says->line[i], "r202 is shared"));
	end(&a);
	end(&b);
	core_case_end(&c);
}
