/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Silences: the time that the kernel throttled an event
 *
 * A throttled event neither fires nor counts until the next tick. Its THROTTLE record comes just
 * before the sample that was one too many, its UNTHROTTLE record at that tick. Since Linux 6.16 the
 * event's whole group stops, its context-switches sibling included, while the times enabled and
 * running go on; before that, only the event itself stops:
 *
 *      sample   THROTTLE+sample                     UNTHROTTLE           sample
 *        │  counted    │  silent: nothing counts, since │    counted        │
 *        │             │  6.16 switches are not seen    │                   │
 *
 * So silent time is taken out of the running time of the members that stopped, and answers scale their
 * counts by it, like counts of a shared counter. If switches were not seen, silent time is taken out of
 * the stretch of the task that is read next, and belongs to the task that was throttled. If another task
 * runs at the end, the switch was somewhere in between, and each task gets half.
 *
 * A sample that is weighted by the rate represents its period. So silent time of wanted tasks is added to
 * the next sample, divided in the same way.
 */

#include "daemon/attribute/attribute_private.h"

/* A throttled event is unthrottled at the next tick, at most 10 ms later (CONFIG_HZ=100); a hart
 * that went idle meanwhile may have no tick for a long time. Source: perf_adjust_freq_unthr_events
 * in kernel/events/core.c of Linux 6.12. */
#define SILENT_NS_MAX 10000000u

/* The time since `since_ns`, or since the last reading, up to then is silent. */
static void silence_grow(struct stand *stand, uint64_t time_ns)
{
	uint64_t end_ns = stand->throttled_ns + SILENT_NS_MAX;

	if (time_ns < end_ns)
		end_ns = time_ns;
	if (end_ns <= stand->silent_since_ns)
		return;
	stand->unread_ns += end_ns - stand->silent_since_ns;
	stand->silent_since_ns = end_ns;
}

/* NULL: idle, unknown, or not wanted. */
static struct task *silence_task(
	const struct attribute *a, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	if (tid == 0 || tid > INT32_MAX)
		return NULL;
	struct task *task = task_find(a->o.tasks, (pid_t)tid);
	if (!task || task->pid != (pid_t)pid)
		task = life_find_ended(a, (pid_t)pid, (pid_t)tid, time_ns);
	return task && (a->o.all || task->wanted) ? task : NULL;
}

void silence_begin(struct attribute *a, const struct record *r, int hart)
{
	struct stand *stand = weigh_stand(a, r, hart);

	if (!stand)
		return;
	stand->throttled_ns = stand->silent_since_ns = r->time_ns;
	stand->silent_leader = r->stream->leader;
	stand->silent_pid = r->pid;
	stand->silent_tid = r->tid;
	stand->other_end = false;
}

void silence_end(struct attribute *a, const struct record *r, int hart)
{
	struct stand *stand = weigh_stand(a, r, hart);

	if (!stand || !stand->throttled_ns)
		return;
	uint64_t silent_ns =
		r->time_ns > stand->throttled_ns ? r->time_ns - stand->throttled_ns : 0;
	if (silent_ns > SILENT_NS_MAX)
		silent_ns = SILENT_NS_MAX;
	silence_grow(stand, r->time_ns);
	stand->other_end = r->tid != stand->silent_tid;
	stand->throttled_ns = stand->silent_since_ns = 0;

	uint64_t first_ns = stand->other_end ? silent_ns / 2 : silent_ns;
	if (silence_task(a, stand->silent_pid, stand->silent_tid, r->time_ns))
		stand->silent_ns += first_ns;
	if (silence_task(a, r->pid, r->tid, r->time_ns))
		stand->silent_ns += silent_ns - first_ns;
}

/* Give the task that was throttled its share of the silent time, in which nothing was counted, and take
 * that share out of *d, which is of another task. 0 or -ENOMEM. */
static int silence_divide(
	struct attribute *a, const struct record *r, struct stand *stand, struct delta *d)
{
	uint64_t first_ns = stand->other_end ? d->silent_ns / 2 : d->silent_ns;
	struct task *task = silence_task(a, stand->silent_pid, stand->silent_tid, r->time_ns);

	d->enabled_ns -= first_ns;
	d->running_ns -= first_ns;
	d->silent_ns -= first_ns;
	if (!task || task->end_ns)
		return 0;

	struct delta first = {.n_reads = d->n_reads};
	for (uint32_t i = 0; i < d->n_reads; i++)
		first.read[i].id = d->read[i].id;
	first.enabled_ns = first.running_ns = first.silent_ns = first_ns;
	stand->ran_ns += first_ns;
	return charge_pending(a, task, &first);
}

/* False if the end came without a record: the event was closed, or its task is somewhere else. */
static bool still_silent(const struct stand *stand, const struct record *r)
{
	return r->stream->leader == stand->silent_leader &&
	       r->time_ns < stand->throttled_ns + SILENT_NS_MAX;
}

int silence_cut(struct attribute *a, const struct record *r, int hart, struct delta *d)
{
	struct stand *stand = weigh_stand(a, r, hart);

	d->silent_ns = 0;
	if (!stand)
		return 0;
	stand->by_bpf |= r->stream->role == STREAM_SWITCH_BPF;
	if (stand->throttled_ns) {
		silence_grow(stand, r->time_ns);
		/* A sibling that fires meanwhile was not stopped, whatever the kernel's version. */
		if (r->stream->role == STREAM_SWITCH && still_silent(stand, r))
			a->throttles_groups = false;
		if (!still_silent(stand, r))
			stand->throttled_ns = stand->silent_since_ns = 0;
	}
	/* sums do not say when their task ran: all of the silence is the throttled task's */
	if (r->stream->role == STREAM_SWITCH_SUMS && r->tid != stand->silent_tid)
		return 0;
	uint64_t silent_ns = stand->unread_ns;
	stand->unread_ns = 0;
	if (!silent_ns || !r->sample.n_read || !d->n_reads)
		return 0;

	d->silent_ns = silent_ns < d->enabled_ns ? silent_ns : d->enabled_ns;
	if (d->silent_ns > d->running_ns)
		d->silent_ns = d->running_ns;
	/* If the switches during the silence were seen, the counts were cut there. */
	bool seen = !a->throttles_groups || a->o.per_task || stand->by_bpf;
	if (seen || r->tid == stand->silent_tid)
		return 0;
	return silence_divide(a, r, stand, d);
}

void silence_forget_hart(struct attribute *a, int hart)
{
	for (int event = 0; event < a->o.n_events; event++) {
		struct stand *stand =
			&a->stand[(size_t)hart * (size_t)a->o.n_events + (size_t)event];
		stand->throttled_ns = stand->silent_since_ns = stand->unread_ns = 0;
	}
}
