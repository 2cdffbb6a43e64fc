/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Events for threads without a hart, one for each thing that they wait for. Nothing is opened: session/offcpu.h brings
 * their samples. */

#include <stdio.h>
#include <string.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

static const char *const kinds[] = {
#define X(kind, name, says) name,
#include "daemon/kernel/offcpu.inc"
#undef X
};
_Static_assert(sizeof(kinds) / sizeof(*kinds) == SAMPLER_OFFCPU_MAX, "one stream each");

bool sampler_add_offcpu(struct sampler *s, bool of_some)
{
	struct event_list *l = &s->events;
	/* the list that was asked for is opened again on each hart that comes */
	if (s->options.events || l->n_events + SAMPLER_OFFCPU_MAX > EVENTS_MAX)
		return false;
	for (unsigned i = 0; i < SAMPLER_OFFCPU_MAX; i++) {
		struct event *e = &l->event[l->n_events];
		*e = (struct event){.type = EVENT_TYPE_OFFCPU, .config = i, .group = -1};
		snprintf(e->name, sizeof(e->name), "waiting:%s", kinds[i]);
		snprintf(e->pmu, sizeof(e->pmu), "waiting");
		s->offcpu[i] = (struct stream){
			.role = STREAM_OFFCPU,
			.rung = RUNG_CLOCK,
			.event = l->n_events++,
			.regs_user = attr_user_regs(),
			.period = 1,
			.fd = -1,
		};
	}
	s->has_offcpu = true;
	s->offcpu_of_some = of_some;
	return true;
}
