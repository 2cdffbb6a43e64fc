/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Decisions alone: service_pause.c applies them to sampling.
 */
#include "daemon/service/pause.h"

#include <stddef.h>

#include "proto/base/clock.h"

#define SECOND_NS 1000000000u

static uint64_t owed(const struct pause *p, uint64_t now_ns)
{
	uint64_t paid_ns = (now_ns - p->owed_at_ns) / PAUSE_PAID_BY;
	return p->owed_ns > paid_ns ? p->owed_ns - paid_ns : 0;
}

static void end(struct pause *p, uint64_t now_ns)
{
	p->took_ns = now_ns - p->began_ns;
	p->owed_ns = owed(p, p->began_ns) + p->took_ns;
	p->owed_at_ns = now_ns;
	p->who = NULL;
	p->changed = true;
}

static void end_late(struct pause *p, uint64_t now_ns)
{
	if (p->who && now_ns >= p->until_ns)
		end(p, p->until_ns);
}

int pause_begin(struct pause *p, const void *who, uid_t uid, uint64_t now_ns)
{
	end_late(p, now_ns);
	if (p->who)
		return PAUSE_BUSY;
	if (owed(p, now_ns) > PAUSE_OWED_NS_MAX)
		return PAUSE_TOO_OFTEN;
	p->who = who;
	p->uid = uid;
	p->began_ns = p->counted_ns = now_ns;
	p->until_ns = now_ns + PAUSE_NS_MAX;
	p->realtime_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	p->took_ns = 0;
	p->n++;
	p->changed = true;
	return 0;
}

uint64_t pause_free_ns(const struct pause *p, uint64_t now_ns)
{
	if (p->who)
		return p->until_ns;
	uint64_t left_ns = owed(p, now_ns);
	return left_ns > PAUSE_OWED_NS_MAX ? now_ns + (left_ns - PAUSE_OWED_NS_MAX) * PAUSE_PAID_BY
					   : now_ns;
}

bool pause_end(struct pause *p, const void *who, uint64_t now_ns)
{
	end_late(p, now_ns);
	if (p->who != who)
		return false;
	end(p, now_ns);
	return true;
}

bool pause_look(struct pause *p, uint64_t now_ns)
{
	end_late(p, now_ns);
	bool changed = p->changed;
	p->changed = false;
	return changed;
}

uint64_t pause_seconds(struct pause *p, uint64_t now_ns)
{
	uint64_t end_ns = p->who ? now_ns : p->began_ns + p->took_ns;
	uint64_t left_ns = end_ns > p->counted_ns ? end_ns - p->counted_ns : 0;
	uint64_t seconds = (left_ns + (p->who ? 0 : SECOND_NS - 1)) / SECOND_NS;
	p->counted_ns += seconds * SECOND_NS;
	return seconds;
}
