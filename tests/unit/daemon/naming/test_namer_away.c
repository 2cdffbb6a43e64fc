/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Workers that are away: they are started again, at growing distances, and meanwhile nobody waits.
 */
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/naming/namer_private.h"
#include "proto/base/clock.h"
#include "tests/unit/namer_rig.h"
#include "tests/unit/test.h"

static struct namer_rig rig;
static struct file *program;

static void setup(void)
{
	namer_rig_begin(&rig, &(struct namer_options){0});
	program = namer_rig_file(&rig, FILE_ELF, namer_rig_self());
}

static void teardown(void)
{
	namer_rig_end(&rig);
}

EACH_TEST(.begin = setup, .end = teardown, .seconds = 120);

static struct namer_status status(void)
{
	struct namer_status s;

	namer_status(rig.namer, &s);
	return s;
}

TEST(workers_that_are_not_gone_at_the_end_are_reaped_with_a_later_namer)
{
	struct graves own = {.n = 1}, rest = {.n = 0};
	struct file_table files = {0};
	struct namer_options o = {
		.binary = namer_rig_worker(false), .files = &files, .graves = &rest};
	struct namer *n = NULL;
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	own.worker[0].pid = pid;
	graves_leave(&own, &rest); /* it was not killed yet, as one that finds no hart to end on */
	ck_assert_uint_eq(own.n, 0);
	ck_assert_uint_eq(rest.n, 1);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(namer_new(&o, &n), 0);
	ck_assert_uint_eq(rest.n, 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), -1);
	namer_free(n);
	file_table_clear(&files);
}

static struct frame *honest(void)
{
	return namer_rig_frame(&rig, program, namer_rig_landmark());
}

/* As if it had failed for seconds: as often as makes nobody wait. */
static void fail_for_long(struct worker *w)
{
	/* on a busy machine one may just be starting when it is killed: then the next is */
	for (int i = 0; !rig.namer->off; i++) {
		if (i % 100 == 0) {
			w->failures = WORKER_FAILURES_MAX - 1;
			if (w->pid > 0)
				kill(w->pid, SIGKILL);
		}
		namer_rig_step(&rig, 20);
	}
}

static void until_named(const struct frame *f)
{
	for (int i = 0; i < 3000 && f->state == FRAME_ASKED; i++)
		namer_rig_step(&rig, 10);
	namer_rig_is_honest(f);
}

TEST(while_a_worker_does_not_come_up_nobody_waits_and_then_names_come)
{
	struct worker *workers[] = {&rig.namer->parser, &rig.namer->opener};

	for (int i = 0; i < 2; i++) {
		struct frame *waits = honest();
		fail_for_long(workers[i]);
		workers[i]->start_ns = UINT64_MAX;
		ck_assert(status().off);
		ck_assert(namer_rig_run(&rig));
		struct frame *f = namer_rig_frame(&rig, program, waits->offset + 1 + i);
		ck_assert(namer_rig_run(&rig));
		ck_assert_int_eq(f->state, FRAME_ASKED);
		ck_assert_uint_eq(namer_waiting(rig.namer), 0);
		struct unwind_job job = {.pid = 1, .ticket = &rig};
		ck_assert_int_eq(namer_unwind(rig.namer, &job), 0);
		ck_assert(namer_rig_run(&rig));
		ck_assert_uint_eq(rig.n_results, 1 + (uint32_t)i);
		ck_assert(rig.result[i].failed);
		ck_assert_ptr_eq(rig.result[i].ticket, &rig);
		workers[i]->start_ns = 0;
		until_named(f);
		ck_assert(!status().off);
	}
}

TEST(at_the_end_what_an_absent_worker_did_not_name_gets_no_name)
{
	fail_for_long(&rig.namer->parser);
	rig.namer->parser.start_ns = UINT64_MAX;
	struct frame *f = honest();
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FRAME_ASKED);
	ck_assert_int_eq(namer_ask_again(rig.namer), 0);
	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(f->state, FRAME_UNNAMED);
}

/* As a machine full of processes does, which a test as root cannot have. */
TEST(worker_that_cannot_be_started_for_want_of_something_is_tried_again)
{
	struct rlimit before, none = {0, 0};

	ck_assert(namer_rig_run(&rig));
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	kill(status().parser.pid, SIGKILL);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (rig.namer->parser.failures < 3)
		ck_assert_int_eq(namer_dispatch(rig.namer, clock_ns(CLOCK_MONOTONIC)), 0);
	ck_assert_uint_eq(status().parser.restarts, 1); /* a start that failed is none */
	ck_assert_str_eq(status().parser.state, "failed");
	ck_assert_int_eq(status().parser.error, EMFILE);
	ck_assert_uint_gt(namer_deadline_ns(rig.namer), clock_ns(CLOCK_MONOTONIC));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	until_named(honest());
	ck_assert_uint_eq(status().parser.restarts, 1);
	ck_assert_int_eq(status().parser.error, 0);
}

TEST(failed_workers_are_tried_at_growing_distances)
{
	struct worker w = {0};
	uint64_t now = 1000, last = 0;

	for (int i = 0; i < 40; i++) {
		worker_ended(&w, false, now);
		uint64_t delay = w.start_ns - now;
		ck_assert_uint_ge(delay, last);
		ck_assert_uint_le(delay, WORKER_DELAY_MAX_NS);
		last = delay;
	}
	ck_assert_uint_eq(last, WORKER_DELAY_MAX_NS);
	worker_answered(&w);
	worker_ended(&w, false, now);
	ck_assert_uint_eq(w.start_ns - now, WORKER_DELAY_NS);
}

TEST(workers_that_end_over_questions_are_started_at_a_rate)
{
	struct worker w = {0};
	uint64_t now = 1000000000000u;

	for (uint32_t i = 0; i <= WORKER_STARTS_MAX; i++) {
		worker_ended(&w, true, now);
		ck_assert_uint_eq(w.start_ns, now);
	}
	for (uint32_t i = 1; i < 5; i++) {
		worker_ended(&w, true, now);
		ck_assert_uint_eq(w.start_ns, now + i * WORKER_START_EVERY_NS);
	}
	ck_assert_uint_eq(w.failures, 0);
}
