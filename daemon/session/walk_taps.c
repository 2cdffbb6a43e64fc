/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The taps of a walk: what is found goes to each of them. */

#include "daemon/session/walk_private.h"

void walk_give(struct walk *w, struct tap *tap, const struct attribution *a)
{
	struct attribution seen = *a;
	if (w->inner->raises.n == 0 || raises_show(w, tap->raise_uid, &seen))
		tap->take(tap->userdata, &seen);
}

void walk_take_wait(void *userdata, const struct attribution *a)
{
	struct walk *w = userdata;
	for (struct tap *tap = w->inner->taps; tap; tap = tap->next)
		walk_give(w, tap, a);
}

void walk_take(void *userdata, const struct attribution *a)
{
	struct walk *w = userdata;
	if (a->is_offcpu) {
		const bool is_held = offcpu_found(w->inner->offcpu, a);
		if (w->inner->waits) {
			switch_waits_found(w->inner->waits, a);
			return;
		}
		if (is_held || a->count == 0)
			return;
	} else if (!a->raise) {
		w->n_taken += a->count;
		raises_notice(w, a);
	}
	for (struct tap *tap = w->inner->taps; tap; tap = tap->next)
		walk_give(w, tap, a);
}

bool walk_awaits_callers_of_waits(const struct walk *w)
{
	return offcpu_awaits_callers(w->inner->offcpu);
}

void walk_give_up_callers_of_waits(struct walk *w)
{
	offcpu_give_up_callers(w->inner->offcpu);
}

uint64_t walk_wakes_lost(const struct walk *w)
{
	return offcpu_wakes_lost(w->inner->offcpu);
}

void walk_take_switch_wait(void *userdata, const struct attribution *a)
{
	struct walk *w = userdata;
	for (struct tap *tap = w->inner->taps; tap; tap = tap->next)
		if (tap->wants_waits)
			walk_give(w, tap, a);
}

void walk_take_end(void *userdata, struct task *task, uint64_t time_ns)
{
	struct walk *w = userdata;
	offcpu_end(w->inner->offcpu, task);
	switch_waits_end(w->inner->waits, task);
	for (struct tap *tap = w->inner->taps; tap; tap = tap->next)
		if (tap->end)
			tap->end(tap->userdata, task, time_ns);
}

int walk_take_loops(void *userdata, struct task *task, const struct loop_counts *c)
{
	struct walk *w = userdata;
	int r = 0;
	if (task)
		attribute_counted(w->attribute, task);
	for (struct tap *tap = w->inner->taps; tap && r == 0; tap = tap->next)
		if (tap->take_loops)
			r = tap->take_loops(tap->userdata, task, c);
	return r;
}

/* Is there more than what runs for weeks? */
static bool is_watched(const struct walk *w)
{
	bool watched = !w->inner->always;
	for (const struct tap *tap = w->inner->taps; tap; tap = tap->next)
		watched |= !tap->is_always;
	return watched;
}

void walk_add(struct walk *w, struct tap *tap)
{
	offcpu_give(w->inner->offcpu, true); /* what was summed up before is not its */
	tap->next = w->inner->taps;
	w->inner->taps = tap;
	offcpu_watched(w->inner->offcpu, is_watched(w));
}

bool walk_watches_waits(const struct walk *w)
{
	bool wanted = false;
	for (const struct tap *tap = w->inner->taps; tap; tap = tap->next)
		wanted |= tap->wants_waits;
	return wanted;
}

void walk_remove(struct walk *w, struct tap *tap)
{
	struct tap **at = &w->inner->taps;
	while (*at && *at != tap)
		at = &(*at)->next;
	if (*at)
		*at = tap->next;
	tap->next = NULL;
	if (w->inner->waits && tap->wants_waits && !walk_watches_waits(w))
		switch_waits_stop(w->inner->waits);
	offcpu_watched(w->inner->offcpu, is_watched(w));
}

bool walk_is_patient(const struct walk *w)
{
	bool all = !w->inner->stopped;
	for (const struct tap *tap = w->inner->taps; tap; tap = tap->next)
		all &= tap->is_patient;
	return all;
}

void walk_mark(void *userdata, struct sweep *s)
{
	struct walk *w = userdata;
	for (struct tap *tap = w->inner->taps; tap; tap = tap->next)
		if (tap->mark)
			tap->mark(tap->userdata, s);
	offcpu_mark(w->inner->offcpu, s);
	switch_waits_mark(w->inner->waits, s);
	if (w->feed)
		feed_mark(w->feed, s);
}

void walk_look(struct walk *w, uint64_t now_ns)
{
	for (const struct tap *tap = w->inner->taps; tap; tap = tap->next)
		if (tap->look)
			tap->look(tap->userdata, now_ns);
}
