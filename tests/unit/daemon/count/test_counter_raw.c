/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Events that stat counts unasked, by codes of the core's own: one that never gets a counter makes
 * the kernel let all of them take turns, so it must go before the others count.
 */
#include <errno.h>

#include "daemon/count/counter.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

/* A U74 whose kernel maps cycles and instructions alone; what its own codes do is `raw`. */
static struct core_case u74_with(const char *raw)
{
	char json[2048];
	snprintf(json, sizeof(json),
		"{\"source\":\"made\",\"verified\":\"no\",\"files\":{"
		"\"/sys/devices/system/cpu/online\":\"0-1\\n\","
		"\"/proc/sys/kernel/arch\":\"riscv64\\n\"},\"hwprobe\":[{\"harts\":\"0-1\","
		"\"mvendorid\":\"0x489\",\"marchid\":\"0x8000000000000007\","
		"\"mimpid\":\"0x4210427\"}],\"rules\":["
		"{\"type\":\"hardware\",\"config\":0,\"per_us\":1000},"
		"{\"type\":\"hardware\",\"config\":1,\"per_us\":700},"
		"{\"type\":\"raw\",%s},"
		"{\"type\":\"software\",\"per_us\":1}]}",
		raw);
	return core_case_made(json, NULL);
}

static struct counter *open_all(const struct core_case *c, const struct event_list *events)
{
	const struct counter_options o = {.events = events, .cores = c->cores};
	struct event_error error = {""};
	struct counter *counter = NULL;
	int r = counter_new(c->kernel, &c->machine, &o, &counter, &error);
	ck_assert_msg(r == 0, "%s", error.text);
	return counter;
}

static const struct counter_value *value_of(const struct counter *c, const char *name)
{
	for (int i = 0; i < c->events.n_events; i++)
		if (strcmp(c->events.event[i].name, name) == 0)
			return &c->value[i];
	ck_abort_msg("no event %s", name);
	return NULL;
}

TEST(codes_that_never_get_a_counter_are_not_counted_unasked)
{
	struct core_case c = u74_with("\"starves\":true");
	struct counter *counter = open_all(&c, NULL);
	ck_assert_int_eq(value_of(counter, "branches")->error, ENODATA);
	ck_assert_int_eq(value_of(counter, "branch-misses")->error, ENODATA);
	ck_assert_int_eq(value_of(counter, "cycles")->error, 0);
	ck_assert_uint_eq(replay_n_events(c.replay), counter_n_fds(counter));
	ck_assert_uint_eq(counter_n_fds(counter), 2u * (unsigned)(counter->events.n_events - 2));
	ck_assert_ptr_nonnull(
		strstr(refusal_explain(&counter->events.event[0], ENODATA, false, &c.machine).says,
			"counts nothing"));
	counter_free(counter);
	core_case_end(&c);
}

TEST(codes_that_count_are_counted_unasked)
{
	struct core_case c = u74_with("\"per_us\":10");
	struct counter *counter = open_all(&c, NULL);
	ck_assert_int_eq(value_of(counter, "branches")->error, 0);
	ck_assert_int_eq(value_of(counter, "branch-misses")->error, 0);
	counter_free(counter);
	core_case_end(&c);
}

TEST(codes_that_were_asked_for_stay_open)
{
	struct core_case c = u74_with("\"starves\":true");
	struct event_list events = core_case_events(&c, "cycles,branches");
	struct counter *counter = open_all(&c, &events);
	ck_assert_int_eq(value_of(counter, "branches")->error, 0);
	ck_assert_uint_eq(counter_n_fds(counter), 4);
	counter_free(counter);
	core_case_end(&c);
}
