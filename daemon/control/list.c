/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * list: the events by topic, each tried on this machine: opened, run, read. An event that opens
 * and stays at zero is said to do so; nothing is promised that was not seen. That takes its time, so
 * of a service a process of its own does it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/offload.h"
#include "daemon/control/peer.h"
#include "daemon/control/request.h"
#include "daemon/pmu/ladder.h"

static const struct answer_column columns[] = {
	{"topic", "topic", MPERF__UNIT__UNIT_NONE},
	{"event", "event", MPERF__UNIT__UNIT_NONE},
	{"counts", "counts", MPERF__UNIT__UNIT_NONE},
	{"says", "what it counts", MPERF__UNIT__UNIT_NONE},
	{"reason", "why it does not count", MPERF__UNIT__UNIT_NONE},
};

struct listing {
	struct machine machine;
	const struct answer *answer;
	const char *topic;       /* the only one wanted, or "" */
	const char *pmu;         /* whose aliases are being listed */
	int result;
	size_t n_sent;
};

static int send_event(struct listing *l, const char *topic, const struct event *e, const char *says)
{
	int r = event_probe(&kernel_real, &l->machine, e);
	l->n_sent++;
	const char *reason = r == 0 ? "" : r == PROBE_ZERO ? "opens, and stayed at zero while tried"
		: refusal_explain(e, -r, false, &l->machine).says;
	struct answer_value v[] = {
		{.kind = ANSWER_TEXT, .text = topic},
		{.kind = ANSWER_TEXT, .text = e->name},
		{.kind = ANSWER_TEXT, .text = r == 0 ? "yes" : r == PROBE_ZERO ? "zero" : "no"},
		{.kind = ANSWER_TEXT, .text = says},
		{.kind = ANSWER_TEXT, .text = reason},
	};
	return l->answer->row(l->answer->userdata, v, sizeof v / sizeof v[0]);
}

static int list_generic(struct listing *l)
{
	for (size_t i = 0; i < n_event_names; i++) {
		const struct event_name *n = &event_names[i];
		if (*l->topic && strcmp(l->topic, n->topic) != 0)
			continue;
		struct event e = {.type = n->type, .config = n->config, .group = -1};
		snprintf(e.name, sizeof e.name, "%s", n->name);
		snprintf(e.pmu, sizeof e.pmu, "%s", n->topic);
		int r = send_event(l, n->topic, &e, n->says);
		if (r != 0)
			return r;
	}
	return 0;
}

/* One alias of a PMU in sysfs, such as cpu/mem-loads/. */
static void list_alias(void *userdata, const char *name)
{
	struct listing *l = userdata;
	if (l->result != 0 || strchr(name, '.'))
		return; /* .scale, .unit and .snapshot are attributes of an alias */
	char text[EVENT_NAME_BYTES_MAX];
	if (snprintf(text, sizeof text, "%s/%s/", l->pmu, name) >= (int)sizeof text)
		return;
	struct event_list parsed = {.n_events = 0};
	struct event_error error;
	if (event_parse(&kernel_real, text, &parsed, &error) == 0)
		l->result = send_event(l, l->pmu, &parsed.event[0], "named by the kernel's PMU driver");
}

static void list_pmu(void *userdata, const char *name)
{
	struct listing *l = userdata;
	char path[256];
	if (l->result != 0 || (*l->topic && strcmp(l->topic, name) != 0))
		return;
	snprintf(path, sizeof path, "/sys/bus/event_source/devices/%s/events", name);
	l->pmu = name;
	kernel_real.list(NULL, path, list_alias, l); /* a PMU without events/ has no aliases */
}

/* 0 or -errno. */
static int list_topic(struct request *q, void *topic)
{
	struct row_stream stream;
	struct answer answer = row_stream_answer(&stream, q);
	struct listing l = {.answer = &answer, .topic = topic};
	int r = request_read_machine(q, &l.machine);
	if (r != 0)
		return r < 0 ? r : 0;
	r = answer.columns(answer.userdata, columns, sizeof columns / sizeof columns[0]);
	if (r == 0)
		r = list_generic(&l);
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
				"Use hardware, cache, software, or a name below "
				"/sys/bus/event_source/devices.",
				"there is no topic '%s' with events", l.topic);
	return r < 0 ? r : 0;
}

int control_list(struct request *q, const Mperf__Request *request)
{
	static const struct offload_answer list_answer = {
		.run = list_topic,
		.release = free,
		.keeps_capabilities = true,
	};
	char *topic = strdup(request->list->topic);
	return topic ? offload_start(q, &list_answer, topic) : -ENOMEM;
}
