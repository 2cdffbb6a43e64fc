/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/budget/rate_requests.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/base/array.h"

static size_t find(const struct rate_requests *q, const void *who)
{
	size_t i = 0;
	while (i < q->n && q->request[i].who != who)
		i++;
	return i;
}

int rate_requests_set(
	struct rate_requests *q, const void *who, uid_t *uid, uint32_t hz, uint32_t overhead_ppm)
{
	size_t i = find(q, who);
	if (hz == 0) {
		if (i < q->n)
			*uid = q->request[i].uid;
		if (i < q->n)
			q->request[i] = q->request[--q->n];
		return 0;
	}
	if (i == q->n) {
		if (i >= RATE_REQUESTS_MAX)
			return 0;
		int r = array_grow_long(&q->request, &q->size, q->n + 1, sizeof(*q->request));
		if (r < 0)
			return r;
		q->n++;
	}
	q->request[i] =
		(struct rate_request){who, *uid, overhead_held_begin(hz, overhead_ppm), true};
	return 0;
}

void rate_requests_clear(struct rate_requests *q)
{
	free(q->request);
	*q = (struct rate_requests){0};
}

uint32_t rate_requests_highest(const struct rate_requests *q, uint32_t hz)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->request[i].uid == (uid_t)-1 && q->request[i].held.given_hz > hz)
			hz = q->request[i].held.given_hz;
	return hz;
}

uint32_t rate_requests_highest_for(const struct rate_requests *q, uid_t uid)
{
	uint32_t hz = 0;
	for (size_t i = 0; i < q->n; i++)
		if (q->request[i].uid == uid && q->request[i].held.given_hz > hz)
			hz = q->request[i].held.given_hz;
	return hz;
}

const struct overhead_held *rate_requests_held(const struct rate_requests *q, const void *who)
{
	size_t i = find(q, who);
	return i < q->n && q->request[i].held.ppm ? &q->request[i].held : NULL;
}

bool rate_requests_hold(struct rate_requests *q, const struct overhead *h, uint64_t now_ns)
{
	bool changed = false;
	if (q->n_ticks == h->n_ticks)
		return false;
	q->n_ticks = h->n_ticks;
	for (size_t i = 0; i < q->n; i++) {
		struct rate_request *request = &q->request[i];
		if (request->held.ppm && !request->is_new)
			changed |= overhead_hold(h, &request->held, now_ns);
		request->is_new = false;
	}
	return changed;
}
