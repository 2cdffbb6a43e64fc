/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A group that samples needs all its counters at once; if they do not fit, it never samples. So metrics of
 * samples need a plan of one pass. cpu-clock leads, since it needs no counter, and samples also where
 * counters cannot interrupt.
 */
#include "daemon/control/record_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/control/peer.h"
#include "daemon/metric/metric_plan.h"
#include "daemon/sampler/ladder.h"
#include "proto/base/memory.h"

#define LEADER "cpu-clock"

static int refuse(struct request *q, const char *remedy, const char *why)
{
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, remedy, "%s", why) ?: 1;
}

static int refuse_passes(struct request *q, const struct metric_plan *plan)
{
	char why[128];
	size_t n = metric_plan_n_passes(plan);
	if (n == 0)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			       "mperfctl doctor says what this machine can do.",
			       "no event of %s can be counted: %.400s",
			       metric_plan_metric(plan, 0)->metric->name,
			       metric_plan_metric(plan, 0)->because
				       ? metric_plan_metric(plan, 0)->because
				       : "it needs none")
			       ?: 1;
	snprintf(why, sizeof(why),
		"the events of these metrics need %zu passes, but only one can be counted along "
		"with samples",
		n);
	return refuse(q, "Name fewer metrics, or use `mperfctl stat -M`, which rotates them.", why);
}

/* "{cpu-clock,a,b}" of the plan's one pass. The caller frees; NULL: no memory. */
static char *group_of(const struct metric_plan *plan)
{
	const char *pass = metric_plan_events(plan, 0);
	size_t n = strcspn(pass + (*pass == '{'), "}");
	char *text;
	return asprintf(&text, "{" LEADER ",%.*s}", (int)n, pass + (*pass == '{')) < 0 ? NULL
										       : text;
}

/* The first wanted event that does not count. */
struct uncounted {
	const struct event *event;
	int error; /* errno of the open; ENODATA: it opened, and counted nothing */
};

static int refuse_counters(
	struct request *q, const struct machine *m, const struct uncounted *first)
{
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		       "`mperfctl hotspots` without -M still shows where the time goes; `mperfctl "
		       "doctor` says why.",
		       "none of the events of these metrics counts here: %.64s: %s",
		       first->event->name,
		       refusal_explain(first->event, first->error, false, m).says)
		       ?: 1;
}

/* Add the wanted events that can be counted. An event that does not open keeps its group from
 * sampling, so it is left out. An event that the core is known to have may stay 0 in the probe,
 * which runs no 512-bit vector code, for example. False: no wanted counter is left. */
static bool add_countable(const struct machine *m, const struct cores *cores,
	const struct event_list *wanted, struct event_list *events, struct uncounted *ret_first)
{
	bool wants_counters = false, any = false;
	*ret_first = (struct uncounted){NULL, 0};
	for (int i = 0; i < wanted->n_events && events->n_events < EVENTS_MAX; i++) {
		const struct event *e = &wanted->event[i];
		bool is_clock = i == 0 || e->type == PERF_TYPE_SOFTWARE;
		int r = is_clock ? 0 : event_probe_for(&kernel_real, m, cores, e);
		bool counts = r == 0 || (r == PROBE_ZERO && e->by_platform);
		if (counts)
			events->event[events->n_events++] = *e;
		else if (!ret_first->event)
			*ret_first = (struct uncounted){e, r < 0 ? -r : ENODATA};
		wants_counters |= !is_clock;
		any |= !is_clock && counts;
	}
	return any || !wants_counters;
}

/* Was the event of that name among those that count? */
static bool has_event(const struct event_list *events, const char *name)
{
	for (int i = 0; i < events->n_events; i++)
		if (strcmp(events->event[i].name, name) == 0)
			return true;
	return false;
}

/* 0 if all events of the metric are among those that count; else positive after a refusal, or -errno. */
static int check_needed(struct request *q, const struct metric_plan *plan, const char *needed,
	const struct event_list *events)
{
	for (size_t i = 0; i < metric_plan_n_metrics(plan); i++) {
		const struct planned_metric *m = metric_plan_metric(plan, i);
		const char *input;
		if (strcasecmp(m->metric->name, needed) != 0)
			continue;
		for (size_t k = 0; (input = metric_plan_input(plan, m, k)); k++)
			if (!has_event(events, input))
				return request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
					       "`mperfctl list metrics` says what counts here, and "
					       "`mperfctl doctor` why.",
					       "%.64s needs %.64s, which cannot be counted here",
					       needed, input)
					       ?: 1;
		return 0;
	}
	return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Name it with -M, too.",
		       "the needed metric %.64s was not requested", needed)
		       ?: 1;
}

static int add_metrics(struct request *q, const Mperf__RecordRequest *m, struct event_list *events)
{
	struct machine machine;
	struct event_error error = {""};
	struct cores *cores = q->peer->options->cores;
	_cleanup_(metric_plan_freep) struct metric_plan *plan = NULL;
	int r = request_read_machine(q, &machine);
	if (r != 0)
		return r;
	r = metric_plan_new(&kernel_real, &machine, cores, m->metric, m->n_metric, &plan, &error);
	if (r > 0)
		return refuse(q, "`mperfctl list metrics` shows those of this machine's cores.",
			error.text);
	if (r < 0)
		return r;
	if (metric_plan_n_passes(plan) != 1)
		return refuse_passes(q, plan);
	_cleanup_(freep) char *group = group_of(plan);
	_cleanup_(freep) struct event_list *wanted = calloc(1, sizeof(*wanted));
	if (!group || !wanted)
		return -ENOMEM;
	r = event_parse_for(&kernel_real, cores, group, wanted, &error);
	if (r != 0)
		return r > 0 ? refuse(q, "Name fewer metrics.", error.text) : r;
	struct uncounted first;
	bool any = add_countable(&machine, cores, wanted, events, &first);
	r = *m->needed_metric ? check_needed(q, plan, m->needed_metric, events) : 0;
	return r == 0 && !any ? refuse_counters(q, &machine, &first) : r;
}

int record_events(struct request *q, const Mperf__RecordRequest *m, struct event_list *events)
{
	int r = request_parse_events(q, m->event, m->n_event, events);
	return r == 0 && m->n_metric ? add_metrics(q, m, events) : r;
}
