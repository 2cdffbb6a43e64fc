/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Each part has counters of its own. Harts of one kind share the plan of their metrics, so that it is
 * computed only once.
 */
#include "daemon/control/stat_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/control/peer.h"
#include "daemon/count/rotation.h"
#include "daemon/sampler/ladder.h"
#include "proto/base/memory.h"

/* Least frequency of reading counters: without an overflow interrupt, the kernel notices a wrap only when it
 * reads the counter. The narrowest known counters have 40 bits (U74), which 10 events per nanosecond fill in
 * 110 s. Source: SiFive U74 manual, hpmcounters; riscv_pmu_event_update() of Linux 6.12. */
#define LOOK_NS UINT64_C(60000000000)

/* Remedies if there is no tree: with counters, and without. */
#define STILL_COUNTS                                                                               \
	"`mperfctl stat -M General` still counts ratios, and `mperfctl hotspots` shows where the " \
	"time goes."
#define STILL_SAMPLES                                                                              \
	"`mperfctl hotspots` and `mperfctl flamegraph` still show where the time goes; `mperfctl " \
	"doctor` says why."

static struct cores *cores_of_peer(const struct stat_asked *a)
{
	return a->q->peer->options->cores;
}

/* --- refusals --------------------------------------------------------------------------------- */

/* 0: cycles count here; else as event_probe_for. */
static int try_cycles(const struct stat_asked *a)
{
	struct event_list cycles = {.n_events = 0};
	struct event_error error;
	return event_parse(&kernel_real, "cycles", &cycles, &error) == 0
		       ? event_probe_for(
				 &kernel_real, a->machine, cores_of_peer(a), &cycles.event[0])
		       : -ENOENT;
}

/* Report that there is no tree, and what is available instead. A machine may have no counters, or
 * we may not use them. */
static int refuse_tree(const struct stat_asked *a, const char *because)
{
	int r = try_cycles(a);
	if (r == PROBE_ZERO || r == -ENOENT || r == -EOPNOTSUPP || r == -ENODEV)
		because = "this machine has no hardware counters to count a top-down tree with";
	return request_fail(a->q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
		       r == 0 ? STILL_COUNTS : STILL_SAMPLES, "%s", because)
		       ?: 1;
}

static int refuse_metrics(const struct stat_asked *a, int outcome, const char *because)
{
	if (outcome == METRIC_NO_TREE || (a->is_tree && outcome == METRIC_NO_EVENT))
		return refuse_tree(a, because);
	if (outcome == METRIC_NO_EVENT)
		return request_fail(a->q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			       "mperfctl doctor says what this machine can do.", "%s", because)
			       ?: 1;
	return request_fail(a->q, MPERF__FAILURE_KIND__FAILURE_USAGE,
		       outcome == METRIC_NO_LEVEL
			       ? "Leave out -l to see all levels."
			       : "`mperfctl list metrics` shows those of this machine's cores.",
		       "%s", because)
		       ?: 1;
}

static int refuse_counter(const struct stat_asked *a, int outcome, const struct event_error *error)
{
	struct request *q = a->q;
	int r;
	if (outcome == COUNTER_REFUSED && a->is_tree)
		return refuse_tree(a, error->text);
	if (outcome == COUNTER_FULL && q->peer->user)
		r = request_refuse_limit(q, USER_DESCRIPTORS);
	else if (outcome == COUNTER_GONE)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING, "Find its pid with ps.",
			"%s", *error->text ? error->text : "there is no such process");
	else if (outcome > 0)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"mperfctl doctor says what this machine can do.", "%s", error->text);
	else
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_INTERNAL, "",
			"counting could not be started: %s", strerror(-outcome));
	return r < 0 ? r : 1;
}

/* --- which parts ------------------------------------------------------------------------------ */

static struct stat_part *part_add(struct stat_parts *p)
{
	struct stat_part *grown = reallocarray(p->part, p->n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	p->part = grown;
	p->part[p->n] = (struct stat_part){.platform = NULL};
	return &p->part[p->n++];
}

static int add_part(
	struct stat_parts *p, const struct hart_set *harts, const struct platform *platform)
{
	struct stat_part *part = part_add(p);
	if (!part)
		return -ENOMEM;
	part->harts = *harts;
	part->platform = platform;
	hart_set_says(harts, part->says, sizeof(part->says));
	return 0;
}

static int divide(const struct stat_asked *a, struct stat_parts *p)
{
	const struct cores *cores = cores_of_peer(a);
	bool metrics = a->is_tree || a->request->n_metric > 0;
	int r = 0;
	if (a->request->per_hart) {
		p->is_divided = true;
		for (int hart = 0; hart < a->machine->n_harts && r == 0; hart++) {
			struct hart_set one = {0};
			hart_set_add(&one, hart);
			if (hart_set_has(&a->machine->online, hart))
				r = add_part(p, &one, cores_platform(cores, hart));
		}
		return r;
	}
	if (!metrics || !cores_differ(cores))
		return add_part(p, &a->machine->online, metric_plan_platform(cores));
	p->is_divided = true;
	for (int hart = cores_kind(cores, 0); hart >= 0 && r == 0;
		hart = cores_kind(cores, hart + 1)) {
		struct hart_set harts = cores_of(cores, cores_platform(cores, hart));
		r = add_part(p, &harts, cores_platform(cores, hart));
	}
	return r;
}

/* --- their counters --------------------------------------------------------------------------- */

/* An earlier part of the same kind of core, whose metrics are planned already. NULL: this is the
 * first. */
static const struct stat_part *twin_of(const struct stat_parts *p, const struct stat_part *part)
{
	for (const struct stat_part *at = p->part; at < part; at++)
		if (at->metrics && at->platform == part->platform)
			return at;
	return NULL;
}

/* Options of the counters of all parts. */
static struct counter_options options_of(const struct stat_asked *a)
{
	return (struct counter_options){
		.pids = a->pids,
		.n_pids = a->n_pids,
		.user_only = a->request->user_only || !a->machine->may_see_kernel,
		.never_kernel = !a->q->peer->sees_all,
		.cores = cores_of_peer(a),
		.after_exec = a->pids && a->request->target && a->request->target->after_exec,
	};
}

/* Append the events of its metrics. 0; METRIC_* with *ret_error; -ENOMEM. */
static int plan_part(const struct stat_asked *a, const struct stat_parts *p, struct stat_part *part,
	struct event_list *events, struct event_error *ret_error)
{
	const Mperf__StatRequest *m = a->request;
	const struct metric_wish wish = {m->metric, m->n_metric, a->is_tree, (int)m->levels};
	const struct stat_part *twin = twin_of(p, part);
	const struct counter_options o = options_of(a);
	const struct counter_terms terms = counter_terms_of(&kernel_real, a->machine, &o);
	const struct metric_harts harts = {
		cores_of_peer(a), part->platform, part->harts, a->pids ? NULL : &terms};
	if (m->n_metric == 0 && !a->is_tree)
		return 0;
	if (!twin)
		return live_metrics_new(
			&kernel_real, &harts, &wish, events, &part->metrics, ret_error);
	*events = twin->counter->events;
	return live_metrics_share(twin->metrics, &part->metrics);
}

/* Find the descriptors that the counter will open, and charge them. 0; positive after a refusal;
 * -errno. */
static int plan_counter(const struct stat_asked *a, struct stat_parts *p, struct stat_part *part,
	const struct event_list *events)
{
	struct counter_options o = options_of(a);
	const uint64_t room = user_room(p->user, USER_DESCRIPTORS);
	o.events = events->n_events ? events : NULL;
	o.harts = p->is_divided ? &part->harts : NULL;
	o.fds_max = room ? room : 1; /* 0 means no limit; charging it fails later */
	struct event_error error = {""};
	int r = counter_plan(&kernel_real, a->machine, &o, &part->counter, &error);
	if (r != 0)
		return refuse_counter(a, r, &error);
	const size_t n = counter_n_fds_max(part->counter);
	r = request_take(a->q, USER_DESCRIPTORS, n);
	p->n_fds += r == 0 ? n : 0;
	return r;
}

/* Make the data that belongs to an open counter. 0 or -errno. */
static int end_part(const struct stat_asked *a, struct stat_part *part)
{
	part->last = calloc((size_t)part->counter->events.n_events, sizeof(*part->last));
	if (!part->last)
		return -ENOMEM;
	int r = jackknife_new(
		(size_t)part->counter->events.n_events, kernel_real.now_ns(NULL), &part->jackknife);
	if (r < 0)
		return r;
	const struct planned planned = {
		.kernel = &kernel_real,
		.cores = cores_of_peer(a),
		.harts = &part->harts,
		.events = &part->counter->events,
		.n_by_name = part->metrics ? (size_t)part->metrics->first
					   : (size_t)part->counter->events.n_events,
		.metrics = part->metrics ? part->metrics->plan : NULL,
		.counter = part->counter,
	};
	return a->request->explain ? plan_says_new(&planned, &part->says_plan) : 0;
}

/* The first event of the plan that a metric needs and that did not open; NULL: all did. */
static const struct event *closed_event(
	const struct stat_part *part, const struct planned_metric *planned, int *ret_error)
{
	const struct live_metrics *m = part->metrics;
	const struct counter *c = part->counter;
	for (size_t i = 0; i < m->n_events; i++) {
		int e = m->first + (int)i;
		if (!c->value[e].error || !metric_plan_needs(m->plan, planned, i))
			continue;
		*ret_error = c->value[e].error;
		return &c->events.event[e];
	}
	return NULL;
}

/* Can any of its metrics have a value, or the one that the client requires? If not, report why the first
 * cannot: that a clock next to it counts does not help. */
static bool enough_counts(
	const struct stat_asked *a, const struct stat_part *part, struct event_error *ret_error)
{
	const char *needed = a->request->needed_metric;
	*ret_error->text = '\0';
	for (size_t i = 0; i < metric_plan_n_metrics(part->metrics->plan); i++) {
		const struct planned_metric *m = metric_plan_metric(part->metrics->plan, i);
		int error = 0;
		if (*needed && strcasecmp(m->metric->name, needed) != 0)
			continue;
		const struct event *e =
			m->fate == PLAN_IMPOSSIBLE ? NULL : closed_event(part, m, &error);
		if (!e && m->fate != PLAN_IMPOSSIBLE)
			return true;
		if (*ret_error->text)
			continue;
		snprintf(ret_error->text, sizeof(ret_error->text),
			"%.64s needs %.64s, which cannot be counted: %.400s", m->metric->name,
			e ? e->name : m->lacks,
			e ? refusal_explain(e, error, false, a->machine).says : m->because);
	}
	if (!*ret_error->text)
		snprintf(ret_error->text, sizeof(ret_error->text),
			"the needed metric %.64s was not requested", needed);
	return false;
}

static struct stat_part part_clear(struct stat_part *part)
{
	counter_free(part->counter);
	live_metrics_free(part->metrics);
	jackknife_free(part->jackknife);
	free(part->rotation);
	plan_says_free(part->says_plan);
	free(part->last);
	return (struct stat_part){.platform = NULL};
}

/* A kind of core without these metrics is left out, if another has them. */
static void leave_out(struct stat_parts *p, size_t i, const char *because)
{
	size_t n = strlen(p->left_out);
	snprintf(p->left_out + n, sizeof(p->left_out) - n, "%sharts %s are left out: %.200s",
		n ? "; " : "", p->part[i].says, because);
	(void)part_clear(&p->part[i]);
	memmove(&p->part[i], &p->part[i + 1], (p->n - i - 1) * sizeof(*p->part));
	p->n--;
}

static bool is_of_kind(int outcome)
{
	return outcome == METRIC_UNKNOWN || outcome == METRIC_NO_TREE ||
	       outcome == METRIC_NO_LEVEL || outcome == METRIC_NO_EVENT;
}

static int leave_out_for(struct stat_parts *p, size_t i, int outcome, const char *because)
{
	p->none.outcome = outcome;
	snprintf(p->none.because, sizeof(p->none.because), "%s", because);
	leave_out(p, i, because);
	return 0;
}

/* 0; positive after a refusal; -errno. */
static int plan_next(const struct stat_asked *a, struct stat_parts *p, size_t i)
{
	struct event_error error = {""};
	_cleanup_(freep) struct event_list *events = calloc(1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	int r = request_parse_events(a->q, a->request->event, a->request->n_event, events);
	if (r != 0)
		return r;
	r = plan_part(a, p, &p->part[i], events, &error);
	if (is_of_kind(r))
		return leave_out_for(p, i, r, error.text);
	if (r != 0)
		return r < 0 ? r : refuse_metrics(a, r, error.text);
	return plan_counter(a, p, &p->part[i], events);
}

static size_t n_fds(const struct stat_parts *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n; i++)
		n += p->part[i].counter ? counter_n_fds(p->part[i].counter) : 0;
	return n;
}

/* Open one descriptor of a planned part. 0; positive after a refusal; -errno. */
static int open_next(const struct stat_asked *a, struct stat_parts *p, size_t i)
{
	struct event_error error = {""};
	int r = counter_open(p->part[i].counter, a->machine, &error);
	if (r == COUNTER_MORE)
		return 0;
	if (r == 0)
		r = end_part(a, &p->part[i]);
	else
		r = refuse_counter(a, r, &error);
	if (r != 0)
		return r;
	bool metrics_only = a->request->n_metric > 0 && a->request->n_event == 0 && !a->is_tree;
	if (metrics_only && !enough_counts(a, &p->part[i], &error))
		(void)leave_out_for(p, i, METRIC_NO_EVENT, error.text);
	else
		p->n_open++;
	user_follow(p->user, USER_DESCRIPTORS, &p->n_fds, n_fds(p));
	return 0;
}

int stat_parts_divide(const struct stat_asked *a, struct stat_parts *p)
{
	*p = (struct stat_parts){.user = a->q->peer->user};
	return divide(a, p);
}

int stat_parts_open(const struct stat_asked *a, struct stat_parts *p)
{
	const size_t i = p->n_open;
	int r = 0;
	if (i < p->n)
		r = p->part[i].counter ? open_next(a, p, i) : plan_next(a, p, i);
	if (r == 0 && p->n == 0)
		r = refuse_metrics(a, p->none.outcome, p->none.because);
	return r != 0 || p->n_open == p->n ? r : STAT_PARTS_MORE;
}

int stat_parts_start(struct stat_parts *p)
{
	int r = 0;
	p->look_ns = kernel_real.now_ns(NULL) + LOOK_NS;
	for (size_t i = 0; i < p->n && r == 0; i++)
		r = counter_start(p->part[i].counter);
	return r;
}

void stat_parts_clear(struct stat_parts *p)
{
	/* plans are shared with later parts: these go first */
	for (size_t i = p->n; i > 0; i--)
		(void)part_clear(&p->part[i - 1]);
	free(p->part);
	user_give(p->user, USER_DESCRIPTORS, p->n_fds);
	*p = (struct stat_parts){.part = NULL};
}

/* Measured once, when it is needed: most counts are never scaled. 0 or -ENOMEM. */
static int price_rotation(struct stat_part *part)
{
	const struct counter *c = part->counter;
	double running;
	if (part->rotation || counter_scarcest(c, &running) < 0 || jackknife_is_whole(running))
		return 0;
	part->rotation = calloc(EVENTS_MAX, sizeof(*part->rotation));
	if (!part->rotation)
		return -ENOMEM;
	/* a part of several kinds of core is measured as the first of them */
	const struct cores *cores = c->terms.cores;
	const struct platform *p =
		part->platform ? part->platform : cores_platform(cores, cores_kind(cores, 0));
	rotation_parts(c->terms.kernel, p, &c->events, part->rotation);
	for (int e = 0; e < c->events.n_events; e++)
		if (part->rotation[e] > 0)
			part->rotation[e] *= counter_rotation_scale(c, e);
	return 0;
}

int stat_parts_read(struct stat_parts *p)
{
	int r = 0;
	uint64_t before_ns = kernel_real.now_ns(NULL);
	for (size_t i = 0; i < p->n && r == 0; i++)
		r = counter_read(p->part[i].counter);
	uint64_t now_ns = kernel_real.now_ns(NULL);
	p->look_ns = now_ns + LOOK_NS;
	for (size_t i = 0; i < p->n && r == 0; i++) {
		struct stat_part *part = &p->part[i];
		counts_read(part->jackknife, part->counter, now_ns, now_ns - before_ns);
		r = price_rotation(part);
	}
	return r;
}

void stat_part_counts(
	const struct stat_part *part, const struct machine *machine, struct counts *ret_counts)
{
	counts_take(ret_counts, machine, part->counter, part->last);
	ret_counts->jackknife = part->jackknife;
	for (int e = 0; part->rotation && e < part->counter->events.n_events; e++)
		ret_counts->rotation += part->rotation[e] * counts_running(ret_counts, e);
}

uint64_t stat_parts_due_ns(const struct stat_parts *p)
{
	uint64_t due_ns = p->look_ns;
	for (size_t i = 0; i < p->n; i++)
		if (jackknife_due_ns(p->part[i].jackknife) < due_ns)
			due_ns = jackknife_due_ns(p->part[i].jackknife);
	return due_ns;
}

void stat_parts_restart(struct stat_parts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct stat_part *part = &p->part[i];
		memcpy(part->last, part->counter->value,
			(size_t)part->counter->events.n_events * sizeof(*part->last));
		jackknife_restart(part->jackknife);
	}
}
