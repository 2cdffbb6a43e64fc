/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * We keep every n-th sample of each hart, where n is the ratio of the two rates and may be fractional: the
 * lower rate is added up until it reaches the higher. The choice does not depend on what runs, so each
 * sample has the same chance, and the weights of the skipped samples before it are added to it. So the
 * estimate has no bias, and its sum is exact. Counters are no estimate: counts belong to the task that
 * counted them. They wait for that task's next sample, or are added without a sample before the window is
 * stored.
 */
#include "daemon/session/downsample.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/hash_table.h"

struct thin_hart {
	uint64_t phase;
	uint64_t weight_ns, period; /* of samples skipped since the last that was kept */
};

/* Counts of a task in skipped samples; without frames. */
struct thin_task {
	uint32_t id;
	struct attribution sum;
	UT_hash_handle hh;
};

struct downsample {
	uint32_t hz;
	int n_harts;
	uint64_t n_passed;
	struct thin_task *tasks;
	struct thin_hart hart[];
};

int downsample_new(uint32_t hz, int n_harts, struct downsample **ret_downsample)
{
	struct downsample *t = calloc(1, sizeof(*t) + (size_t)n_harts * sizeof(*t->hart));
	if (!t)
		return -ENOMEM;
	t->hz = hz;
	t->n_harts = n_harts;
	*ret_downsample = t;
	return 0;
}

/* Add the counts of one attribution to another's. There is room for the events of every group that we
 * open. */
static void add_reads(struct attribution *to, const struct attribution *from)
{
	for (uint32_t i = 0; i < from->n_reads; i++) {
		uint32_t at = 0;
		while (at < to->n_reads && to->read[at].event != from->read[i].event)
			at++;
		if (at == EVENT_GROUP_MAX)
			continue;
		if (at == to->n_reads) {
			to->n_reads++;
			to->read[at] = from->read[i];
			continue;
		}
		to->read[at].value += from->read[i].value;
		to->read[at].enabled_ns += from->read[i].enabled_ns;
		to->read[at].running_ns += from->read[i].running_ns;
	}
}

static struct thin_task *find(const struct downsample *t, const struct attribution *a)
{
	struct thin_task *task = NULL;
	uint32_t id = a->task ? a->task->id : 0;
	if (t->tasks)
		HASH_FIND(hh, t->tasks, &id, sizeof(id), task);
	return task;
}

static void drop(struct downsample *t, struct thin_task *task)
{
	HASH_DEL(t->tasks, task);
	free(task);
}

static int pass(struct downsample *t, const struct attribution *a)
{
	t->hart[a->hart].weight_ns += a->weight_ns;
	t->hart[a->hart].period += a->period;
	t->n_passed += a->count;
	if (a->n_reads == 0)
		return DOWNSAMPLE_PASSED;
	struct thin_task *task = find(t, a);
	if (task) {
		add_reads(&task->sum, a);
		return DOWNSAMPLE_PASSED;
	}
	task = calloc(1, sizeof(*task));
	if (!task)
		return -ENOMEM;
	task->id = a->task ? a->task->id : 0;
	task->sum = *a;
	task->sum.count = task->sum.uncounted = task->sum.weight_ns = task->sum.period = 0;
	task->sum.frame = NULL;
	task->sum.n_frames = 0;
	task->sum.truncated = false;
	HASH_ADD(hh, t->tasks, id, sizeof(task->id), task);
	if (!task->hh.tbl) {
		free(task);
		return -ENOMEM;
	}
	return DOWNSAMPLE_PASSED;
}

int downsample_take(struct downsample *t, uint32_t walk_hz, struct attribution *a)
{
	if (!t || a->hart < 0 || a->hart >= t->n_harts)
		return 0;
	struct thin_hart *hart = &t->hart[a->hart];
	if (a->count > 0 && walk_hz > t->hz) {
		hart->phase += t->hz;
		if (hart->phase < walk_hz)
			return pass(t, a);
		hart->phase -= walk_hz;
	}
	if (a->count > 0) {
		a->weight_ns += hart->weight_ns;
		a->period += hart->period;
		hart->weight_ns = hart->period = 0;
	}
	struct thin_task *task = find(t, a);
	if (task) {
		add_reads(a, &task->sum);
		drop(t, task);
	}
	return 0;
}

bool downsample_remaining(struct downsample *t, struct attribution *ret)
{
	if (!t || !t->tasks)
		return false;
	*ret = t->tasks->sum;
	drop(t, t->tasks);
	return true;
}

uint64_t downsample_passed(const struct downsample *t)
{
	return t ? t->n_passed : 0;
}

void downsample_mark(const struct downsample *t, struct sweep *sweep)
{
	for (const struct thin_task *task = t ? t->tasks : NULL; task; task = task->hh.next)
		sweep_keep_task(sweep, task->sum.task);
}

struct downsample *downsample_free(struct downsample *t)
{
	while (t && t->tasks)
		drop(t, t->tasks);
	free(t);
	return NULL;
}
