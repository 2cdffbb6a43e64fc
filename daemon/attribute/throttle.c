/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Throttling: the time in which the kernel throttled an event
 *
 * A throttled event neither fires nor counts until the next tick. Its THROTTLE record comes just
 * before the sample that was one too many, its UNTHROTTLE record at that tick. Since Linux 6.16 the
 * event's whole group stops, its context-switches sibling included, while the times enabled and
 * running go on; before that, only the event itself stops:
 *
 *      sample   THROTTLE+sample                     UNTHROTTLE           sample
 *        │  counted    │  throttled: nothing counts,    │    counted        │
 *        │             │  since 6.16 no switch is seen  │                   │
 *
 * So throttled time is taken out of the running time of the members that stopped, and answers scale
 * their counts by it, like counts of a shared counter. If switches were not seen, the throttled time is
 * taken out of the stretch of the task that is read next, and belongs to the task that was throttled. If
 * another task runs at the end, the switch was somewhere in between, and each task gets half.
 *
 * A sample that is weighted by the rate represents its period. So throttled time of wanted tasks is added
 * to the next sample (weigh.c), divided in the same way.
 */

#include "daemon/attribute/attribute_private.h"

/* A throttled event is unthrottled at the next tick, at most 10 ms later (CONFIG_HZ=100); a hart
 * that went idle meanwhile may have no tick for a long time. Source: perf_adjust_freq_unthr_events
 * in kernel/events/core.c of Linux 6.12. */
#define THROTTLED_NS_MAX 10000000u

/* The throttling of a group on a hart. */
struct throttle {
	uint64_t begin_ns;   /* when the kernel began to throttle it; 0: not throttled */
	uint64_t taken_ns;   /* begin_ns, or the last reading since; 0: not throttled */
	uint64_t unread_ns;  /* time throttled since the last reading */
	uint64_t leader;     /* its stream, which may be opened again meanwhile */
	uint32_t pid, tid;   /* the task that was throttled last */
	bool ended_in_other; /* another task ran when the throttling ended */
	bool by_bpf;         /* BPF reads it at switches, throttled or not */
};

struct throttles {
	bool whole_groups;          /* this kernel stops the siblings of a throttled event too */
	struct throttle throttle[]; /* by group_index */
};

struct throttles *throttle_new(const struct attribute_options *o)
{
	struct throttles *t = calloc(1, sizeof(*t) + n_groups(o) * sizeof(*t->throttle));

	if (t)
		t->whole_groups = o->throttles_groups;
	return t;
}

static struct throttle *throttle_of(struct attribute *a, const struct record *r, int hart)
{
	ptrdiff_t i = group_index(&a->o, group_leader(&a->o, r), hart);

	return i < 0 ? NULL : &a->throttles->throttle[i];
}

/* Add the time since it was added last, up to time_ns. */
static void throttle_grow(struct throttle *t, uint64_t time_ns)
{
	uint64_t end_ns = t->begin_ns + THROTTLED_NS_MAX;

	if (time_ns < end_ns)
		end_ns = time_ns;
	if (end_ns <= t->taken_ns)
		return;
	t->unread_ns += end_ns - t->taken_ns;
	t->taken_ns = end_ns;
}

/* The wanted task of that pid and tid. NULL: idle, unknown, or not wanted. */
static struct task *wanted_task(
	const struct attribute *a, uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	if (tid == 0 || tid > INT32_MAX)
		return NULL;
	struct task *task = task_find(a->o.tasks, (pid_t)tid);
	if (!task || task->pid != (pid_t)pid)
		task = life_find_ended(a->lives, (pid_t)pid, (pid_t)tid, time_ns);
	return task && (a->o.all || task->wanted) ? task : NULL;
}

void throttle_begin(struct attribute *a, const struct record *r, int hart)
{
	struct throttle *t = throttle_of(a, r, hart);

	if (!t)
		return;
	t->begin_ns = t->taken_ns = r->time_ns;
	t->leader = r->stream->leader;
	t->pid = r->pid;
	t->tid = r->tid;
	t->ended_in_other = false;
}

void throttle_end(struct attribute *a, const struct record *r, int hart)
{
	struct throttle *t = throttle_of(a, r, hart);

	if (!t || !t->begin_ns)
		return;
	uint64_t throttled_ns = r->time_ns > t->begin_ns ? r->time_ns - t->begin_ns : 0;
	if (throttled_ns > THROTTLED_NS_MAX)
		throttled_ns = THROTTLED_NS_MAX;
	throttle_grow(t, r->time_ns);
	t->ended_in_other = r->tid != t->tid;
	t->begin_ns = t->taken_ns = 0;

	uint64_t first_ns = t->ended_in_other ? throttled_ns / 2 : throttled_ns;
	if (wanted_task(a, t->pid, t->tid, r->time_ns))
		weigh_throttled(a->clocks, r, hart, first_ns);
	if (wanted_task(a, r->pid, r->tid, r->time_ns))
		weigh_throttled(a->clocks, r, hart, throttled_ns - first_ns);
}

/* Give the task that was throttled its share of the throttled time, in which nothing was counted. Take
 * that share out of *d, which belongs to another task. 0 or -ENOMEM. */
static int throttle_divide(struct attribute *a, const struct record *r, int hart,
	const struct throttle *t, struct delta *d)
{
	uint64_t first_ns = t->ended_in_other ? d->throttled_ns / 2 : d->throttled_ns;
	struct task *task = wanted_task(a, t->pid, t->tid, r->time_ns);

	d->enabled_ns -= first_ns;
	d->running_ns -= first_ns;
	d->throttled_ns -= first_ns;
	if (!task || task->end_ns)
		return 0;

	struct delta first = {.n_reads = d->n_reads, .whole_group = d->whole_group};
	for (uint32_t i = 0; i < d->n_reads; i++)
		first.read[i].id = d->read[i].id;
	first.enabled_ns = first.running_ns = first.throttled_ns = first_ns;
	weigh_ran(a->clocks, r, hart, first_ns);
	return charge_pending(a->charges, task, &first);
}

/* False if the end came without a record: the event was closed, or its task is somewhere else. */
static bool is_throttled(const struct throttle *t, const struct record *r)
{
	return r->stream->leader == t->leader && r->time_ns < t->begin_ns + THROTTLED_NS_MAX;
}

int throttle_cut(struct attribute *a, const struct record *r, int hart, struct delta *d)
{
	struct throttles *all = a->throttles;
	struct throttle *t = throttle_of(a, r, hart);

	d->throttled_ns = 0;
	if (!t)
		return 0;
	t->by_bpf |= r->stream->role == STREAM_SWITCH_BPF;
	if (t->begin_ns) {
		throttle_grow(t, r->time_ns);
		/* A sibling that fires meanwhile was not stopped, whatever the kernel's version. */
		if (r->stream->role == STREAM_SWITCH && is_throttled(t, r))
			all->whole_groups = false;
		if (!is_throttled(t, r))
			t->begin_ns = t->taken_ns = 0;
	}
	/* Sums do not say when their task ran: all throttled time belongs to the throttled task. */
	if (r->stream->role == STREAM_SWITCH_SUMS && r->tid != t->tid)
		return 0;
	uint64_t throttled_ns = t->unread_ns;
	t->unread_ns = 0;
	if (!throttled_ns || !r->sample.n_read || !d->n_reads)
		return 0;

	d->whole_group = all->whole_groups;
	d->throttled_ns = throttled_ns < d->enabled_ns ? throttled_ns : d->enabled_ns;
	if (d->throttled_ns > d->running_ns)
		d->throttled_ns = d->running_ns;
	/* If the switches in the throttled time were seen, the counts were cut there. */
	bool seen = !all->whole_groups || a->o.per_task || t->by_bpf;
	if (seen || r->tid == t->tid)
		return 0;
	return throttle_divide(a, r, hart, t, d);
}

void throttle_forget_hart(struct attribute *a, int hart)
{
	struct throttle *first = &a->throttles->throttle[(size_t)hart * (size_t)a->o.n_events];

	for (int event = 0; event < a->o.n_events; event++)
		first[event].begin_ns = first[event].taken_ns = first[event].unread_ns = 0;
}
