/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/jobs/schedules.c: runs that are not sealed in time are of their own store's log. */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function" /* what only tests of the keeper need */
#include "tests/unit/daemon/service/keeper_rig.inc"
#pragma GCC diagnostic pop

/* Both files are one here; time passes in steps of ten seconds while runs are ended. */
static uint64_t n_steps;
static uint64_t stepping_clock_ns(clockid_t clock)
{
	return clock_ns(clock) + n_steps++ * 10 * SECOND_NS;
}
#define clock_ns stepping_clock_ns
#define begin schedules_begin_run
#define say schedules_say
#define look schedules_look
#define settle schedules_settle
#define dispatch schedules_dispatch_all
#undef SECOND_NS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* s is the rig's, too */
#include "daemon/jobs/schedules.c"
#pragma GCC diagnostic pop
#undef clock_ns
#undef begin

#include "tests/unit/test.h"

static struct schedules *schedules;
static char drop_ins[128];

static void begin_schedules(void)
{
	char path[256];
	setup();
	snprintf(drop_ins, sizeof(drop_ins), "%s/schedules.d", s.folder);
	ck_assert_int_eq(mkdir(drop_ins, 0700), 0);
	snprintf(path, sizeof(path), "%s/nightly.schedule", drop_ins);
	FILE *f = fopen(path, "w");
	ck_assert(f && fputs("[Schedule]\nOnCalendar=02:00\nDuration=1h\n", f) >= 0 &&
		  fclose(f) == 0);
	begin();
	const struct schedules_options o = {.folder = drop_ins, .conf = &conf, .say = hear};
	ck_assert_int_eq(schedules_new(&o, &schedules), 0);
}

static void end_schedules(void)
{
	char command[256];
	schedules = schedules_free(schedules, &walk);
	snprintf(command, sizeof(command), "rm -r '%s'", drop_ins);
	ck_assert_int_eq(system(command), 0);
	teardown();
}

EACH_TEST(.begin = begin_schedules, .end = end_schedules, .seconds = 120);

TEST(a_run_that_is_not_sealed_in_time_fails_in_the_log_of_its_own_store)
{
	uint64_t id;
	conf.overhead_ppm = 0;
	ck_assert_int_eq(schedules_begin(schedules, &walk, "nightly", now_ns, &id), 0);
	ck_assert(schedules->n_runs == 1 && id == 1);
	sample(5);
	snprintf(conf.store_path, sizeof(conf.store_path), "%s", other);
	ck_assert_int_eq(mkdir(other, 0700), 0);
	ck_assert_int_eq(schedules_reload(schedules, NULL), 0);
	ck_assert_uint_eq(schedules->n_runs, 0);
	ck_assert_uint_eq(schedules->log.n, 0);
	snprintf(conf.store_path, sizeof(conf.store_path), "%s", folder);
	ck_assert_int_eq(schedules_reload(schedules, NULL), 0);
	const struct run_entry *e = runs_log_find(&schedules->log, id);
	ck_assert_ptr_nonnull(e);
	ck_assert_int_eq(e->outcome, RUN_FAILED);
	ck_assert_str_eq(e->why, "mperf.conf names another store before its samples were written");
	ck_assert_str_eq(e->file, "");
	ck_assert_uint_eq(schedules->log_serial, 3);
}
