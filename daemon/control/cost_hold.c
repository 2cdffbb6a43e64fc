/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

#include "daemon/control/cost_hold.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/sampler/effort.h"
#include "daemon/service/service.h"
#include "daemon/session/walk.h"

#define PPM_MAX 1000000u
#define PPM_PER_PERCENT 1e4

int cost_hold_check(struct request *q, uint32_t overhead_ppm, bool events, bool per_task)
{
	int r = 0;
	if (overhead_ppm == 0)
		return 0;
	if (overhead_ppm > PPM_MAX)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE, "Give less.",
			"an overhead of more than 100 %% is no limit");
	else if (events)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_USAGE,
			"Leave out -e, or --overhead.",
			"the cost of events that you choose is not measured, so --overhead cannot "
			"limit it");
	else if (per_task)
		r = request_fail(q, MPERF__FAILURE_KIND__FAILURE_REFUSED,
			"Leave out --overhead, or record as root or through the service.",
			"the cost of sampling single tasks is not measured, so --overhead cannot "
			"limit it");
	else
		return 0;
	return r < 0 ? r : 1;
}

int cost_hold_begin(struct cost_hold *h, uint32_t hz, uint32_t overhead_ppm)
{
	if (overhead_ppm == 0)
		return 0;
	h->conf = calloc(1, sizeof(*h->conf));
	if (!h->conf)
		return -ENOMEM;
	h->conf->overhead_ppm = overhead_ppm;
	h->conf->rate = hz;
	const struct overhead_options o = {.kernel = &kernel_real, .conf = h->conf, .brief = true};
	return overhead_new(&o, &h->overhead);
}

/* True if it differs from the text sent before. */
static bool say(struct cost_hold *h, uint32_t ppm, const char *text)
{
	char says[sizeof(h->says)] = "";
	if (*text)
		snprintf(says, sizeof(says), "to keep overhead within %g %%, %s",
			ppm / PPM_PER_PERCENT, text);
	if (strcmp(says, h->says) == 0)
		return false;
	memcpy(h->says, says, sizeof(says));
	return true;
}

int cost_hold_dispatch(struct cost_hold *h, struct walk *w, uint64_t now_ns)
{
	char text[EFFORT_TEXT_BYTES];
	if (!h->overhead)
		return 0;
	int r = overhead_dispatch(h->overhead, w, false, now_ns);
	if (r != OVERHEAD_STEPPED)
		return r;
	r = walk_set_rate(w, overhead_rate(h->overhead));
	effort_says(&h->overhead->governor.effort, text);
	bool changed = say(h, h->conf->overhead_ppm, text);
	return r < 0 ? r : changed ? COST_HOLD_STEPPED : 0;
}

uint64_t cost_hold_deadline_ns(const struct cost_hold *h, uint64_t next_ns)
{
	return h->overhead ? overhead_deadline_ns(h->overhead, next_ns) : next_ns;
}

bool cost_hold_follow(struct cost_hold *h, const struct service *s, const void *who)
{
	const struct overhead_held *held = service_held(s, who);
	char text[EFFORT_TEXT_BYTES] = "";
	if (held && held->given_hz < held->hz)
		snprintf(text, sizeof(text), "%u samples a second were asked for instead of %u",
			held->given_hz, held->hz);
	return held && say(h, held->ppm, text);
}

void cost_hold_stop(struct cost_hold *h, struct walk *w, uint64_t now_ns)
{
	if (h->overhead)
		overhead_stop(h->overhead, w, now_ns);
}

void cost_hold_end(struct cost_hold *h)
{
	h->overhead = overhead_free(h->overhead);
	free(h->conf);
	h->conf = NULL;
}
