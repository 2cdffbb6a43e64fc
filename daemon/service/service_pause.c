/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Effects of a pause. Its begin and its end are logged once each. Its seconds are counted for each
 * hart, like losses, so that answers about that time report them. Each rate has segments of its
 * own.
 */
#include <stdio.h>
#include <syslog.h>

#include "daemon/budget/overhead.h"
#include "daemon/service/service.h"

#define SECOND_NS 1000000000u

static void tell(const struct service *s)
{
	const struct pause *p = &s->pause;
	char text[256];
	if (p->who)
		snprintf(text, sizeof(text),
			"always-on sampling is lowered to %u Hz for at most %u s, while uid %u "
			"measures roofs",
			PAUSE_HZ, (unsigned)(PAUSE_NS_MAX / SECOND_NS), (unsigned)p->uid);
	else
		snprintf(text, sizeof(text),
			"sampling at %u Hz again: uid %u measured roofs for %.0f s%s",
			overhead_rate(s->overhead), (unsigned)p->uid,
			(double)p->took_ns / SECOND_NS,
			p->took_ns >= PAUSE_NS_MAX ? ", which is the limit" : "");
	s->o.say(s->o.userdata, LOG_NOTICE, text);
}

/* Count the seconds of a pause as lost, unless a client requests at least the rate of always-on
 * sampling. */
static void count(struct service *s, uint64_t now_ns)
{
	struct sampler *p = s->walk->sampler;
	uint64_t seconds = pause_seconds(&s->pause, now_ns);
	if (p->options.hz >= overhead_rate(s->overhead))
		return;
	for (int hart = 0; hart < p->machine.n_harts && seconds > 0; hart++)
		if (hart_set_has(&p->seen, hart))
			p->lost[hart][LOSS_PAUSED] += seconds;
}

bool service_look_at_pause(struct service *s, uint64_t now_ns)
{
	bool changed = pause_look(&s->pause, now_ns);
	if (s->pause.n > 0)
		count(s, now_ns);
	if (changed)
		tell(s);
	return changed;
}
