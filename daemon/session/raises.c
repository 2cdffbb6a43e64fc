/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A raise has a number, which its streams, rings and tasks have, too. For a task, the samples of its raise count
 * once the events of the raise are open; before that, the session's own samples count. Both have the weight of
 * their own rate, so their sum is right at any moment. A child's samples of the raise count from its FORK on, if its
 * parent had events by then.
 */
#include "daemon/session/raises.h"

#include <errno.h>

#include "daemon/session/walk_private.h"
#include "proto/base/clock.h"

#define RETRY_NS 1000000000u
#define OPEN_NS 2000000u    /* limit of opening events in one iteration of the loop */
#define WAIT_NS 10000000u   /* the same in wall time: the kernel waits for a task in an exec */
#define BALANCE_NS 25000000 /* at most, in time of the loop */

static struct raise *raise_of(const struct walk *w, uid_t uid)
{
	struct raises *all = &w->inner->raises;
	for (unsigned i = 0; all->n > 0 && i < RAISES_MAX; i++)
		if (all->of[i].hz > 0 && all->of[i].uid == uid)
			return &all->of[i];
	return NULL;
}

unsigned raises_number(const struct walk *w, uid_t uid)
{
	const struct raise *r = uid == 0 || uid == (uid_t)-1 ? NULL : raise_of(w, uid);
	return r ? (unsigned)(r - w->inner->raises.of) + 1 : 0;
}

uint32_t raises_rate(const struct walk *w, uid_t uid)
{
	const unsigned number = raises_number(w, uid);
	uint32_t most = machine_rate_max(&w->sampler->machine);
	uint32_t hz = number ? w->inner->raises.of[number - 1].hz : 0;
	return hz < most ? hz : most;
}

uint64_t raises_lost(const struct walk *w, uid_t uid, uint64_t *reported)
{
	const unsigned number = raises_number(w, uid);
	if (number == 0)
		return 0;
	uint64_t now = w->sampler->raised_lost[number], n = now > *reported ? now - *reported : 0;
	*reported = now;
	return n;
}

/* End the raise for the tasks that `by` raised (0: for all of its tasks): the session's own samples
 * represent them again. */
static void forget(struct walk *w, unsigned raise, pid_t by)
{
	for (struct task *task = w->tasks.live; task; task = task->hh.next)
		if (task->raised == raise && (by == 0 || task->raised_by == by))
			task->raised = 0;
}

static void end(struct walk *w, struct raise *r)
{
	unsigned number = (unsigned)(r - w->inner->raises.of) + 1;
	sampler_lower_task(w->sampler, number, 0);
	forget(w, number, 0);
	r->n_tasks = r->next = r->n_asked = 0;
}

bool raises_want(struct walk *w, uid_t uid, uint32_t hz)
{
	struct raises *all = &w->inner->raises;
	struct raise *r = raise_of(w, uid);
	for (unsigned i = 0; !r && hz > 0 && i < RAISES_MAX; i++)
		r = all->of[i].hz == 0 ? &all->of[i] : NULL;
	if (!r || r->hz == hz)
		return r || hz == 0;
	all->n += r->hz == 0;
	if (r->hz > 0)
		end(w, r);
	all->n -= hz == 0;
	*r = (struct raise){.uid = uid, .hz = hz, .balance_ns = BALANCE_NS};
	return true;
}

static void ask(struct walk *w, struct raise *r, struct task *task)
{
	if (r->n_asked == RAISE_ASKED_MAX || task->raised || task->end_ns || task->kernel_thread)
		return;
	task->raised = (uint8_t)(r - w->inner->raises.of + 1);
	task->raised_by = task->tid;
	task->raised_ns = UINT64_MAX;
	r->asked[r->n_asked++] = task->tid;
}

void raises_name(struct walk *w, uid_t uid, const pid_t *pids, size_t n_pids)
{
	const unsigned number = raises_number(w, uid);
	for (struct task *task = w->tasks.live; number > 0 && n_pids > 0 && task;
		task = task->hh.next)
		for (size_t i = 0; i < n_pids; i++)
			if (task->process->pid == pids[i] && task->process->uid == uid)
				ask(w, &w->inner->raises.of[number - 1], task);
}

void raises_notice(struct walk *w, const struct attribution *a)
{
	struct task *task = a->task;
	if (w->inner->raises.n == 0 || a->count == 0 || !task)
		return;
	struct raise *r = raise_of(w, task->process->uid);
	if (r && a->time_ns >= r->retry_ns)
		ask(w, r, task);
}

static uint32_t tasks_max(const struct walk *w)
{
	uint32_t n = RAISE_EVENTS_MAX / (uint32_t)w->sampler->machine.n_harts;
	return n > RAISE_TASKS_MAX ? RAISE_TASKS_MAX : n > 4 ? n : 4;
}

/* Open the events of a task. If they cannot be opened, the task is sampled as before. */
static int open_one(struct walk *w, struct raise *r, struct task *task, uint64_t now_ns)
{
	const unsigned number = task->raised;
	if (r->n_tasks == tasks_max(w)) {
		pid_t oldest = r->task[r->next];
		sampler_lower_task(w->sampler, number, oldest);
		forget(w, number, oldest);
	}
	int e = sampler_raise_task(w->sampler, number, r->hz, task->tid);
	if (e == -ENOMEM)
		return e;
	if (e != 0) {
		if (e < 0 || e == SAMPLER_REFUSED)
			r->retry_ns = now_ns + RETRY_NS;
		task->raised = 0;
		return 0;
	}
	task->raised_ns = clock_ns(CLOCK_MONOTONIC);
	r->task[r->next] = task->tid;
	r->next = (r->next + 1) % tasks_max(w);
	r->n_tasks += r->n_tasks < tasks_max(w);
	return 0;
}

int raises_dispatch(struct walk *w, uint64_t now_ns)
{
	struct raises *all = &w->inner->raises;
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + WAIT_NS;
	int e = 0;
	for (unsigned i = 0; all->n > 0 && i < RAISES_MAX && e == 0; i++) {
		struct raise *r = &all->of[i];
		while (r->n_asked > 0 && e == 0 &&
			clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns < OPEN_NS &&
			clock_ns(CLOCK_MONOTONIC) < until_ns) {
			struct task *task = task_find(&w->tasks, r->asked[--r->n_asked]);
			if (task && task->raised == i + 1 && task->raised_ns == UINT64_MAX)
				e = open_one(w, r, task, now_ns);
		}
	}
	return e;
}

void raises_look_at_harts(struct walk *w, bool reopened)
{
	struct raises *all = &w->inner->raises;
	struct hart_set now = {0};
	const bool first = hart_set_count(&all->harts) == 0;
	for (size_t i = 0; i < w->sampler->n_rings; i++) {
		const struct ring *ring = &w->sampler->ring[i];
		if (ring->raise != 0 || ring->sideband)
			continue;
		reopened |= !first && !hart_set_has(&all->harts, ring->hart);
		hart_set_add(&now, ring->hart);
	}
	all->harts = now;
	for (unsigned i = 0; reopened && i < RAISES_MAX; i++)
		if (all->of[i].n_tasks > 0)
			end(w, &all->of[i]);
}

bool raises_show(const struct walk *w, uid_t uid, struct attribution *seen)
{
	const unsigned number = w->inner->raises.n > 0 ? raises_number(w, uid) : 0;
	if (seen->raise)
		return seen->raise == number;
	if (seen->is_offcpu) /* no other samples stand for it */
		return true;
	const struct task *task = seen->task;
	if (number == 0 || !task || task->raised != number || seen->time_ns < task->raised_ns)
		return true;
	seen->count = seen->uncounted = seen->weight_ns = seen->period = 0;
	return seen->n_reads > 0;
}

bool raises_admit(struct walk *w, unsigned raise, uint64_t units)
{
	struct raise *r = &w->inner->raises.of[(raise - 1) % RAISES_MAX];
	if (r->balance_ns < 0) {
		w->sampler->raised_lost[raise % (RAISES_MAX + 1)]++;
		return false;
	}
	r->units += units;
	return true;
}

void raises_charge(struct walk *w, uint64_t took_ns, uint64_t now_ns)
{
	struct raises *all = &w->inner->raises;
	const uint64_t units = all->units ? all->units : 1;
	const uint64_t past_ns = now_ns > all->filled_ns ? now_ns - all->filled_ns : 0;
	all->units = 0;
	if (all->n == 0)
		return;
	all->filled_ns = now_ns;
	for (unsigned i = 0; i < RAISES_MAX; i++) {
		struct raise *r = &all->of[i];
		int64_t came = (int64_t)(past_ns / RAISES_TIME_PART / all->n);
		r->balance_ns +=
			came - (int64_t)((double)took_ns * (double)r->units / (double)units);
		if (r->balance_ns > BALANCE_NS)
			r->balance_ns = BALANCE_NS;
		r->units = 0;
	}
}
