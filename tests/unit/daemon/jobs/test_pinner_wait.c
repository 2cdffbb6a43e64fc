/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Tests of daemon/jobs/pinner.c and pinner_rule.c: which jobs wait for their end, by request and by rule, and which
 * request of which user comes next. */

#include "tests/unit/daemon/jobs/pinner_rig.inc"
#include "tests/unit/test.h"

EACH_TEST(.begin = begin, .end = end, .seconds = 120);

TEST(of_jobs_that_run_the_latest_wait_for_their_end)
{
	uint64_t id;
	for (int run = 1; run <= 5; run++)
		run_job(run, 1000);
	run_job(6, 1001);
	struct pin_ask ask = ask_for("branch=main", 0);
	ask.last = 2;
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	turn();
	const struct pin_report *r = pinner_report(p, id);
	ck_assert(r && r->outcome == PIN_WELL && r->n_jobs == 2 && n_running() == 2);
	ck_assert_str_eq(r->job[0].labels, labels_of(4));
	ck_assert_str_eq(r->job[1].labels, labels_of(5));
}

TEST(more_jobs_that_run_than_one_request_pins_are_refused_or_the_latest_are_taken)
{
	uint64_t id;
	for (int run = 1; run <= PIN_JOBS_MAX + 1; run++) {
		run_job(run, 1000);
		now_ns++;
	}
	const struct pin_report *r = asked("branch=main", 0, &id);
	ck_assert(r->outcome == PIN_MANY && r->n_jobs == 0 && n_running() == 0);
	r = asked("branch=main", PIN_JOBS_MAX + 1, &id);
	ck_assert(r->outcome == PIN_MANY && r->n_jobs == 0 && n_running() == 0);
	/* of those that are kept in the end none is left out */
	r = asked("branch=main", PIN_JOBS_MAX, &id);
	ck_assert(r->outcome == PIN_WELL && r->n_jobs == PIN_JOBS_MAX);
	ck_assert_str_eq(r->job[0].labels, labels_of(2));
}

TEST(the_limit_that_a_request_meets_is_said)
{
	uint64_t id;
	struct pin_ask ask = ask_for("branch=main", 0);
	for (int run = 1; run <= PIN_WAITS_USER_MAX + 1; run++) {
		ask.only = run_job(run, 1000)->labels;
		int r = pinner_ask(p, &ask, &id);
		ck_assert_int_eq(r, run <= PIN_WAITS_USER_MAX ? 0 : PINNER_WAITS);
		if (r == 0)
			pinner_forget(p, id);
	}
	/* another user's have a place */
	ask.by = 1001;
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	/* all that run at once */
	struct pin_ask all = ask_for("run=129", 0);
	ck_assert_uint_eq(unpin(1001, "run=129"), 1);
	ck_assert_int_eq(pinner_ask(p, &all, &id), 0);
	turn();
	const struct pin_report *r = pinner_report(p, id);
	ck_assert(r && r->outcome == PIN_FAILED);
	ck_assert_ptr_nonnull(strstr(r->text, "at most 128 per user and 1024 in total"));
	pinner_forget(p, id);
	/* requests */
	ask = ask_for("branch=topic", 0);
	for (int i = 0; i <= PIN_ASKS_USER_MAX; i++)
		ck_assert_int_eq(pinner_ask(p, &ask, &id), i < PIN_ASKS_USER_MAX ? 0 : PINNER_BUSY);
}

/* Of requests whose job runs. */
static uint32_t sum_of_keep(void)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < p->n_requests; i++)
		sum += p->request[i].set ? p->request[i].ask.keep : 0;
	return sum;
}

/* How many requests there have been since that one. */
static uint64_t n_requests_since(uint64_t id)
{
	return p->last_id - id;
}

/* Follow rules until n requests have been made since that one, and check that no more were. A turn has a limit of time,
 * so it takes several. Requests are not worked on. */
static void follow_rules_until(uint64_t id, uint64_t n)
{
	for (int i = 0; i < 100 && n_requests_since(id) < n; i++)
		ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, false), 0);
	ck_assert_uint_eq(n_requests_since(id), n);
}

TEST(more_jobs_of_a_rule_that_end_at_once_than_may_wait_are_pinned_one_after_the_other)
{
	uint64_t id = p->last_id;
	pinner_set_rules(p, "branch=main,keep=300");
	for (int run = 1; run <= 200; run++)
		task_end(&tasks, run_job(run, 1000), now_ns);
	task_end(&tasks, run_job(201, 1001), now_ns);
	/* another user's job is among the first that have a place */
	follow_rules_until(id, PIN_WAITS_USER_MAX + 1);
	for (int i = 0; i < 250; i++)
		turn();
	ck_assert_uint_eq(n_requests_since(id), 201);
	ck_assert(n_others() == 0 && n_running() == 0);
	ck_assert_uint_eq(s->n_pins, RUNS);
	ck_assert_uint_eq(n_said, 0);
}

TEST(jobs_of_a_rule_that_are_forgotten_before_they_have_a_place_are_said)
{
	const uint64_t id = p->last_id;
	pinner_set_rules(p, "branch=main,keep=300");
	for (int run = 1; run <= 200; run++)
		task_end(&tasks, run_job(run, 1000), now_ns);
	follow_rules_until(id, PIN_WAITS_USER_MAX);
	uint8_t mark[256] = {0};
	ck_assert_uint_lt(tasks.n_tasks, sizeof(mark));
	ck_assert_int_eq(task_table_sweep(&tasks, mark), 0);
	turn();
	ck_assert_uint_eq(n_said, 1);
	ck_assert_ptr_nonnull(
		strstr(said[0], "pin-jobs skipped 72 finished jobs (for example, of user 1000)"));
	ck_assert_ptr_nonnull(strstr(said[0], "at most 128 per user and 1024 in total"));
}

TEST(a_job_of_a_rule_that_runs_again_is_pinned_again)
{
	pinner_set_rules(p, "branch=main,keep=2");
	for (int again = 0; again < 3; again++) {
		uint64_t id = p->last_id;
		struct task *task = run_job(1, 1000);
		turn();
		ck_assert_uint_eq(n_requests_since(id), 1);
		task_end(&tasks, task, now_ns);
		turn();
		turn();
		ck_assert_uint_eq(n_requests_since(id), 1);
		/* in less than the time between two looks */
		task_end(&tasks, run_job(1, 1000), now_ns);
		turn();
		turn();
		ck_assert_uint_eq(n_requests_since(id), 2);
		ck_assert_uint_eq(s->n_pins, 1);
	}
}

TEST(new_rules_are_for_jobs_that_run_and_old_ones_are_forgotten)
{
	pinner_set_rules(p, "branch=topic,keep=2");
	run_job(1, 1000);
	turn();
	ck_assert_uint_eq(n_running(), 0);
	pinner_set_rules(p, "branch=main,keep=2");
	turn();
	ck_assert(n_running() == 1 && p->request[0].ask.keep == 2);
	pinner_set_rules(p, "none");
	run_job(2, 1000);
	turn();
	ck_assert_uint_eq(n_running(), 1);
	/* what its user takes back while it runs is not taken again */
	pinner_set_rules(p, "branch=main,keep=3");
	turn();
	ck_assert_uint_eq(n_running(), 2);
	ck_assert_uint_eq(unpin(1000, "branch=main"), 2);
	turn();
	ck_assert_uint_eq(n_running(), 0);
	/* and what its user asks for goes before a rule */
	uint64_t id;
	ck_assert_int_eq(asked("run=1", 0, &id)->job[0].state, PIN_RUNS);
	pinner_set_rules(p, "branch=main,keep=4");
	turn();
	ck_assert(n_running() == 2 && sum_of_keep() == 4);
}

TEST(a_job_that_runs_again_before_its_turn_keeps_its_place)
{
	const uint64_t id = p->last_id;
	pinner_set_rules(p, "branch=main,keep=300");
	for (int run = 1; run <= PIN_WAITS_USER_MAX; run++)
		task_end(&tasks, run_job(run, 1000), now_ns);
	/* all have ended, and none has had its turn */
	follow_rules_until(id, PIN_WAITS_USER_MAX);
	ck_assert_uint_eq(n_others(), PIN_WAITS_USER_MAX);
	struct task *task = run_job(1, 1000);
	ck_assert_int_eq(pinner_dispatch(p, now_ns, true), 0);
	ck_assert(n_others() == PIN_WAITS_USER_MAX - 1 && n_running() == 1);
	task_end(&tasks, task, now_ns);
	for (int i = 0; i <= PIN_WAITS_USER_MAX; i++)
		turn();
	ck_assert(n_others() == 0 && n_running() == 0 && s->n_pins == RUNS);
}

TEST(a_job_that_runs_again_is_pinned_as_the_later_request_says)
{
	uint64_t id;
	pinner_set_rules(p, "branch=main,keep=300");
	task_end(&tasks, run_job(1, 1000), now_ns);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, false), 0);
	ck_assert(n_running() == 0 && n_others() == 1);
	struct pin_ask ask = ask_for("run=1", 2);
	ask.only = run_job(1, 1000)->labels;
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	pinner_forget(p, id);
	ck_assert_int_eq(pinner_dispatch(p, now_ns, true), 0);
	ck_assert(n_running() == 1 && n_others() == 0);
	ck_assert_uint_eq(sum_of_keep(), 2);
}

TEST(a_rule_takes_nothing_from_a_request_whose_job_runs_again)
{
	uint64_t id;
	pinner_set_rules(p, "branch=main,keep=300");
	struct task *t = run_job(1, 1000);
	struct pin_ask ask = ask_for("run=1", 0);
	ask.only = t->labels;
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	pinner_forget(p, id);
	task_end(&tasks, t, now_ns);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, false), 0);
	ck_assert(n_running() == 0 && n_others() == 1);
	run_job(1, 1000);
	/* rules look before the request comes to its turn */
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, false), 0);
	ck_assert(n_running() == 0 && n_others() == 1);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, true), 0);
	ck_assert(n_running() == 1 && n_others() == 0);
	ck_assert_uint_eq(sum_of_keep(), 0);
}

TEST(users_take_turns)
{
	uint64_t id = p->last_id;
	pinner_set_rules(p, "branch=main,keep=300");
	for (int run = 1; run <= 100; run++)
		task_end(&tasks, run_job(run, 1000), now_ns);
	follow_rules_until(id, 100);
	turn();
	turn();
	/* what another user asks for comes before what is left of these */
	struct pin_ask ask = ask_for("branch=topic", 0);
	ask.by = 1001;
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	turn();
	turn();
	const struct pin_report *r = pinner_report(p, id);
	ck_assert(r && r->outcome == PIN_NONE);
	ck_assert_uint_gt(n_others(), 90);
	/* and of one user's, what came first */
	const uint64_t first = pinner_next(p)->id;
	for (size_t i = 0; i < p->n_requests; i++)
		ck_assert(p->request[i].report || p->request[i].id >= first);
}

TEST(a_job_whose_last_samples_are_not_written_yet_does_not_begin_for_another)
{
	pinner_set_rules(p, "branch=main,keep=300");
	for (int run = 1; run <= 2; run++)
		task_end(&tasks, run_job(run, 1000), now_ns);
	turn();
	/* the files have what the next one needs, which is no more than that */
	const struct pin_request *next = pinner_next(p);
	ck_assert_uint_eq(pinner_wants_flush(p), next->since_ns);
	const uint64_t id = next->id;
	task_end(&tasks, run_job(1, 1001), now_ns);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, true), 0);
	ck_assert_uint_eq(p->child_id, id);
}

TEST(requests_of_all_users_together_are_limited)
{
	uint64_t id;
	struct pin_ask ask = ask_for("branch=main", 0);
	for (uint32_t i = 0; i <= PIN_ASKS_MAX; i++) {
		ask.by = 2000 + i;
		ck_assert_int_eq(pinner_ask(p, &ask, &id), i < PIN_ASKS_MAX ? 0 : PINNER_BUSY);
	}
}

TEST(the_list_has_room_for_all_requests_at_their_limits_and_one_that_is_forgotten)
{
	uint64_t id, forgotten;
	struct pin_ask ask = ask_for("branch=main", 0);
	for (int run = 1; run < PIN_WAITS_MAX; run++) {
		ask.by = 2000 + (uint32_t)run / PIN_WAITS_USER_MAX;
		ask.only = run_job(run, ask.by)->labels;
		ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
		pinner_forget(p, id);
	}
	ask.only = NULL;
	ask.by = 3000;
	run_job(PIN_WAITS_MAX, ask.by);
	ck_assert_int_eq(pinner_ask(p, &ask, &forgotten), 0);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, true), 0);
	pinner_forget(p, forgotten);
	ask = ask_for("branch=topic", 0);
	for (uint32_t i = 0; i < PIN_ASKS_MAX; i++) {
		ask.by = 4000 + i / PIN_ASKS_USER_MAX;
		ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	}
	/* its running job takes the place that it gives up when it ends */
	for (struct pollfd fd; pinner_has(p, forgotten);) {
		if (pinner_fds(p, &fd, 1) == 1)
			ck_assert_int_eq(poll(&fd, 1, 60000), 1);
		ck_assert_int_eq(pinner_dispatch(p, now_ns, false), 0);
	}
	ck_assert_uint_eq(n_running(), PIN_WAITS_MAX);
	ck_assert_uint_eq(n_others(), PIN_ASKS_MAX);
}

TEST(jobs_that_have_no_place_yet_are_unpinned_too)
{
	pinner_set_rules(p, "branch=main,keep=300");
	for (int run = 1; run <= 200; run++)
		task_end(&tasks, run_job(run, 1000), now_ns);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, false), 0);
	ck_assert_uint_eq(unpin(1001, "branch=main"), 0);
	ck_assert_uint_eq(unpin(1000, "branch=main"), 200);
	for (int i = 0; i < 3; i++)
		turn();
	ck_assert(n_others() == 0 && n_running() == 0 && s->n_pins == 0);
}

TEST(a_job_that_ends_while_the_child_looks_is_pinned)
{
	uint64_t id;
	struct task *task = run_job(1, 1000);
	const struct pin_ask ask = ask_for("run=1", 0);
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, true), 0);
	/* and nothing of it is left when the child has ended */
	task_end(&tasks, task, now_ns);
	uint8_t mark[8] = {0};
	ck_assert_int_eq(task_table_sweep(&tasks, mark), 0);
	ck_assert_ptr_null(tasks.label_sets.set);
	for (int i = 0; i < 3; i++)
		turn();
	const struct pin_report *r = pinner_report(p, id);
	ck_assert(r && r->outcome == PIN_WELL && r->job[0].state == PIN_RUNS);
	ck_assert(n_others() == 1 && n_running() == 0 && s->n_pins == 1);
}

TEST(a_job_that_finds_no_place_any_more_costs_no_pin_that_was_made)
{
	uint64_t id, other;
	run_job(4, 1000);
	struct pin_ask ask = ask_for("branch=main", 0);
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	ck_assert_int_eq(pinner_dispatch(p, now_ns += SECOND, true), 0);
	/* the places are taken while the child looks */
	for (int run = 5; run < 5 + PIN_WAITS_USER_MAX; run++) {
		ask.only = run_job(run, 1000)->labels;
		ck_assert_int_eq(pinner_ask(p, &ask, &other), 0);
		pinner_forget(p, other);
	}
	turn();
	const struct pin_report *r = pinner_report(p, id);
	ck_assert(r && r->outcome == PIN_FAILED);
	ck_assert_ptr_nonnull(strstr(r->text, "at most 128 per user and 1024 in total"));
	ck_assert_uint_eq(r->n_jobs, RUNS);
	for (uint32_t i = 0; i < RUNS; i++)
		ck_assert(r->job[i].state == PIN_MADE);
	ck_assert_uint_eq(s->n_pins, RUNS);
}

TEST(a_wait_holds_its_labels_until_it_is_over)
{
	uint64_t id;
	struct pin_ask ask = ask_for("run=1", 0);
	ask.only = run_job(1, 1000)->labels;
	ck_assert_int_eq(pinner_ask(p, &ask, &id), 0);
	pinner_forget(p, id);
	task_end(&tasks, task_find(&tasks, 1001), now_ns);
	uint8_t mark[8] = {0};
	ck_assert_int_eq(task_table_sweep(&tasks, mark), 0);
	ck_assert_ptr_nonnull(tasks.label_sets.set);
	turn();
	turn();
	ck_assert(n_running() == 0 && s->n_pins == 1);
	ck_assert_ptr_null(tasks.label_sets.set);
}
