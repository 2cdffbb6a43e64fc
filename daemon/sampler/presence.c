/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Harts that were offline between two looks, detected by their side-band events: an event's enabled time stops
 * while its hart is offline.
 */

#include "daemon/sampler/sampler_private.h"

/* Maximum lag of an event's time behind ours: the kernel takes the time from sched_clock, which may
 * have a resolution of a tick, up to 10 ms. */
#define BEHIND_NS 100000000u

/* Does the side-band event show that the hart was offline? A live one was enabled for at least the
 * time from the end of the last check to the start of this one, so a delay anywhere in between is
 * harmless. */
static bool was_away(struct sampler *s, const struct stream *sideband)
{
	const struct kernel *k = s->kernel;
	struct presence *w = &s->presence[sideband->hart];
	uint64_t begin_ns = k->now_ns(k->userdata);
	struct reading now;
	if (stream_read(s, sideband, &now) < 0)
		return false; /* nothing is known */
	bool away = now.enabled_ns - w->enabled_ns + BEHIND_NS < begin_ns - w->looked_ns;
	w->enabled_ns = now.enabled_ns;
	w->looked_ns = k->now_ns(k->userdata);
	return away;
}

/* Skip tasks: a task's event is enabled only while the task runs, and survives the hart's
 * absence. */
struct hart_set harts_away(struct sampler *s)
{
	struct hart_set away = {0};
	for (size_t i = 0; s->started && !s->options.per_task && i < s->streams.n_streams; i++)
		if (s->streams.stream[i].role == STREAM_SIDEBAND &&
			was_away(s, &s->streams.stream[i]))
			hart_set_add(&away, s->streams.stream[i].hart);
	return away;
}

void presence_begin(struct sampler *s, int hart)
{
	s->presence[hart] = (struct presence){0};
}

void presence_note(struct sampler *s, int hart)
{
	s->presence[hart].looked_ns = s->kernel->now_ns(s->kernel->userdata);
}
