/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Attribute: from a record to the task and code that ran
 *
 * Records arrive in order of time over all harts. Records of the side band update tasks and mappings;
 * a sample is attributed by their state at that moment. No function here waits, and none drops a sample
 * silently: an attribution goes to the sink or to waiting.c, or a loss is counted. The one exception is
 * idle, which is not attributed to anything.
 */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/attribute/scan.h"
#include "daemon/sampler/sampler.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

DEFINE_CLEANUP(struct attribute *, attribute_free)

/* CLOCK_BOOTTIME - CLOCK_MONOTONIC: how long the machine was suspended. */
static uint64_t suspended_ns(void)
{
	uint64_t monotonic = clock_ns(CLOCK_MONOTONIC), boot = clock_ns(CLOCK_BOOTTIME);

	/* without a suspend the difference is the time between the two calls */
	return boot - monotonic > 1000000 ? boot - monotonic : 0;
}

static uint32_t max_stack_read(const char *proc)
{
	char path[PATH_MAX], text[32];
	const char *p = text;
	uint64_t n;

	snprintf(path, sizeof(path), "%s/sys/kernel/perf_event_max_stack", proc);
	if (scan_text(AT_FDCWD, path, text, sizeof(text)) <= 0 || !scan_number(&p, 10, &n) || !n ||
		n > UINT32_MAX)
		return STACK_DEPTH_DEFAULT;
	return (uint32_t)n;
}

static int attribute_allocate(struct attribute *a)
{
	size_t n_harts = a->o.n_harts > 0 ? (size_t)a->o.n_harts : 1;
	size_t n_events = a->o.n_events > 0 ? (size_t)a->o.n_events : 1;

	a->ended = calloc(ENDED_SLOTS, sizeof(*a->ended));
	a->n_fired = calloc(n_harts, sizeof(*a->n_fired));
	a->exited = calloc(n_harts, sizeof(*a->exited));
	a->leader_of = calloc(n_events, sizeof(*a->leader_of));
	a->rung_of = calloc(n_events, sizeof(*a->rung_of));
	a->stand = calloc(n_harts * n_events, sizeof(*a->stand));
	a->reread = calloc(REREAD_MAX, sizeof(*a->reread));
	a->exec = calloc(EXECS_MAX, sizeof(*a->exec));
	a->silent = calloc(SILENT_MAX, sizeof(*a->silent));
	a->awaited = calloc(AWAITED_MAX, sizeof(*a->awaited));
	a->known = calloc(PLACES_KNOWN, sizeof(*a->known));
	a->exec_due_ns = UINT64_MAX;
	a->throttles_groups = a->o.throttles_groups;
	return a->ended && a->n_fired && a->exited && a->leader_of && a->rung_of && a->stand &&
			       a->reread && a->exec && a->silent && a->awaited && a->known
		       ? 0
		       : -ENOMEM;
}

int attribute_new(const struct attribute_options *o, struct attribute **ret_attribute)
{
	_cleanup_(attribute_freep) struct attribute *a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;

	a->o = *o;
	if (!a->o.rights)
		a->o.rights = rights_read;
	if (!a->o.is_gone && strcmp(a->o.proc, "/proc") == 0)
		a->o.is_gone = proc_is_gone;
	a->cgroup_root_fd = -1;
	a->cgroup_pass = 1;
	a->kernel_generation = UINT64_C(1) << 63; /* above those of spaces, which count up from 1 */
	int r = attribute_allocate(a);
	if (!r)
		r = kernel_map_read(o->proc, &a->kernel);
	if (!r)
		r = owner_read_logins(a);
	if (r < 0)
		return r;

	long ticks = sysconf(_SC_CLK_TCK);
	a->tick_ns = 1000000000u / (uint64_t)(ticks > 0 ? ticks : 100);
	a->suspended_ns = suspended_ns();
	a->max_stack = max_stack_read(o->proc);
	census_cgroup_root(a);
	*ret_attribute = TAKE_PTR(a);
	return 0;
}

struct proc_reader *attribute_reader(const struct attribute *a)
{
	return a ? a->o.reader : NULL;
}

uint64_t attribute_n_fired(const struct attribute *a, int hart)
{
	return a->n_fired[hart];
}

/* Take a switch, or a sample of an ended task: no later sample of the task may take its counts. */
static int attribute_switch(struct attribute *a, const struct record *r, int hart)
{
	struct delta delta;
	struct task *task;

	int result = charge_delta(a, r, hart, &delta);
	if (!result)
		result = silence_cut(a, r, hart, &delta);
	if (!result)
		result = sideband_task(a, r, hart, &task);
	if (result < 0 || !task || !(a->o.all || task->wanted))
		return result;

	owner_sampled(a, task);
	weigh_stretch(a, r, hart, &delta);
	result = charge_pending(a, task, &delta);
	if (!result && task->end_ns)
		charge_flush(a, task, r->time_ns, hart);
	return result;
}

/* Attribute the counts of a task since its last record of sums. */
static int attribute_sums(struct attribute *a, const struct record *r, int hart)
{
	struct delta delta;
	struct task *task;

	charge_sums(a, r, hart, &delta);
	weigh_sums(a, r, hart);
	int result = silence_cut(a, r, hart, &delta);
	if (!result)
		result = sideband_task(a, r, hart, &task);
	if (result < 0 || !task || !delta.enabled_ns)
		return result;

	owner_sampled(a, task);
	result = charge_pending(a, task, &delta);
	if (!result && task->end_ns)
		charge_flush(a, task, r->time_ns, hart);
	return result;
}

/* Take the counts of a sample's group since its last reading. */
static int read_sample(
	struct attribute *a, const struct record *r, int hart, struct delta *ret_delta)
{
	if (r->stream->summed) {
		ret_delta->n_reads = 0;
		return 0;
	}
	int result = charge_delta(a, r, hart, ret_delta);
	return result ? result : silence_cut(a, r, hart, ret_delta);
}

/* Find a cgroup by its id. A session of some processes has not looked at all cgroups: it reads the
 * process's cgroup in /proc, once for each id. */
static int find_cgroup(
	struct attribute *a, struct task *process, uint64_t id, const struct cgroup **ret_cgroup)
{
	uint64_t *asked = &a->asked_cgroup[id % CGROUPS_ASKED];

	*ret_cgroup = cgroup_find(a->o.tasks, id);
	if (*ret_cgroup || a->o.all || *asked == id)
		return 0;
	*asked = id;
	int r = census_cgroup(a, process);
	*ret_cgroup = cgroup_find(a->o.tasks, id);
	return r;
}

/* Move the task to the sample's cgroup. Its use so far belongs to the cgroup that it was in. */
static int change_cgroup(struct attribute *a, const struct record *r, struct task **task, int hart)
{
	uint64_t id = r->sample.cgroup;

	if (!id || (*task)->cgroup == id)
		return 0;
	const struct cgroup *cgroup = NULL;
	int result = find_cgroup(a, (*task)->process, id, &cgroup);
	if (result < 0 || !(*task)->cgroup || !cgroup)
		return result;
	return life_change(a, task, r->time_ns, hart);
}

static const struct cgroup *sample_cgroup(
	struct attribute *a, const struct record *r, struct task *task)
{
	uint64_t id = r->sample.cgroup;
	const struct cgroup *cgroup = cgroup_find(a->o.tasks, id ? id : task->cgroup);

	if (!id || !cgroup)
		return cgroup; /* one without a name is not the one before */
	if (task->cgroup != id) {
		task->cgroup = id;
		task->changed = true;
	}
	return cgroup;
}

static int attribute_stack(
	struct attribute *a, const struct record *r, struct task *task, struct attribution *to)
{
	const struct record_sample *s = &r->sample;
	struct stack_walk w; /* clear only the small part before the frames */

	w.a = a;
	w.task = task;
	w.hart = to->hart;
	w.time_ns = r->time_ns;
	w.n_frames = 0;
	w.truncated = w.has_user = w.ended = false;
	w.kernel_only = s->regs_abi && s->n_stack && task_space(task);
	w.user_ip = 0;

	int result = stack_walk_chain(&w, s);
	if (result < 0)
		return result;
	if (w.kernel_only)
		return waiting_add(&w, r, to);
	stack_walk_sink(&w, to);
	return 0;
}

/* Tasks outside our pid namespace have the pid of idle. But clocks do not fire in idle (exclude_idle),
 * and it never is in user mode. Source: perf_event_pid_type in kernel/events/core.c of Linux 6.12. */
static bool is_outside(const struct record *r)
{
	const struct record_sample *s = &r->sample;
	if (r->tid != 0)
		return false;
	if (!s->kernel || r->stream->rung == RUNG_CLOCK || r->stream->rung == RUNG_CLOCK_LEADER)
		return true;
	for (uint64_t i = 0; i < s->n_callchain; i++)
		if (record_chain_at(s, i) == PERF_CONTEXT_USER)
			return true;
	return false;
}

static int attribute_sample(struct attribute *a, const struct record *r, int hart)
{
	struct delta delta;
	struct task *task;

	int result = read_sample(a, r, hart, &delta);
	if (!result)
		result = sideband_task(a, r, hart, &task);
	if (!result && task && missed_has(task->process, r->time_ns)) {
		result = missed_exec(a, task->process, hart);
		if (!result) /* it may go on as another */
			result = sideband_task(a, r, hart, &task);
	}
	if (result == 0 && !task && a->o.all && is_outside(r))
		lose(a, hart, LOSS_OUTSIDE, 1);
	if (result < 0 || !task || !(a->o.all || task->wanted))
		return result;

	result = change_cgroup(a, r, &task, hart);
	if (result < 0)
		return result;
	if (!task->comm[0])
		lose(a, hart, LOSS_TASK, 1);
	owner_sampled(a, task);
	weigh_stretch(a, r, hart, &delta);
	result = charge_pending(a, task, &delta);
	if (result < 0)
		return result;

	struct attribution to = {
		.task = task,
		.cgroup = sample_cgroup(a, r, task),
		.time_ns = r->time_ns,
		.hart = hart,
		.event = r->stream->event,
		.rung = r->stream->rung,
		.count = 1,
		.uncounted = charge_uncounted(r, &delta),
		.weight_ns = weigh_take(a, r, hart, &delta),
		.period = r->sample.period,
	};
	charge_take(a, task, &r->sample, &to);
	return attribute_stack(a, r, task, &to);
}

/* Is the task of such a sample still known? Rings of raises may be drained late, and a task that has ended since must
 * not begin again. */
static bool raised_is_known(const struct attribute *a, const struct record *r)
{
	if (r->tid == 0 || r->tid > INT32_MAX || r->pid == 0 || r->pid > INT32_MAX)
		return false;
	const struct task *task = task_find(a->o.tasks, (pid_t)r->tid);
	return (task && task->pid == (pid_t)r->pid && r->time_ns >= task->start_ns) ||
	       life_find_ended(a, (pid_t)r->pid, (pid_t)r->tid, r->time_ns);
}

/* Take a sample of a raise. It has no counts: the task's next sample of the session's own events has them. */
static int attribute_raised(struct attribute *a, const struct record *r, int hart)
{
	struct task *task;

	if (!raised_is_known(a, r)) {
		if (a->o.raised_lost)
			a->o.raised_lost[r->stream->raise]++;
		return 0;
	}
	int result = sideband_task(a, r, hart, &task);
	if (result < 0 || !task)
		return result;
	result = change_cgroup(a, r, &task, hart);
	if (result < 0)
		return result;

	owner_sampled(a, task);
	struct attribution to = {
		.task = task,
		.cgroup = sample_cgroup(a, r, task),
		.time_ns = r->time_ns,
		.hart = hart,
		.event = r->stream->event,
		.rung = r->stream->rung,
		.count = 1,
		.weight_ns = r->stream->weight_ns,
		.period = r->sample.period,
		.raise = r->stream->raise,
	};
	return attribute_stack(a, r, task, &to);
}

static int attribute_fired(struct attribute *a, const struct record *r, int hart)
{
	if (!r->stream) {
		lose(a, hart, LOSS_STREAM, 1);
		return 0;
	}

	switch (r->stream->role) {
	case STREAM_SAMPLER:
		a->n_fired[hart]++;
		return attribute_sample(a, r, hart);
	case STREAM_SWITCH:
	case STREAM_SWITCH_BPF:
		return attribute_switch(a, r, hart);
	case STREAM_SWITCH_SUMS:
		return attribute_sums(a, r, hart);
	case STREAM_RAISED:
		return attribute_raised(a, r, hart);
	case STREAM_SIDEBAND:
	case STREAM_SIBLING:
	case STREAM_SWITCH_COUNT:
	case STREAM_EXEC:
	case STREAM_EXEC_BPF:
	case STREAM_RING:
		break; /* these do not fire */
	}
	return 0;
}

static int attribute_cgroup(struct attribute *a, const struct record *r, int hart)
{
	const struct task *maker = task_find(a->o.tasks, (pid_t)r->tid);
	int result = cgroup_set(a->o.tasks, r->cgroup.id, r->cgroup.path, task_account(maker));

	if (result > 0)
		lose(a, hart, LOSS_ROOM, 1);
	return result < 0 ? result : 0;
}

/* Take a record that a ring was full. Do not count losses that the kernel has already reported. */
static int attribute_lost(struct attribute *a, const struct record *r, int hart)
{
	uint64_t none = 0, *ahead = a->o.lost_ahead ? &a->o.lost_ahead[hart] : &none;

	if (r->stream && r->stream->role == STREAM_RAISED) {
		if (a->o.raised_lost)
			a->o.raised_lost[r->stream->raise] += r->lost.n;
		return 0;
	}
	bool side_band = r->stream &&
			 (r->stream->role == STREAM_SIDEBAND || r->stream->role == STREAM_EXEC_BPF);
	if (side_band && a->o.sideband_apart) {
		lose(a, hart, LOSS_SIDEBAND, r->lost.n);
		return missed_look(a, r->time_ns, hart);
	}
	/* switches may be among them: counts since then cannot be charged to a task */
	delta_forget_hart(&a->deltas, hart);
	silence_forget_hart(a, hart);
	lose(a, hart, LOSS_RING, sampler_hear_lost(ahead, r->lost.n));
	return missed_look(a, r->time_ns, hart);
}

int attribute_record(struct attribute *a, const struct record *r, int hart)
{
	if (hart < 0 || hart >= a->o.n_harts)
		return -EINVAL;

	switch (r->kind) {
	case RECORD_SAMPLE:
		return attribute_fired(a, r, hart);
	case RECORD_MMAP:
		return sideband_mmap(a, r, hart);
	case RECORD_COMM:
		return sideband_comm(a, r, hart);
	case RECORD_FORK:
		return sideband_fork(a, r, hart);
	case RECORD_EXIT:
		return sideband_exit(a, r, hart);
	case RECORD_CGROUP:
		return attribute_cgroup(a, r, hart);
	case RECORD_LOST:
		return attribute_lost(a, r, hart);
	case RECORD_LOST_SAMPLES:
		lose(a, hart, LOSS_RING_SAMPLES, r->lost.n);
		return 0;
	case RECORD_THROTTLE:
		silence_begin(a, r, hart);
		lose(a, hart, LOSS_THROTTLE, 1);
		return 0;
	case RECORD_UNTHROTTLE:
		silence_end(a, r, hart);
		return 0;
	case RECORD_KSYMBOL:
		return generated_change(a, r);
	case RECORD_EXEC:
		return sideband_exec_record(a, r, hart);
	case RECORD_OTHER:
		return 0;
	}
	return 0;
}

/* Read the arguments of execs once more that were not in place yet. Those that come in a record may come in the next
 * drain. */
static void reread_execs(struct attribute *a)
{
	size_t n_kept = 0;

	for (size_t i = 0; i < a->n_reread; i++) {
		struct reread *again = &a->reread[i];
		struct task *process = life_now(a, again->process);

		if (again->awaits_record && !process->argv) {
			a->reread[n_kept++] = (struct reread){process, again->hart, false};
			continue;
		}
		/* at most one more attempt: without memory it stays unread */
		if (!process->argv && !process->end_ns)
			(void)census_argv(a, &process);
		exec_lost(a, process, again->hart);
	}
	a->n_reread = n_kept;
}

void attribute_drained(struct attribute *a)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	reread_execs(a);
	memset(a->looked, 0, sizeof(a->looked));
	quota_clear(&a->compared);
	/* without memory it is looked up again */
	(void)missed_drained(a, now_ns);
	(void)census_silent(a, now_ns);
	exec_expire(a, now_ns);
}

void attribute_forget_places(struct attribute *a)
{
	memset(a->known, 0, PLACES_KNOWN * sizeof(*a->known));
	memset(a->looked, 0, sizeof(a->looked));
}

struct attribute *attribute_free(struct attribute *a)
{
	if (!a)
		return NULL;

	census_free(a);
	waiting_clear(a);
	delta_table_clear(&a->deltas);
	kernel_map_clear(&a->kernel);
	kernel_code_clear(&a->code);
	closep(&a->cgroup_root_fd);
	free(a->ended);
	free(a->n_fired);
	free(a->exited);
	free(a->leader_of);
	free(a->rung_of);
	free(a->stand);
	free(a->reread);
	free(a->silent);
	free(a->awaited);
	free(a->known);
	exec_clear(a);
	free(a->watched);
	login_groups_clear(&a->logins);
	quota_clear(&a->compared);
	free(a);
	return NULL;
}
