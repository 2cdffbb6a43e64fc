/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * From names of metrics to groups of events. A formula is first folded with the known facts of the
 * machine, so that "A if #smt_on else B" counts one event. An event that this kernel or core does not
 * have makes only its own metrics impossible.
 */
#include "daemon/metric/metric_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/count/plan_cover.h"
#include "daemon/pmu/event/counters.h"

/* An input of the plan's metrics. */
struct planned_event {
	const char *name;
	bool is_known;
	struct event event;
	char because[EVENT_ERROR_BYTES];
};

struct metric_plan {
	const struct kernel *kernel;
	const struct cores *cores;
	const struct platform *platform;
	struct hart_set online;
	const struct counter_terms *shares; /* NULL: with no others; valid while it is made */
	struct metric_inputs *inputs;
	struct planned_metric metric[METRICS_MAX];
	struct planned_event *event; /* by input */
	struct counter_plan *plan;
	size_t n_covered; /* of its passes */
	char **text;      /* plan->n_passes, then NULL */
	char condition[EVENT_ERROR_BYTES];
};

/* --- their events ----------------------------------------------------------------------------- */

static int try_event(const struct metric_plan *p, struct planned_event *e)
{
	struct event_error error = {""};
	_cleanup_(freep) struct event_list *list = calloc(1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	int r = event_parse_for(p->kernel, p->cores, e->name, list, &error);
	e->is_known = r == 0 && list->n_events == 1;
	e->event = list->event[0];
	snprintf(e->because, sizeof(e->because), "%s", error.text);
	return r < 0 ? r : 0;
}

static int try_events(struct metric_plan *p)
{
	const size_t n = metric_inputs_n(p->inputs);
	int r = 0;
	p->event = calloc(n + 1, sizeof(*p->event));
	if (!p->event)
		return -ENOMEM;
	for (size_t i = 0; i < n && r == 0; i++) {
		p->event[i].name = metric_inputs_name(p->inputs, i);
		r = try_event(p, &p->event[i]);
	}
	return r;
}

/* --- their counters --------------------------------------------------------------------------- */

static int make_plan(struct metric_plan *p)
{
	const struct planned_event *e = p->event;
	const size_t n = metric_inputs_n(p->inputs);
	struct plan_wish wish[METRICS_MAX];
	_cleanup_(freep) struct plan_event *event = calloc(n + 1, sizeof(*event));
	_cleanup_(freep) const struct event **parsed = calloc(n + 1, sizeof(struct event *));
	if (!event || !parsed)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		event[i] = e[i].is_known ? event_counters(p->platform, &e[i].event)
					 : (struct plan_event){0};
		parsed[i] = e[i].is_known ? &e[i].event : NULL;
	}
	for (size_t i = 0; i < metric_plan_n_metrics(p); i++) {
		const struct metric_needs needs = metric_inputs_needs(p->inputs, i);
		wish[i] = (struct plan_wish){needs.input, needs.n};
	}
	const struct plan_question question = {
		.event = event,
		.parsed = parsed,
		.n_events = n,
		.wish = wish,
		.n_wishes = metric_plan_n_metrics(p),
		.free_counters =
			platform_all_counters(p->platform) & ~cores_held(p->cores, &p->online),
		.harts = &p->online,
		.terms = p->shares,
	};
	return plan_cover_make(&question, &p->plan, &p->n_covered);
}

/* --- the result ------------------------------------------------------------------------------- */

/* Intel's shares of slots count in a group that slots leads. Source: tools/perf/Documentation/topdown.txt
 * of Linux 6.12; arch/x86/events/intel/core.c: slots is event 0x00, umask 0x04. */
#define INTEL_SLOTS 0x400

/* Let slots come first in its passes. */
static void lead_by_slots(struct metric_plan *p)
{
	const struct planned_event *e = p->event;
	for (size_t i = 0; p->platform->arch == PLATFORM_ARCH_X86 && i < p->plan->n_passes; i++) {
		struct plan_place *place = p->plan->pass[i].place;
		size_t at = 0, n = p->plan->pass[i].n_places;
		while (at < n && (e[place[at].event].event.type != PERF_TYPE_RAW ||
					 e[place[at].event].event.config != INTEL_SLOTS))
			at++;
		if (at == n)
			continue;
		const struct plan_place slots = place[at];
		memmove(place + 1, place, at * sizeof(*place));
		place[0] = slots;
	}
}

/* "{a,b}"; without braces where a group may not have as many. */
static char *pass_text(const struct metric_plan *p, const struct plan_pass *pass)
{
	const struct planned_event *e = p->event;
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	if (!f)
		return NULL;
	bool is_group = pass->n_places > 1 && pass->n_places <= EVENT_GROUP_MAX;
	fputs(is_group ? "{" : "", f);
	for (size_t i = 0; i < pass->n_places; i++)
		fprintf(f, "%s%s", i ? "," : "", e[pass->place[i].event].name);
	fputs(is_group ? "}" : "", f);
	if (fclose(f) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* The event that the same code means on other counters, or NULL. */
static const struct platform_event *find_twin(
	const struct platform *p, const struct platform_event *own)
{
	for (size_t i = 0; own && own->counters && i < p->n_events; i++)
		if (p->event[i].code == own->code && p->event[i].counters &&
			(p->event[i].counters & own->counters) == 0)
			return &p->event[i];
	return NULL;
}

static void write_condition(struct metric_plan *p)
{
	const struct planned_event *e = p->event;
	const struct platform_event *first = NULL, *twin = NULL;
	size_t n = 0;
	for (size_t i = 0; i < metric_inputs_n(p->inputs); i++) {
		const struct platform_event *own = platform_event_find(p->platform, e[i].name);
		const struct platform_event *other =
			e[i].is_known ? find_twin(p->platform, own) : NULL;
		n += other != NULL;
		if (other && !twin) {
			first = own;
			twin = other;
		}
	}
	if (twin)
		snprintf(p->condition, sizeof(p->condition),
			"%zu of these events need firmware that knows which counters of this core "
			"can count them, since Linux leaves the choice to the firmware: on another "
			"counter, the code of %s counts %s",
			n, first->name, twin->name);
}

static int write_texts(struct metric_plan *p)
{
	struct planned_event *e = p->event;
	p->text = calloc(p->plan->n_passes + 1, sizeof(*p->text));
	if (!p->text)
		return -ENOMEM;
	for (size_t i = 0; i < p->plan->n_passes; i++) {
		p->text[i] = pass_text(p, &p->plan->pass[i]);
		if (!p->text[i])
			return -ENOMEM;
	}
	for (size_t i = 0; i < metric_plan_n_metrics(p); i++) {
		struct planned_event *lacking = &e[p->plan->because[i]];
		struct planned_metric *m = &p->metric[i];
		m->fate = p->plan->fate[i];
		m->pass = p->plan->pass_of[i];
		if (m->fate != PLAN_IMPOSSIBLE)
			continue;
		if (lacking->is_known)
			snprintf(lacking->because, sizeof(lacking->because),
				"no counter of this core can count %s", lacking->name);
		m->lacks = lacking->name;
		m->because = lacking->because;
	}
	return 0;
}

/* The column of an input in the metric's own pass; if the metric is split, in the first pass that has it. -1: none, as for
 * a metric that cannot be counted. */
static int find_column(const struct metric_plan *p, size_t metric, uint16_t input)
{
	int at = 0;
	if (p->metric[metric].fate == PLAN_IMPOSSIBLE)
		return -1;
	for (size_t i = 0; i < p->plan->n_passes; i++) {
		const struct plan_pass *pass = &p->plan->pass[i];
		for (size_t j = 0; j < pass->n_places; j++, at++)
			if (pass->place[j].event == input &&
				(p->metric[metric].fate == PLAN_SPLIT ||
					p->metric[metric].pass == i))
				return at;
	}
	return -1;
}

static void find_columns(struct metric_plan *p)
{
	for (size_t i = 0; i < metric_plan_n_metrics(p); i++) {
		const struct metric_needs needs = metric_inputs_needs(p->inputs, i);
		for (size_t k = 0; k < needs.n; k++)
			metric_inputs_read_from(p->inputs, i, k, find_column(p, i, needs.input[k]));
	}
}

static int plan_metrics(
	struct metric_plan *p, const struct metric_choice *chosen, struct event_error *ret_error)
{
	const struct metric_core core = {p->platform, p->kernel, p->online};
	int r = metric_inputs_new(&core, chosen, &p->inputs, ret_error);
	if (r == 0)
		r = try_events(p);
	if (r == 0)
		r = make_plan(p);
	if (r > 0) {
		snprintf(ret_error->text, sizeof(ret_error->text),
			"these metrics need more than %d events", PLAN_EVENTS_MAX);
		return METRIC_TOO_MANY;
	}
	if (r == 0) {
		lead_by_slots(p);
		write_condition(p);
		r = write_texts(p);
	}
	if (r == 0)
		find_columns(p);
	return r;
}

const struct platform *metric_plan_platform(const struct cores *cores)
{
	int first = cores_kind(cores, 0);
	return cores_differ(cores) ? NULL : cores_platform(cores, first < 0 ? 0 : first);
}

int metric_plan_of(const struct kernel *k, const struct metric_harts *harts,
	const struct metric_choice *chosen, struct metric_plan **ret_plan,
	struct event_error *ret_error)
{
	_cleanup_(metric_plan_freep) struct metric_plan *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*p = (struct metric_plan){.kernel = k,
		.cores = harts->cores,
		.platform = harts->platform,
		.online = harts->harts,
		.shares = harts->shares};
	for (size_t i = 0; i < chosen->n; i++)
		p->metric[i].metric = chosen->metric[i];
	int r = plan_metrics(p, chosen, ret_error);
	if (r != 0)
		return r;
	p->shares = NULL;
	*ret_plan = TAKE_PTR(p);
	return 0;
}

int metric_plan_for(const struct kernel *k, const struct metric_harts *harts, char *const *name,
	size_t n, struct metric_plan **ret_plan, struct event_error *ret_error)
{
	struct metric_choice chosen = {.n = 0};
	int r = metric_choose(harts->platform, name, n, &chosen, ret_error);
	return r == 0 ? metric_plan_of(k, harts, &chosen, ret_plan, ret_error) : r;
}

int metric_plan_new(const struct kernel *k, const struct machine *m, const struct cores *cores,
	char *const *name, size_t n, struct metric_plan **ret_plan, struct event_error *ret_error)
{
	const struct metric_harts all = {cores, metric_plan_platform(cores), m->online, NULL};
	if (all.platform)
		return metric_plan_for(k, &all, name, n, ret_plan, ret_error);
	snprintf(ret_error->text, sizeof(ret_error->text),
		"this machine has cores of several kinds, and metrics cannot be computed from "
		"their sum");
	return METRIC_CORES_DIFFER;
}

struct metric_plan *metric_plan_free(struct metric_plan *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; p->text && p->text[i]; i++)
		free(p->text[i]);
	free(p->text);
	counter_plan_free(p->plan);
	metric_inputs_free(p->inputs);
	free(p->event);
	free(p);
	return NULL;
}

size_t metric_plan_n_metrics(const struct metric_plan *p)
{
	return metric_inputs_n_metrics(p->inputs);
}

const struct planned_metric *metric_plan_metric(const struct metric_plan *p, size_t i)
{
	return &p->metric[i];
}

const char *metric_plan_events(const struct metric_plan *p, size_t pass)
{
	return p->text[pass];
}

int metric_plan_parse(
	const struct metric_plan *p, struct event_list *events, struct event_error *ret_error)
{
	int r = 0;
	for (size_t pass = 0; p->text[pass] && r == 0; pass++)
		r = event_parse_for(p->kernel, p->cores, p->text[pass], events, ret_error);
	if (r != 0)
		return r > 0 ? METRIC_TOO_MANY : r;
	if (events->n_events > 0)
		return 0;
	snprintf(ret_error->text, sizeof(ret_error->text), "no event of %s can be counted: %.400s",
		p->metric[0].metric->name,
		p->metric[0].because ? p->metric[0].because : "it needs none");
	return METRIC_NO_EVENT;
}

const char *metric_plan_input(const struct metric_plan *p, const struct planned_metric *m, size_t i)
{
	const struct metric_needs needs = metric_inputs_needs(p->inputs, (size_t)(m - p->metric));
	return i < needs.n ? metric_inputs_name(p->inputs, needs.input[i]) : NULL;
}

const char *metric_plan_condition(const struct metric_plan *p)
{
	return *p->condition ? p->condition : NULL;
}

const struct plan_pass *metric_plan_places(const struct metric_plan *p)
{
	return p->plan->pass;
}

uint64_t metric_plan_counters(const struct metric_plan *p, const struct plan_place *place)
{
	const struct planned_event *e = p->event;
	return event_counters(p->platform, &e[place->event].event).counters;
}

const char *metric_plan_event(const struct metric_plan *p, const struct plan_place *place)
{
	const struct planned_event *e = p->event;
	return e[place->event].name;
}

size_t metric_plan_n_passes(const struct metric_plan *p)
{
	return p->plan->n_passes;
}

size_t metric_plan_n_covered(const struct metric_plan *p)
{
	return p->n_covered;
}

bool metric_plan_is_minimal(const struct metric_plan *p)
{
	return p->plan->is_minimal && p->n_covered == 0;
}

/* The pass of a position, and the place in it. */
static size_t find_pass(const struct metric_plan *p, size_t position, size_t *ret_place)
{
	size_t pass = 0;
	for (; position >= p->plan->pass[pass].n_places; pass++)
		position -= p->plan->pass[pass].n_places;
	*ret_place = position;
	return pass;
}

size_t metric_plan_pass(const struct metric_plan *p, size_t position)
{
	return find_pass(p, position, &position);
}

bool metric_plan_needs(const struct metric_plan *p, const struct planned_metric *m, size_t position)
{
	const struct metric_needs needs = metric_inputs_needs(p->inputs, (size_t)(m - p->metric));
	size_t place, pass = find_pass(p, position, &place);
	if (m->fate != PLAN_SPLIT && m->pass != pass)
		return false;
	for (size_t k = 0; k < needs.n; k++)
		if (needs.input[k] == p->plan->pass[pass].place[place].event)
			return true;
	return false;
}

const struct metric_inputs *metric_plan_inputs(const struct metric_plan *p)
{
	return p->inputs;
}
