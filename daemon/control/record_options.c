/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Limits first, then events and rights, and the processes last, since asking for these takes longest.
 */
#include "daemon/control/record_options.h"

#include <errno.h>

#include "daemon/control/cost_hold.h"
#include "daemon/control/peer.h"
#include "daemon/control/record_hold.h"
#include "daemon/control/record_metrics.h"
#include "daemon/session/targets.h"

/* Each window is a transaction, and all rings are drained before it; until then it is memory. */
#define WINDOW_MS_MIN 100u
#define WINDOW_MS_MAX 60000u

static int sampler_options_fill(
	struct request *q, const Mperf__RecordRequest *m, struct sampler_options *ret_options)
{
	uint32_t hz = record_rate(q, m);
	uint32_t stack_bytes = m->stack_bytes ? m->stack_bytes : SAMPLER_STACK_BYTES_DEFAULT;
	/* a process that is named twice would be opened, and sampled, twice */
	size_t n_pids = m->target ? request_drop_twins(m->target->pid, m->target->n_pid) : 0;
	int r = 0;
	if (hz > SAMPLER_HZ_MAX)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Ask for less with -F.",
			"%u samples a second are more than the %u that mperfd accepts", hz,
			SAMPLER_HZ_MAX);
	else if (m->window_ms && (m->window_ms < WINDOW_MS_MIN || m->window_ms > WINDOW_MS_MAX))
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "",
			"a window of %u ms is not between %u and %u ms", m->window_ms,
			WINDOW_MS_MIN, WINDOW_MS_MAX);
	else if (stack_bytes > SAMPLER_STACK_BYTES_MAX || stack_bytes % 8)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "",
			"a stack copy of %u bytes is not a multiple of 8 up to %u", stack_bytes,
			SAMPLER_STACK_BYTES_MAX);
	else if (!m->target || (!m->target->all && n_pids == 0))
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Give -a, --pid or a command.", "nothing to record was named");
	else if (n_pids > TARGETS_MAX)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_LIMIT, "",
			"%zu processes are more than the %d that one recording can have",
			m->target->n_pid, TARGETS_MAX);
	else {
		*ret_options = (struct sampler_options){
			.hz = hz,
			.stacks = (enum sampler_stacks)m->stack,
			.stack_bytes = stack_bytes,
			.user_only = m->user_only,
			.switches = q->peer->options->switches,
			.some_tasks = !m->target || !m->target->all,
			.pids = m->target->pid,
			.n_pids = n_pids,
			.cores = q->peer->options->cores,
		};
		return 0;
	}
	return r < 0 ? r : 1;
}

/* Users who may not see the whole system record per task; -a is then refused, as for a service's
 * client who may not see others. */
static int choose_scope(struct request *q, const Mperf__RecordRequest *m, struct sampler_options *o)
{
	struct machine machine;
	int r = request_read_machine(q, &machine);
	if (r != 0)
		return r;
	o->per_task = !machine.may_see_all;
	o->user_only |= !machine.may_see_kernel;
	/* as stat counts them for it; the service's own events show the kernel as one word */
	o->never_kernel = m->n_event + m->n_metric > 0 && !q->peer->sees_all;
	o->user_only |= o->never_kernel;
	r = cost_hold_check(q, m->overhead_ppm, m->n_event + m->n_metric > 0, o->per_task);
	if (r != 0 || !m->target->all)
		return r;
	if (!q->peer->sees_all)
		return (r = request_refuse_group(q, "the whole system cannot be recorded")) < 0 ? r
												: 1;
	if (machine.may_see_all)
		return 0;
	struct refusal refusal = refusal_explain(NULL, EACCES, true, &machine);
	r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED, refusal.remedy,
		"the whole system cannot be recorded: %s", refusal.says);
	return r < 0 ? r : 1;
}

static struct walk_options walk_options_of(const struct request *q, const Mperf__RecordRequest *m)
{
	const struct control_options *o = q->peer->options;
	return (struct walk_options){
		.all = m->target && m->target->all,
		.after_exec = m->target && m->target->after_exec,
		.hide_kernel = !q->peer->sees_all,
		.own = o->private,
		.namer = o->namer,
		.graves = o->graves,
		.pool = o->pool,
		.pool_uid = q->peer->uid,
		.starts = o->starts,
		.reader = o->reader,
	};
}

int record_options(struct request *q, const Mperf__RecordRequest *m, struct event_list *events,
	struct walk_options *ret_options)
{
	struct walk_options o = walk_options_of(q, m);
	int r = sampler_options_fill(q, m, &o.sampler);
	if (r == 0)
		r = record_events(q, m, events);
	if (r == 0)
		r = choose_scope(q, m, &o.sampler);
	if (r == 0 && !o.all)
		r = request_check_pids(q, o.sampler.pids, o.sampler.n_pids, !o.sampler.per_task);
	if (r != 0)
		return r;
	o.sampler.events = events->n_events ? events : NULL;
	*ret_options = o;
	return 0;
}
