/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Names that the platform database has for the events of this machine's cores. If cores differ, it
 * is enough that one kind has the event: on the others it cannot be opened.
 */
#include "daemon/pmu/event/event_private.h"

#include <stdio.h>
#include <string.h>

#include "daemon/pmu/cores.h"
#include "daemon/pmu/event/event_on_core.h"
#include "proto/syntax/nearest.h"

bool event_platform_find(const struct event_scan *s, struct event_word name, struct event *e)
{
	char text[EVENT_NAME_BYTES_MAX];
	if (!event_word_copy(name, text, sizeof(text)))
		return false;
	for (int h = cores_kind(s->cores, 0); h >= 0; h = cores_kind(s->cores, h + 1)) {
		const struct platform_event *found =
			platform_event_find(cores_platform(s->cores, h), text);
		if (!found)
			continue;
		e->type = PERF_TYPE_RAW;
		e->config = found->code;
		e->config1 = found->config1;
		e->by_platform = true;
		snprintf(e->pmu, sizeof(e->pmu), "raw");
		return true;
	}
	return false;
}

bool event_arch_find(const struct event_scan *s, struct event_word name, struct event *e)
{
	char text[EVENT_NAME_BYTES_MAX];
	const char *generic;
	if (!event_word_copy(name, text, sizeof(text)))
		return false;
	enum platform_arch arch = platform_generic_name(text, &generic);
	int first = cores_kind(s->cores, 0);
	if (arch == PLATFORM_ARCH_UNKNOWN || first < 0 ||
		cores_platform(s->cores, first)->arch != arch)
		return false;
	return event_generic_find((struct event_word){generic, strlen(generic)}, e);
}

void event_platform_offer(const struct event_scan *s, struct nearest *near)
{
	for (int h = cores_kind(s->cores, 0); h >= 0; h = cores_kind(s->cores, h + 1)) {
		const struct platform *p = cores_platform(s->cores, h);
		for (size_t i = 0; i < p->n_events; i++) {
			nearest_offer(near, p->event[i].name);
			for (size_t j = 0; j < p->event[i].n_aliases; j++)
				nearest_offer(near, p->event[i].aliases[j]);
		}
	}
}
