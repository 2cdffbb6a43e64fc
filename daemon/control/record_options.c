/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Limits first, then events and rights, and the processes last, since asking for these takes longest.
 */
#include "daemon/control/record_private.h"
#include "daemon/session/offcpu_looks.h"

#include <errno.h>

#include "daemon/control/cost_hold.h"
#include "daemon/control/peer.h"
#include "daemon/session/targets.h"

#define NS_PER_S 1000000000u
/* Each window is a transaction, before which all rings are drained; until then it is in memory. */
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
			/* beside other sessions a drain may come late: rings hold a second of the least */
			.may_copy_more = m->stack_bytes == 0 && !q->peer->options->service,
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
	/* as stat counts such events for this peer; the service's own events show the kernel as one
	 * word */
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
		.offcpu_ppm = OFFCPU_PPM,
		.wakers = m->wakers,
		.own = o->private,
		.namer = o->namer,
		.graves = o->graves,
		.pool = o->pool,
		.pool_uid = q->peer->uid,
		.starts = o->starts,
		.reader = o->reader,
	};
}

/* The highest rate assumed for an event of the hardware on a hart: eight a cycle at 6 GHz. Our own bound. */
#define OCCURRENCES_PER_S_MAX 48000000000ull

/* The least period that keeps an event within the rate, as far as known: software events and tracepoints without
 * a period are sampled at each occurrence. */
static uint64_t period_min(const struct event *e, bool is_service, uint32_t rate_max)
{
	if (event_is_clock(e))
		return NS_PER_S / (is_service ? rate_max : SAMPLER_HZ_MAX);
	if (!is_service || e->type == PERF_TYPE_SOFTWARE || e->type == PERF_TYPE_TRACEPOINT)
		return 1;
	return OCCURRENCES_PER_S_MAX / rate_max;
}

static int refuse_period(struct request *q, uint64_t period, uint64_t min, const struct event *e)
{
	const struct control_options *o = q->peer->options;
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
		       o->service ? "Give more with -c, or raise rate-max in mperf.conf."
				  : "Give more with -c.",
		       "one sample in %llu of %s may exceed the %u samples a second that %s: the "
		       "smallest period is %llu",
		       (unsigned long long)period, e->name,
		       o->service ? o->conf->rate_max : SAMPLER_HZ_MAX,
		       o->service ? "this service allows" : "mperfd accepts",
		       (unsigned long long)min)
		       ?: 1;
}

/* Check a period, and find the rate that follows from it. 0; positive after a refusal; -errno. */
static int read_period(struct request *q, const Mperf__RecordRequest *m,
	const struct event_list *events, struct sampler_options *o)
{
	const struct control_options *c = q->peer->options;
	if (m->period && (m->n_event == 0 || m->n_metric > 0))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			       "Name one with -e, without -M.",
			       "a period needs an event given by name")
			       ?: 1;
	if (m->period > SAMPLER_PERIOD_MAX)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Give less with -c.",
			       "a period of %llu is more than the kernel counts to",
			       (unsigned long long)m->period)
			       ?: 1;
	for (int i = 0; i < events->n_events && m->period; i++) {
		const struct event *e = &events->event[i];
		const uint64_t min =
			period_min(e, c->service, c->service ? c->conf->rate_max : SAMPLER_HZ_MAX);
		if (!event_leads(events, i))
			continue;
		if (m->period < min)
			return refuse_period(q, m->period, min, e);
		if (event_is_clock(e))
			o->hz = m->period < NS_PER_S ? (uint32_t)(NS_PER_S / m->period) : 1;
	}
	o->period = m->period;
	return 0;
}

int record_options(struct request *q, const Mperf__RecordRequest *m, struct event_list *events,
	struct walk_options *ret_options)
{
	struct walk_options o = walk_options_of(q, m);
	int r = sampler_options_fill(q, m, &o.sampler);
	if (r == 0 && m->wakers && m->n_event + m->n_metric > 0)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			    "Leave -e and -M out, or --wakers.",
			    "wakers are recorded with the default events only")
			    ?: 1;
	if (r == 0)
		r = record_events(q, m, events);
	if (r == 0)
		r = read_period(q, m, events, &o.sampler);
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
