/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/budget/rate_requests.h"

#include <errno.h>
#include <stdlib.h>

#define WANTS_FIRST 16

static size_t find(const struct wants *w, const void *who)
{
	size_t i = 0;
	while (i < w->n && w->want[i].who != who)
		i++;
	return i;
}

static int grow(struct wants *w)
{
	size_t size = w->size ? 2 * w->size : WANTS_FIRST;
	struct want *grown = reallocarray(w->want, size, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	w->want = grown;
	w->size = size;
	return 0;
}

int wants_set(struct wants *w, const void *who, uid_t *uid, uint32_t hz, uint32_t overhead_ppm)
{
	size_t i = find(w, who);
	if (hz == 0) {
		if (i < w->n)
			*uid = w->want[i].uid;
		if (i < w->n)
			w->want[i] = w->want[--w->n];
		return 0;
	}
	if (i == w->n) {
		if (i >= WANTS_MAX)
			return 0;
		int r = i == w->size ? grow(w) : 0;
		if (r < 0)
			return r;
		w->n++;
	}
	w->want[i] = (struct want){who, *uid, overhead_held_begin(hz, overhead_ppm), true};
	return 0;
}

void wants_clear(struct wants *w)
{
	free(w->want);
	*w = (struct wants){0};
}

uint32_t wants_rate(const struct wants *w, uint32_t hz)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->want[i].uid == (uid_t)-1 && w->want[i].held.given_hz > hz)
			hz = w->want[i].held.given_hz;
	return hz;
}

uint32_t wants_rate_for(const struct wants *w, uid_t uid)
{
	uint32_t hz = 0;
	for (size_t i = 0; i < w->n; i++)
		if (w->want[i].uid == uid && w->want[i].held.given_hz > hz)
			hz = w->want[i].held.given_hz;
	return hz;
}

const struct overhead_held *wants_held(const struct wants *w, const void *who)
{
	size_t i = find(w, who);
	return i < w->n && w->want[i].held.ppm ? &w->want[i].held : NULL;
}

bool wants_hold(struct wants *w, const struct overhead *h, uint64_t now_ns)
{
	bool changed = false;
	if (w->n_ticks == h->n_ticks)
		return false;
	w->n_ticks = h->n_ticks;
	for (size_t i = 0; i < w->n; i++) {
		struct want *want = &w->want[i];
		if (want->held.ppm && !want->is_new)
			changed |= overhead_hold(h, &want->held, now_ns);
		want->is_new = false;
	}
	return changed;
}
