/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Charging: counts belong to who ran
 *
 * A switch says what its group counted for the task that is leaving. Making an attribution of each
 * would mean as many rows as switches, so the counts wait in the task until its next sample takes
 * them along. A task that ends before that delivers them with an attribution that counts no sample.
 */

#include <errno.h>

#include "daemon/attribute/station.h"

/* What pending holds for one event. */
enum { PENDING_VALUE, PENDING_ENABLED, PENDING_RUNNING, N_PENDING };

static int event_of(const struct attribute *a, uint64_t id)
{
	const struct stream *s = stream_table_find(a->o.streams, id);

	return s && s->event >= 0 && s->event < a->o.n_events ? s->event : -1;
}

/* Counts that wait in a task are of a sampling event's group; remember whose. */
static void charge_learn(
	struct attribute *a, const struct stream *stream, const struct record_sample *s)
{
	int leader = event_of(a, stream->leader);

	for (uint32_t i = 0; i < s->n_read; i++) {
		int event = event_of(a, s->read[i].id);
		if (event < 0)
			continue;
		a->leader_of[event] = leader >= 0 ? leader : event;
		a->rung_of[event] = stream->rung;
	}
}

/* The sibling counts switches, and tells of each as it counts it. But the kernel does not let it
 * where it has throttled the group, and of the idle task only on the first hart (seen on Linux
 * 6.18: the event counts, and no sample comes). Being the last that was opened, it is the last that
 * is read. */
static uint64_t count_untold(
	const struct attribute *a, const struct record *r, const struct delta *d)
{
	const struct record_read_value *last = &d->read[d->n_reads - 1];
	const struct stream *s = stream_table_find(a->o.streams, last->id);
	uint64_t n_told = r->stream->role == STREAM_SWITCH;

	return s && s->role == STREAM_SWITCH && last->value > n_told ? last->value - n_told : 0;
}

int charge_delta(struct attribute *a, const struct record *r, int hart, struct delta *ret_delta)
{
	const struct record_sample *s = &r->sample;

	ret_delta->n_reads = 0;
	if (!s->n_read)
		return 0;
	if (s->n_missed) {
		delta_forget_hart(&a->deltas, hart);
		lose(a, hart, LOSS_SWITCH, s->n_missed);
	}

	struct delta_key key = {
		.leader = r->stream->leader,
		.hart = hart,
		.tid = a->o.per_task ? (int32_t)r->tid : 0,
	};
	int result = delta_take(&a->deltas, &key, s, ret_delta);
	if (result < 0)
		return result;
	if (result == DELTA_TABLE_FULL)
		lose(a, hart, LOSS_ROOM, 1);
	if (!result && ret_delta->n_reads && !a->o.per_task) {
		ret_delta->n_untold = count_untold(a, r, ret_delta);
		lose(a, hart, LOSS_SWITCH, ret_delta->n_untold);
	}

	charge_learn(a, r->stream, s);
	return 0;
}

int charge_pending(struct attribute *a, struct task *task, const struct delta *d)
{
	if (!d->n_reads || !a->o.n_events)
		return 0;
	if (!task->pending) {
		task->pending = calloc((size_t)a->o.n_events * N_PENDING, sizeof(*task->pending));
		if (!task->pending)
			return -ENOMEM;
	}

	for (uint32_t i = 0; i < d->n_reads; i++) {
		int event = event_of(a, d->read[i].id);
		if (event < 0)
			continue;

		uint64_t *pending = task->pending + event * N_PENDING;
		pending[PENDING_VALUE] += d->read[i].value;
		pending[PENDING_ENABLED] += d->enabled_ns;
		pending[PENDING_RUNNING] += d->running_ns;
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

void charge_take(struct attribute *a, struct task *task, const struct record_sample *s,
	struct attribution *ret_attribution)
{
	if (!task->pending)
		return;

	for (uint32_t i = 0; i < s->n_read && ret_attribution->n_reads < EVENT_GROUP_MAX; i++) {
		int event = event_of(a, s->read[i].id);
		if (event >= 0)
			charge_event(task, event, ret_attribution);
	}
}

void charge_flush(struct attribute *a, struct task *task, uint64_t time_ns, int hart)
{
	if (!task->pending)
		return;

	/* one attribution for each group */
	for (int leader = 0; leader < a->o.n_events; leader++) {
		struct attribution to = {
			.task = task,
			.cgroup = cgroup_find(a->o.tasks, task->cgroup),
			.time_ns = time_ns,
			.hart = hart,
			.event = leader,
			.rung = a->rung_of[leader],
		};

		for (int event = 0; event < a->o.n_events && to.n_reads < EVENT_GROUP_MAX; event++)
			if (a->leader_of[event] == leader)
				charge_event(task, event, &to);
		if (to.n_reads)
			a->o.sink(a->o.userdata, &to);
	}
	free(task->pending);
	task->pending = NULL;
}
