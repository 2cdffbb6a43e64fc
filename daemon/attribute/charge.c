/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Charging: counts belong to the task that ran
 *
 * A switch carries the counts of its group for the outgoing task. An attribution for each switch would
 * mean as many rows as switches, so the counts stay in the task until its next sample takes them. A task
 * that ends before that delivers them in an attribution without a sample.
 *
 * If BPF sums up the counts of tasks, a task's sum comes just before its sample, and the counts in the
 * sample itself are not used.
 *
 * A group that is not cut at switches has a sibling that counts switches. Only stretches between two
 * samples in which that sibling did not move are charged. A sibling that never moved proves nothing: it
 * reads 0 for ever if it excludes the kernel, where all switches happen. So if it reads 0, nothing is
 * charged. It counts a switch with interrupts off, before the next task runs. Only a non-maskable
 * interrupt can come in between; then the remaining work of the switch is charged to the next task.
 */

#include <errno.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"

/* Pending counts of one event. */
enum { PENDING_VALUE, PENDING_ENABLED, PENDING_RUNNING, N_PENDING };

struct charges {
	const struct attribute_options *o;
	struct delta_table deltas; /* readings to compare the next ones with */
	struct charged_event {
		int leader;     /* the sampling event of its group, as last seen */
		enum rung rung; /* likewise */
	} event[];              /* of the session */
};

struct charges *charge_new(const struct attribute_options *o)
{
	size_t n_events = o->n_events > 0 ? (size_t)o->n_events : 1;
	struct charges *c = calloc(1, sizeof(*c) + n_events * sizeof(*c->event));

	if (c)
		c->o = o;
	return c;
}

struct charges *charge_free(struct charges *c)
{
	if (c)
		delta_table_clear(&c->deltas);
	free(c);
	return NULL;
}

static int event_of(const struct charges *c, uint64_t id)
{
	const struct stream *s = stream_table_find(c->o->streams, id);

	return s && s->event >= 0 && s->event < c->o->n_events ? s->event : -1;
}

/* Remember the group of an event: pending counts are sunk by group. */
static void charge_learn(
	struct charges *c, const struct stream *stream, const struct record_sample *s)
{
	for (uint32_t i = 0; i < s->n_read; i++) {
		int event = event_of(c, s->read[i].id);
		if (event < 0)
			continue;
		/* sums may have events of another kind of hart */
		const struct stream *of = stream_table_find(c->o->streams, s->read[i].id) ?: stream;
		int leader = event_of(c, of->leader);
		c->event[event].leader = leader >= 0 ? leader : event;
		c->event[event].rung = of->rung;
	}
}

/* The sibling counts switches and delivers a record for each. But the kernel suppresses the record
 * if it has throttled the group, and for the idle task on all but the first hart (seen on Linux
 * 6.18: the event counts without a sample). It is opened last, so its value is read last. */
static uint64_t count_unrecorded(
	const struct charges *c, const struct record *r, const struct delta *d)
{
	const struct record_read_value *last = &d->read[d->n_reads - 1];
	const struct stream *s = stream_table_find(c->o->streams, last->id);
	uint64_t n_recorded = r->stream->role == STREAM_SWITCH;

	return s && s->role == STREAM_SWITCH && last->value > n_recorded ? last->value - n_recorded
									 : 0;
}

/* Did only one task run since the last reading of a group that is not cut? */
static bool is_of_one_task(
	const struct charges *c, const struct record_sample *s, const struct delta *d)
{
	const struct record_read_value *last = &s->read[s->n_read - 1];
	const struct stream *counter = stream_table_find(c->o->streams, last->id);

	return counter && counter->role == STREAM_SWITCH_COUNT && last->value > 0 &&
	       d->read[d->n_reads - 1].value == 0;
}

void charge_forget_hart(struct charges *c, int hart)
{
	delta_forget_hart(&c->deltas, hart);
}

void charge_forget_task(struct charges *c, pid_t tid)
{
	if (c->o->per_task)
		delta_forget_task(&c->deltas, tid);
}

int charge_delta(struct charges *c, const struct record *r, int hart, struct delta *ret_delta)
{
	const struct record_sample *s = &r->sample;

	ret_delta->n_reads = 0;
	if (!s->n_read)
		return 0;
	if (s->n_missed) {
		delta_forget_hart(&c->deltas, hart);
		lose(c->o, hart, LOSS_SWITCH, s->n_missed);
	}

	struct delta_key key = {
		.leader = r->stream->leader,
		.hart = hart,
		.tid = c->o->per_task ? (int32_t)r->tid : 0,
	};
	int result = delta_take(&c->deltas, &key, s, ret_delta);
	if (result < 0)
		return result;
	ret_delta->n_unrecorded = 0;
	if (result == DELTA_TABLE_FULL)
		lose(c->o, hart, LOSS_ROOM, 1);
	if (!result && r->stream->uncut && !is_of_one_task(c, s, ret_delta)) {
		ret_delta->n_reads = 0;
	} else if (!result && !r->stream->uncut && !c->o->per_task) {
		ret_delta->n_unrecorded = count_unrecorded(c, r, ret_delta);
		lose(c->o, hart, LOSS_SWITCH, ret_delta->n_unrecorded);
	}

	charge_learn(c, r->stream, s);
	return 0;
}

void charge_sums(struct charges *c, const struct record *r, int hart, struct delta *ret_delta)
{
	const struct record_sample *s = &r->sample;

	ret_delta->n_reads = s->n_read;
	ret_delta->enabled_ns = s->enabled_ns;
	ret_delta->running_ns = s->running_ns;
	ret_delta->n_unrecorded = s->n_missed;
	memcpy(ret_delta->read, s->read, s->n_read * sizeof(s->read[0]));
	if (s->n_missed)
		lose(c->o, hart, LOSS_SWITCH, s->n_missed);
	charge_learn(c, r->stream, s);
}

uint64_t charge_uncounted(const struct record *r, const struct delta *d)
{
	return r->stream->uncut && !d->n_reads;
}

/* The time for which a member counted. A throttled event does not count; nor do its siblings on kernels
 * that stop the whole group (throttle.c). */
static uint64_t ran_ns(const struct charges *c, const struct delta *d, uint64_t id)
{
	const struct stream *s = d->throttled_ns ? stream_table_find(c->o->streams, id) : NULL;
	bool stopped = s && (d->whole_group || s->leader == id);

	return stopped ? d->running_ns - d->throttled_ns : d->running_ns;
}

int charge_pending(struct charges *c, struct task *task, const struct delta *d)
{
	if (!d->n_reads || !c->o->n_events)
		return 0;
	if (!task->pending) {
		task->pending = calloc((size_t)c->o->n_events * N_PENDING, sizeof(*task->pending));
		if (!task->pending)
			return -ENOMEM;
	}

	for (uint32_t i = 0; i < d->n_reads; i++) {
		int event = event_of(c, d->read[i].id);
		if (event < 0)
			continue;

		uint64_t *pending = task->pending + event * N_PENDING;
		pending[PENDING_VALUE] += d->read[i].value;
		pending[PENDING_ENABLED] += d->enabled_ns;
		pending[PENDING_RUNNING] += ran_ns(c, d, d->read[i].id);
	}
	return 0;
}

static void charge_event(struct task *task, int event, struct attribution *to)
{
	uint64_t *pending = task->pending + event * N_PENDING;

	if (!pending[PENDING_VALUE] && !pending[PENDING_ENABLED])
		return;

	to->read[to->n_reads].event = event;
	to->read[to->n_reads].value = pending[PENDING_VALUE];
	to->read[to->n_reads].enabled_ns = pending[PENDING_ENABLED];
	to->read[to->n_reads].running_ns = pending[PENDING_RUNNING];
	to->n_reads++;
	for (int i = 0; i < N_PENDING; i++)
		pending[i] = 0;
}

void charge_take(struct charges *c, struct task *task, const struct record_sample *s,
	struct attribution *ret_attribution)
{
	if (!task->pending)
		return;

	for (uint32_t i = 0; i < s->n_read && ret_attribution->n_reads < EVENT_GROUP_MAX; i++) {
		int event = event_of(c, s->read[i].id);
		if (event >= 0)
			charge_event(task, event, ret_attribution);
	}
}

void charge_flush(struct charges *c, struct task *task, uint64_t time_ns, int hart)
{
	if (!task->pending)
		return;

	/* one attribution for each group */
	for (int leader = 0; leader < c->o->n_events; leader++) {
		struct attribution to = {
			.task = task,
			.cgroup = cgroup_find(c->o->tasks, task->cgroup),
			.time_ns = time_ns,
			.hart = hart,
			.event = leader,
			.rung = c->event[leader].rung,
		};

		for (int event = 0; event < c->o->n_events && to.n_reads < EVENT_GROUP_MAX; event++)
			if (c->event[event].leader == leader)
				charge_event(task, event, &to);
		if (to.n_reads)
			c->o->sink(c->o->userdata, &to);
	}
	free(task->pending);
	task->pending = NULL;
}
