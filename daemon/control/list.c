/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * list: the events by topic, each tried on this machine: opened, run, read. An event that opens but stays at zero
 * is listed as such, so that the list promises only counts that were seen. The tries take long, so a service runs
 * them in a separate process. With --decode, a raw code is decoded by the fields in the platform database for this
 * machine's cores, and nothing is opened.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/answer/row.h"
#include "daemon/control/offload_job.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/metric/metric_plan.h"
#include "daemon/pmu/event/event_on_core.h"
#include "daemon/sampler/ladder.h"
#include "platform-db/selector.h"
#include "proto/base/memory.h"

#define METRICS_TOPIC "metrics" /* topic of the names that stat -M takes */

#define EVENT_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(topic, "topic", text, e->topic)                                                     \
	COLUMN(event, "event", text, e->name)                                                      \
	COLUMN(code, "code", text, e->code)                                                        \
	COLUMN(harts, "harts", text, e->harts)                                                     \
	COLUMN(counts, "counts", text, e->counts)                                                  \
	COLUMN(says, "what it counts", text, e->says)                                              \
	COLUMN(reason, "why it does not count", text, e->reason)

struct listing {
	struct machine machine;
	const struct cores *cores;
	const struct answer *answer;
	const char *topic; /* the only one wanted, or "" */
	const char *pmu;   /* PMU whose aliases are being listed */
	int result;
	size_t n_sent;
};

/* A row. */
struct entry {
	const char *topic, *name, *says;
	const char *code;  /* of the core's own events; of a metric its groups; else "" */
	const char *harts; /* "" if all harts have it */
	const char *counts, *reason;
};

static int send_entry(struct listing *l, const struct entry *e)
{
	l->n_sent++;
	return TABLE_ROW(l->answer, EVENT_TABLE);
}

/* Send an event, which is tried first. */
static int send_event(struct listing *l, const struct event *event, struct entry e)
{
	int r = event_probe_for(&kernel_real, &l->machine, l->cores, event);
	e.name = event->name;
	e.counts = r == 0 ? "yes" : r == PROBE_ZERO ? "zero" : "no";
	e.reason = r == 0            ? ""
		   : r == PROBE_ZERO ? "opens, but counted nothing when tried"
				     : refusal_explain(event, -r, false, &l->machine).says;
	return send_entry(l, &e);
}

static int list_generic(struct listing *l)
{
	for (size_t i = 0; i < n_event_names; i++) {
		const struct event_name *n = &event_names[i];
		if (*l->topic && strcmp(l->topic, n->topic) != 0)
			continue;
		struct event e = {.type = n->type, .config = n->config, .group = -1};
		snprintf(e.name, sizeof(e.name), "%s", n->name);
		snprintf(e.pmu, sizeof(e.pmu), "%s", n->topic);
		int r = send_event(l, &e,
			(struct entry){
				.topic = n->topic, .says = n->says, .code = "", .harts = ""});
		if (r != 0)
			return r;
	}
	return 0;
}

/* List an alias of a PMU in sysfs, such as cpu/mem-loads/. */
static void list_alias(void *userdata, const char *name)
{
	struct listing *l = userdata;
	if (l->result != 0 || strchr(name, '.'))
		return; /* .scale, .unit and .snapshot are attributes of an alias */
	char text[EVENT_NAME_BYTES_MAX];
	if (snprintf(text, sizeof(text), "%s/%s/", l->pmu, name) >= (int)sizeof(text))
		return;
	struct event_list parsed = {.n_events = 0};
	struct event_error error;
	if (event_parse(&kernel_real, text, &parsed, &error) == 0)
		l->result = send_event(l, &parsed.event[0],
			(struct entry){.topic = l->pmu,
				.says = "named by the kernel's PMU driver",
				.code = "",
				.harts = ""});
}

static void list_pmu(void *userdata, const char *name)
{
	struct listing *l = userdata;
	char path[256];
	if (l->result != 0 || (*l->topic && strcmp(l->topic, name) != 0))
		return;
	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/events", name);
	l->pmu = name;
	kernel_real.list(NULL, path, list_alias, l); /* a PMU without events/ has no aliases */
}

/* --- the core's own events -------------------------------------------------------------------- */

/* Topics of other events, which need another name than a topic of the core's own events. */
static bool is_taken(const char *topic)
{
	for (size_t i = 0; i < n_event_names; i++)
		if (strcmp(event_names[i].topic, topic) == 0)
			return true;
	return false;
}

/* Does a kind of core before that of this hart have an event of that name, or of that topic? */
static bool kind_before_has(const struct listing *l, int hart, const char *name, const char *topic)
{
	for (int h = cores_kind(l->cores, 0); h >= 0 && h < hart; h = cores_kind(l->cores, h + 1)) {
		const struct platform *p = cores_platform(l->cores, h);
		if (name && platform_event_find(p, name))
			return true;
		for (size_t i = 0; topic && i < p->n_events; i++)
			if (strcmp(p->event[i].topic, topic) == 0)
				return true;
	}
	return false;
}

static bool has_event(const struct platform *p, const char *name)
{
	return platform_event_find(p, name) != NULL;
}

static bool has_metric(const struct platform *p, const char *name)
{
	return platform_metric_find(p, name) != NULL;
}

/* Text of the harts whose core has that name, where cores differ; else "". */
static const char *harts_with(const struct listing *l,
	bool (*has)(const struct platform *p, const char *name), const char *name, char *buffer,
	size_t size)
{
	struct hart_set harts = {0};
	buffer[0] = '\0';
	if (!cores_differ(l->cores))
		return buffer;
	for (int i = 0; i < l->machine.n_harts; i++)
		if (hart_set_has(&l->machine.online, i) && has(cores_platform(l->cores, i), name))
			hart_set_add(&harts, i);
	return hart_set_says(&harts, buffer, size);
}

/* Name of its topic here: "core-cache" beside the "cache" that the kernel knows. */
static const char *own_topic(const struct platform_event *own, char *buffer, size_t size)
{
	snprintf(buffer, size, is_taken(own->topic) ? "core-%.64s" : "%.64s", own->topic);
	return buffer;
}

static int send_own(struct listing *l, const struct platform_event *own)
{
	char topic[96], code[24], harts[128];
	struct event e;
	event_of_platform(own, &e);
	e.by_platform = true;
	own_topic(own, topic, sizeof(topic));
	snprintf(code, sizeof(code), "r%llx", (unsigned long long)own->code);
	const struct entry entry = {
		.topic = topic,
		.says = *own->says ? own->says : "only its name is known",
		.code = code,
		.harts = harts_with(l, has_event, own->name, harts, sizeof(harts)),
	};
	return send_event(l, &e, entry);
}

/* The events of one topic, of all kinds of core, each name once. */
static int list_own_topic(struct listing *l, const char *topic)
{
	int r = 0;
	for (int h = cores_kind(l->cores, 0); h >= 0 && r == 0; h = cores_kind(l->cores, h + 1)) {
		const struct platform *p = cores_platform(l->cores, h);
		for (size_t i = 0; i < p->n_events && r == 0; i++)
			if (strcmp(p->event[i].topic, topic) == 0 &&
				!kind_before_has(l, h, p->event[i].name, NULL))
				r = send_own(l, &p->event[i]);
	}
	return r;
}

/* A platform's events lie topic by topic. */
static int list_own(struct listing *l)
{
	int r = 0;
	for (int h = cores_kind(l->cores, 0); h >= 0 && r == 0; h = cores_kind(l->cores, h + 1)) {
		const struct platform *p = cores_platform(l->cores, h);
		for (size_t i = 0; i < p->n_events && r == 0; i++) {
			const char *topic = p->event[i].topic;
			bool again = i > 0 && strcmp(p->event[i - 1].topic, topic) == 0;
			char called[96];
			own_topic(&p->event[i], called, sizeof(called));
			bool wanted = !*l->topic || strcmp(l->topic, topic) == 0 ||
				      strcmp(l->topic, called) == 0;
			if (!again && wanted && !kind_before_has(l, h, NULL, topic))
				r = list_own_topic(l, topic);
		}
	}
	return r;
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* Why one of these events does not count; "" if all do. One core event that counts is enough: the probe runs no
 * vector code, which the other events may count. */
static const char *why_not(struct listing *l, const struct event_list *events)
{
	const char *zero = "";
	bool moved = false;
	for (int i = 0; i < events->n_events; i++) {
		const struct event *e = &events->event[i];
		int r = event_probe_for(&kernel_real, &l->machine, l->cores, e);
		if (r < 0)
			return refusal_explain(e, -r, false, &l->machine).says;
		if (r == PROBE_ZERO)
			zero = "one of its events counted nothing when tried";
		if (r == PROBE_ZERO && !e->by_platform)
			return zero;
		moved |= r == 0 && e->type != PERF_TYPE_SOFTWARE;
	}
	return moved ? "" : zero;
}

/* "General, MPKI", cut if it does not fit. Returns buffer. */
static const char *groups_of(const struct platform_metric *m, char *buffer, size_t size)
{
	size_t n = 0;
	buffer[0] = '\0';
	for (size_t i = 0; i < m->n_groups && n < size; i++)
		n += (size_t)snprintf(buffer + n, size - n, "%s%s", i ? ", " : "", m->group[i]);
	return buffer;
}

/* A metric of cores of that kind. */
static int send_metric(struct listing *l, const struct platform *p, const struct platform_metric *m)
{
	const struct metric_harts of = {l->cores, p, cores_of(l->cores, p)};
	char groups[128], harts[128];
	struct event_error error = {""};
	_cleanup_(metric_plan_freep) struct metric_plan *plan = NULL;
	_cleanup_(freep) struct event_list *events = calloc(1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	int r = metric_plan_for(&kernel_real, &of, &(char *){(char *)m->name}, 1, &plan, &error);
	const char *reason = r > 0 ? error.text : "";
	if (r == 0 && metric_plan_metric(plan, 0)->fate == PLAN_IMPOSSIBLE)
		reason = metric_plan_metric(plan, 0)->because;
	for (size_t i = 0; r == 0 && !*reason && metric_plan_events(plan, i); i++) {
		r = event_parse_for(
			&kernel_real, l->cores, metric_plan_events(plan, i), events, &error);
		reason = r > 0 ? error.text : "";
	}
	if (r < 0)
		return r;
	if (!*reason)
		reason = why_not(l, events);
	return send_entry(
		l, &(struct entry){.topic = METRICS_TOPIC,
			   .name = m->name,
			   .code = groups_of(m, groups, sizeof(groups)),
			   .harts = harts_with(l, has_metric, m->name, harts, sizeof(harts)),
			   .counts = *reason ? "no" : "yes",
			   .says = *m->says ? m->says : m->text,
			   .reason = reason});
}

/* Does a kind of core before that of this hart have a metric of that name? */
static bool kind_before_has_metric(const struct listing *l, int hart, const char *name)
{
	for (int h = cores_kind(l->cores, 0); h >= 0 && h < hart; h = cores_kind(l->cores, h + 1))
		if (platform_metric_find(cores_platform(l->cores, h), name))
			return true;
	return false;
}

/* The metrics of all kinds of core, each name once. */
static int list_metrics(struct listing *l)
{
	int r = 0;
	if (*l->topic && strcmp(l->topic, METRICS_TOPIC) != 0)
		return 0;
	for (int h = cores_kind(l->cores, 0); h >= 0 && r == 0; h = cores_kind(l->cores, h + 1)) {
		const struct platform *p = cores_platform(l->cores, h);
		for (size_t i = 0; i < p->n_metrics && r == 0; i++)
			if (!kind_before_has_metric(l, h, p->metric[i].name))
				r = send_metric(l, p, &p->metric[i]);
	}
	return r;
}

/* 0 or -errno. */
static int list_topic(struct request *q, void *topic)
{
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	struct listing l = {
		.answer = &answer,
		.topic = topic,
		.cores = q->peer->options->cores,
	};
	int r = request_read_machine(q, &l.machine);
	if (r != 0)
		return r < 0 ? r : 0;
	r = TABLE_BEGIN(&answer, NULL, EVENT_TABLE);
	if (r == 0)
		r = list_generic(&l);
	if (r == 0)
		r = list_own(&l);
	if (r == 0)
		r = list_metrics(&l);
	if (r == 0) {
		kernel_real.list(NULL, "/sys/bus/event_source/devices", list_pmu, &l);
		r = l.result;
	}
	int ended = row_stream_end(&stream);
	if (r == 0)
		r = ended;
	if (r == 0)
		r = l.n_sent ? request_done(q, 0)
			     : request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
				       "Use hardware, cache, software, metrics, a name below "
				       "/sys/bus/event_source/devices, or a topic that `mperfctl "
				       "list -a` "
				       "shows.",
				       "there is no topic '%s' with events", l.topic);
	return r < 0 ? r : 0;
}

/* --- a raw code ------------------------------------------------------------------------------- */

#define FIELD_TABLE(COLUMN, KNOWN_IF)                                                              \
	COLUMN(core, "core", text, d->platform->title)                                             \
	COLUMN(field, "field", text, field)                                                        \
	COLUMN(bits, "bits", text, selector_bits_say(mask, bits))                                  \
	COLUMN(value, "value", text, number)                                                       \
	COLUMN(means, "means", text, means)                                                        \
	COLUMN(reason, "why it does not count", text, reason)

struct decoding {
	const struct answer *answer;
	const struct platform *platform;
	uint64_t code;
	unsigned n_passed; /* bits that the kernel passes on */
};

static int send_field(const struct decoding *d, const char *field, uint64_t mask, uint64_t value,
	const char *means)
{
	char bits[SELECTOR_BITS_BYTES], number[24], reason[96] = "";
	bool drops = d->n_passed < 64 && (d->code & mask) >> d->n_passed;
	snprintf(number, sizeof(number), "0x%llx", (unsigned long long)value);
	if (drops)
		snprintf(reason, sizeof(reason),
			"this kernel passes bits %u-0 on, and refuses others", d->n_passed - 1);
	return TABLE_ROW(d->answer, FIELD_TABLE);
}

/* Send the meaning of the whole code: events that have it, and expressions of events of a bank. */
static int send_whole(const struct decoding *d)
{
	char text[SELECTOR_TEXT_BYTES];
	const struct platform *p = d->platform;
	const char *bank;
	int r = 0;
	for (size_t i = 0; i < p->n_events && r == 0; i++)
		if (p->event[i].code == d->code && !p->event[i].config1)
			r = send_field(d, "code", UINT64_MAX, d->code, p->event[i].name);
	for (size_t i = 0; r == 0 && (bank = selector_bank(p, i)); i++)
		if (*selector_says(p, bank, d->code, text))
			r = send_field(d, "code", UINT64_MAX, d->code, text);
	return r;
}

/* Send the fields that are not 0, and the bits that belong to no field. */
static int send_fields(const struct decoding *d)
{
	char means[SELECTOR_TEXT_BYTES];
	const struct platform *p = d->platform;
	uint64_t left = d->code;
	int r = 0;
	for (size_t i = 0; i < p->n_fields && r == 0; i++) {
		const struct platform_field *f = &p->field[i];
		uint64_t value = selector_value(f, d->code);
		left &= ~f->mask;
		if (value)
			r = send_field(
				d, f->name, f->mask, value, selector_means(p, f, d->code, means));
	}
	return r == 0 && left ? send_field(d, "no field", left, left, "") : r;
}

static int send_cores(struct request *q, const struct cores *cores, uint64_t code)
{
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	int r = TABLE_BEGIN(&answer, NULL, FIELD_TABLE);
	for (int h = cores_kind(cores, 0); h >= 0 && r == 0; h = cores_kind(cores, h + 1)) {
		const struct platform *p = cores_platform(cores, h);
		const struct decoding d = {&answer, p, code, event_raw_bits(&kernel_real, p)};
		r = p->n_fields ? send_whole(&d) : 0;
		if (r == 0 && p->n_fields)
			r = send_fields(&d);
	}
	return row_stream_done(&stream, r);
}

/* Send the fields of a raw code, or the reason why there are none. 0 or -errno. */
static int decode(struct request *q, const char *text)
{
	struct machine machine;
	uint64_t code;
	const struct cores *cores = q->peer->options->cores;
	if (!selector_code_parse(text, &code))
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Write it as -e takes it, such as r40000002007, or as 0x40000002007.",
			"'%.64s' is not a raw code", text);
	int r = request_read_machine(q, &machine);
	if (r != 0)
		return r < 0 ? r : 0;
	bool has_fields = false;
	for (int h = cores_kind(cores, 0); h >= 0; h = cores_kind(cores, h + 1))
		has_fields |= cores_platform(cores, h)->n_fields > 0;
	if (!has_fields)
		return request_fail(q, MPERF__FAILURE_KIND__FAILURE_MISSING,
			"mperf-platforms(5) says how to describe them (quirk \"field\").",
			"the fields of raw codes are not known for this machine's cores (%s)",
			cores_platform(cores, 0)->title);
	return send_cores(q, cores, code);
}

/* ---------------------------------------------------------------------------------------------- */

int control_list(struct request *q, const Mperf__Request *request)
{
	static const struct offload_answer list_answer = {
		.run = list_topic,
		.release = free,
		.keeps_capabilities = true,
	};
	if (*request->list->decode)
		return decode(q, request->list->decode);
	char *topic = strdup(request->list->topic);
	return topic ? offload_start(q, &list_answer, topic) : -ENOMEM;
}
