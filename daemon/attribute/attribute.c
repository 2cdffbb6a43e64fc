/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Attribute: from a record to the task and code that ran
 *
 * Records arrive in order of time over all harts. Records of the side band update tasks and mappings;
 * a sample is attributed by the state of both at its time. No function here waits, and none drops a
 * sample silently: an attribution goes to the sink or to waiting.c, or a loss is counted. The one
 * exception is idle, which is not attributed to anything.
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "daemon/attribute/attribute_private.h"
#include "daemon/attribute/scan.h"
#include "daemon/sampler/sampler.h"
#include "proto/base/clock.h"
#include "proto/base/memory.h"

DEFINE_CLEANUP(struct attribute *, attribute_free)

/* Ids of cgroups that had no name, and in which a process was read once. */
#define CGROUPS_READ 64u

/* State from one sample to the next. */
struct intake {
	uint64_t read_cgroup[CGROUPS_READ]; /* ids, by id modulo this */
	uint64_t n_fired[];                 /* by hart: samples of its own event */
};

static struct intake *intake_new(const struct attribute_options *o)
{
	size_t n_harts = o->n_harts > 0 ? (size_t)o->n_harts : 1;

	return calloc(1, sizeof(struct intake) + n_harts * sizeof(uint64_t));
}

static int make_parts(struct attribute *a)
{
	const struct attribute_options *o = &a->o;

	a->intake = intake_new(o);
	a->lives = life_new(o);
	a->execs = exec_argv_new();
	a->awaited = lost_exec_new();
	a->charges = charge_new(o);
	a->clocks = weigh_new(o);
	a->throttles = throttle_new(o);
	a->checked_files = mapping_new();
	a->comparisons = remapped_new();
	a->generated = generated_new();
	a->places = calloc(1, sizeof(*a->places));
	a->walks = stack_walk_new(o->proc);
	a->waits = waiting_new();
	a->unanswered = unanswered_new();
	a->cgroups = cgroup_root_new(o->proc);
	if (!a->intake || !a->lives || !a->execs || !a->awaited || !a->charges || !a->clocks ||
		!a->throttles || !a->checked_files || !a->comparisons || !a->generated ||
		!a->places || !a->walks || !a->waits || !a->unanswered || !a->cgroups)
		return -ENOMEM;
	place_cache_begin(a->places);
	return 0;
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
	int r = make_parts(a);
	if (!r)
		r = kernel_map_read(o->proc, &a->kernel);
	if (!r)
		r = owner_new(o->proc, &a->owners);
	if (r < 0)
		return r;
	*ret_attribute = TAKE_PTR(a);
	return 0;
}

struct proc_reader *attribute_reader(const struct attribute *a)
{
	return a ? a->o.reader : NULL;
}

uint64_t attribute_n_fired(const struct attribute *a, int hart)
{
	return a->intake->n_fired[hart];
}

/* Take a reading at a switch. If the task has ended, no later sample will take its counts, so
 * they are sunk at once. */
static int attribute_switch(struct attribute *a, const struct record *r, int hart)
{
	struct delta delta;
	struct task *task;

	int result = charge_delta(a->charges, r, hart, &delta);
	if (!result)
		result = throttle_cut(a, r, hart, &delta);
	if (!result)
		result = sideband_task(a, r, hart, &task);
	if (result < 0 || !task || !(a->o.all || task->wanted))
		return result;

	owner_sampled(a, task);
	weigh_stretch(a->clocks, r, hart, &delta);
	result = charge_pending(a->charges, task, &delta);
	if (!result && task->end_ns)
		charge_flush(a->charges, task, r->time_ns, hart);
	return result;
}

/* Attribute the counts of a task since its last record of sums. */
static int attribute_sums(struct attribute *a, const struct record *r, int hart)
{
	struct delta delta;
	struct task *task;

	charge_sums(a->charges, r, hart, &delta);
	weigh_sums(a->clocks, r, hart);
	int result = throttle_cut(a, r, hart, &delta);
	if (!result)
		result = sideband_task(a, r, hart, &task);
	if (result < 0 || !task || !delta.enabled_ns)
		return result;

	owner_sampled(a, task);
	result = charge_pending(a->charges, task, &delta);
	if (!result && task->end_ns)
		charge_flush(a->charges, task, r->time_ns, hart);
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
	int result = charge_delta(a->charges, r, hart, ret_delta);
	return result ? result : throttle_cut(a, r, hart, ret_delta);
}

/* Find a cgroup by its id. A session limited to some processes has not read all cgroups: it reads
 * the process's cgroup in /proc, once for each id. */
static int find_cgroup(
	struct attribute *a, struct task *process, uint64_t id, const struct cgroup **ret_cgroup)
{
	uint64_t *was_read = &a->intake->read_cgroup[id % CGROUPS_READ];

	*ret_cgroup = cgroup_find(a->o.tasks, id);
	if (*ret_cgroup || a->o.all || *was_read == id)
		return 0;
	*was_read = id;
	int r = census_cgroup(a, process);
	*ret_cgroup = cgroup_find(a->o.tasks, id);
	return r;
}

/* Move the task to the sample's cgroup. Its counts so far stay with the former cgroup. */
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
		return cgroup; /* a cgroup without a name must not be shown as the former one */
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
	w.kernel_only = s->regs_abi && (s->n_stack || to->is_offcpu) && task_space(task);
	w.user_ip = 0;
	w.is_offcpu = to->is_offcpu;

	int result = stack_walk_chain(&w, s);
	if (result < 0)
		return result;
	if (w.kernel_only)
		return waiting_add(&w, r, to);
	stack_walk_sink(&w, to);
	return 0;
}

/* Tasks outside our pid namespace have the pid of idle. But clocks do not fire in idle (exclude_idle),
 * and idle never runs in user mode. Source: perf_event_pid_type in kernel/events/core.c of Linux
 * 6.12. */
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
	if (!result && task && lost_exec_shows(task->process, r->time_ns)) {
		result = lost_exec_take(a, task->process, hart);
		if (!result) /* the process may continue as another task */
			result = sideband_task(a, r, hart, &task);
	}
	if (result == 0 && !task && a->o.all && is_outside(r))
		lose(&a->o, hart, LOSS_OUTSIDE, 1);
	if (result < 0 || !task || !(a->o.all || task->wanted))
		return result;

	result = change_cgroup(a, r, &task, hart);
	if (result < 0)
		return result;
	if (!task->comm[0])
		lose(&a->o, hart, LOSS_TASK, 1);
	owner_sampled(a, task);
	weigh_stretch(a->clocks, r, hart, &delta);
	result = charge_pending(a->charges, task, &delta);
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
		.weight_ns = weigh_take(a->clocks, r, hart, &delta),
		.period = r->sample.period,
	};
	charge_take(a->charges, task, &r->sample, &to);
	return attribute_stack(a, r, task, &to);
}

/* Is the task of a raise's sample still known? Rings of raises may be drained late, and a task
 * that has ended since must not be added again. */
static bool raised_is_known(const struct attribute *a, const struct record *r)
{
	if (r->tid == 0 || r->tid > INT32_MAX || r->pid == 0 || r->pid > INT32_MAX)
		return false;
	const struct task *task = task_find(a->o.tasks, (pid_t)r->tid);
	return (task && task->pid == (pid_t)r->pid && r->time_ns >= task->start_ns) ||
	       life_find_ended(a->lives, (pid_t)r->pid, (pid_t)r->tid, r->time_ns);
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

/* The task of a look's record: an exec whose record was lost is noticed. */
static int task_at(struct attribute *a, const struct record *r, int hart, struct task **ret_task)
{
	int result = sideband_task(a, r, hart, ret_task);

	if (!result && *ret_task && lost_exec_shows((*ret_task)->process, r->time_ns)) {
		result = lost_exec_take(a, (*ret_task)->process, hart);
		if (!result)
			result = sideband_task(a, r, hart, ret_task);
	}
	return result;
}

int attribute_offcpu(struct attribute *a, const struct record *r, uint64_t weight_ns)
{
	struct task *task = task_find(a->o.tasks, (pid_t)r->tid);
	const int hart = (int)r->cpu < a->o.n_harts ? (int)r->cpu : 0;

	/* a look is of all threads: strangers are nothing to a session of some */
	if (!a->o.all && !task)
		return 0;
	int result = task_at(a, r, hart, &task);
	if (result < 0 || !task || !(a->o.all || task->wanted))
		return result;
	owner_sampled(a, task);
	struct attribution to = {
		.task = task,
		.cgroup = cgroup_find(a->o.tasks, task->cgroup),
		.time_ns = r->time_ns,
		.hart = hart,
		.event = r->stream->event,
		.rung = r->stream->rung,
		.count = weight_ns > 0,
		.weight_ns = weight_ns,
		.period = weight_ns > 0,
		.is_offcpu = true,
	};
	return attribute_stack(a, r, task, &to);
}

/* The waker has no row, so it is not marked as sampled. */
int attribute_waker(
	struct attribute *a, const struct record *r, uint64_t number, struct task **ret_task)
{
	const int hart = (int)r->cpu < a->o.n_harts ? (int)r->cpu : 0;

	int result = task_at(a, r, hart, ret_task);
	if (result < 0 || !*ret_task)
		return result;
	owner_confirm(a, (*ret_task)->process);
	struct attribution to = {
		.task = *ret_task,
		.time_ns = r->time_ns,
		.hart = hart,
		.event = r->stream->event,
		.rung = r->stream->rung,
		.is_offcpu = true,
		.waker_of = number,
	};
	return attribute_stack(a, r, *ret_task, &to);
}

static int attribute_fired(struct attribute *a, const struct record *r, int hart)
{
	if (!r->stream) {
		lose(&a->o, hart, LOSS_STREAM, 1);
		return 0;
	}

	switch (r->stream->role) {
	case STREAM_SAMPLER:
		a->intake->n_fired[hart]++;
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
	case STREAM_OFFCPU:
		break; /* these do not fire */
	case STREAM_WAITS:
		break; /* session/switch_waits.h takes them, and brings waits */
	}
	return 0;
}

static int attribute_cgroup(struct attribute *a, const struct record *r, int hart)
{
	const struct task *maker = task_find(a->o.tasks, (pid_t)r->tid);
	int result = cgroup_set(a->o.tasks, r->cgroup.id, r->cgroup.path, task_account(maker));

	if (result > 0)
		lose(&a->o, hart, LOSS_ROOM, 1);
	return result < 0 ? result : 0;
}

void attribute_execs_apart(struct attribute *a, bool apart)
{
	a->execs_apart = apart;
}

void attribute_execs_lost(struct attribute *a, uint64_t time_ns, bool apart)
{
	if (apart == a->execs_apart)
		owner_lost(a, time_ns);
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
	if (r->stream && r->stream->role == STREAM_SIDEBAND && a->o.sideband_apart) {
		lose(&a->o, hart, LOSS_SIDEBAND, r->lost.n);
		attribute_execs_lost(a, r->time_ns, false);
		return lost_exec_look(a, r->time_ns, hart);
	}
	/* switches may be among the lost records: counts since then cannot be charged to a task */
	charge_forget_hart(a->charges, hart);
	throttle_forget_hart(a, hart);
	attribute_execs_lost(a, r->time_ns, false);
	lose(&a->o, hart, LOSS_RING, sampler_hear_lost(ahead, r->lost.n));
	return lost_exec_look(a, r->time_ns, hart);
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
		lose(&a->o, hart, LOSS_RING_SAMPLES, r->lost.n);
		return 0;
	case RECORD_THROTTLE:
		throttle_begin(a, r, hart);
		lose(&a->o, hart, LOSS_THROTTLE, 1);
		return 0;
	case RECORD_UNTHROTTLE:
		throttle_end(a, r, hart);
		return 0;
	case RECORD_KSYMBOL:
		return generated_change(a, r);
	case RECORD_EXEC: /* exec_watch hands it out early */
		return 0;
	case RECORD_SWITCH:
	case RECORD_DEFERRED:
	case RECORD_OTHER:
		return 0;
	}
	return 0;
}

void attribute_drained(struct attribute *a)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	exec_argv_reread(a, now_ns);
	mapping_recheck(a->checked_files);
	remapped_drained(a->comparisons);
	/* without memory it is looked up again */
	(void)lost_exec_drained(a, now_ns);
	(void)census_retry(a, now_ns);
	exec_argv_expire(a->execs, now_ns);
}

void attribute_forget_places(struct attribute *a)
{
	place_cache_clear(a->places);
	mapping_recheck(a->checked_files);
}

struct attribute *attribute_free(struct attribute *a)
{
	if (!a)
		return NULL;

	census_free(a->census);
	cgroup_root_free(a->cgroups);
	free(a->unanswered);
	waiting_free(a->waits);
	free(a->walks);
	free(a->places);
	generated_free(a->generated);
	kernel_map_clear(&a->kernel);
	remapped_free(a->comparisons);
	free(a->checked_files);
	free(a->throttles);
	free(a->clocks);
	charge_free(a->charges);
	free(a->awaited);
	exec_argv_free(a->execs);
	owner_free(a->owners);
	free(a->lives);
	free(a->intake);
	free(a);
	return NULL;
}
