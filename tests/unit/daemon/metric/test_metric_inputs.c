/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Metrics of counts that are there already: what they need, which events are that, and their values.
 */
#include <math.h>
#include <string.h>

#include "daemon/metric/metric_inputs.h"
#include "platform-db/expression.h"
#include "tests/unit/core_case.h"
#include "tests/unit/test.h"

static struct core_case c;
static struct metric_inputs *m;

static int begin(const char *name)
{
	struct event_error error = {""};
	c = core_case_riscv(CORE_CVA6);
	const struct metric_core core = {cores_platform(c.cores, 0), NULL, c.machine.online};
	struct metric_choice chosen = {.n = 0};
	int r = metric_choose(core.platform, &(char *){(char *)name}, 1, &chosen, &error);
	if (r == 0)
		r = metric_inputs_new(&core, &chosen, &m, &error);
	ck_assert(r == 0 || *error.text);
	return r;
}

static void end(void)
{
	m = metric_inputs_free(m);
	core_case_end(&c);
}

static int input_of(const char *event, uint32_t type, uint64_t config)
{
	const struct metric_event e = {event, type, config};
	for (size_t i = 0; i < metric_inputs_n(m); i++)
		if (metric_inputs_match(m, i, &e))
			return (int)i;
	return -1;
}

TEST(ipc_has_a_value_of_its_two_inputs_alone)
{
	ck_assert_int_eq(begin("ipc"), 0);
	double count[METRIC_INPUTS_MAX], value;
	const char *missing;
	for (size_t i = 0; i < METRIC_INPUTS_MAX; i++)
		count[i] = NAN;
	int instructions =
		input_of("instructions:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int cycles = input_of("cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	ck_assert_int_ge(instructions, 0);
	ck_assert_int_ge(cycles, 0);
	count[instructions] = 50;
	ck_assert_int_eq(metric_inputs_value(m, 0, count, &value, &missing), EXPRESSION_MISSING);
	ck_assert(strcasestr(missing, "cycles"));
	count[cycles] = 100;
	ck_assert_int_eq(metric_inputs_value(m, 0, count, &value, &missing), 0);
	ck_assert_double_eq_tol(value, 0.5, 1e-9);
	count[cycles] = 0;
	ck_assert_int_eq(metric_inputs_value(m, 0, count, &value, &missing), EXPRESSION_UNDEFINED);
	end();
}

TEST(other_events_are_no_inputs)
{
	ck_assert_int_eq(begin("ipc"), 0);
	ck_assert_int_eq(
		input_of("page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS), -1);
	ck_assert_int_eq(input_of("", PERF_TYPE_RAW, 0x7777), -1);
	ck_assert_int_eq(input_of("cycle", PERF_TYPE_RAW, 0x7777), -1);
	ck_assert_int_eq(input_of("pmu/instructions", PERF_TYPE_RAW, 0x7777), -1);
	end();
}

TEST(a_name_that_no_metric_has_is_named)
{
	ck_assert_int_eq(begin("nothing"), METRIC_UNKNOWN);
	end();
}
