/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A hart is reopened if it delivers no samples, not if it delivers few: throttling, a limit that the
 * kernel lowered and counters that rotate reduce the samples, but let some pass, and each of these
 * causes is counted elsewhere. If less than a tenth of the samples comes, that is only counted, so that
 * users do not take a few samples for all of them. A hart owes samples only for time in which its events
 * count (sampler_is_steady). It is judged only once it owes enough of them to exclude chance, however
 * low the rate.
 */
#include "daemon/session/stalled.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/memory.h"

#define SECOND_NS 1000000000u

int stalled_init(struct stalled *b, int n_harts)
{
	*b = (struct stalled){.n_harts = n_harts};
	b->hart = calloc((size_t)(n_harts > 0 ? n_harts : 1), sizeof(*b->hart));
	return b->hart ? 0 : -ENOMEM;
}

void stalled_clear(struct stalled *b)
{
	free(b->hart);
	*b = (struct stalled){.hart = NULL};
}

static uint64_t ticks_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	return ticks * (SECOND_NS / (uint64_t)(hz > 0 ? hz : 100));
}

/* The hart brings samples: what it owed is settled. */
static void see(struct stalled_hart *h)
{
	h->owed_ns = h->counted_s = h->mend_ns = h->wait_ns = 0;
	h->n_mends = 0;
	h->stalled = false;
}

/* The time since the last look for which the hart owes samples. Events that were opened again a
 * moment ago owe from then on. */
static uint64_t busy_ns(const struct stalled_hart *h, const struct hart_time *time, bool user)
{
	struct hart_time did = hart_time_since(time, &h->time);
	return did.known ? ticks_ns(did.user + (user ? 0 : did.kernel)) : 0;
}

static uint64_t samples_of(uint64_t ns, uint32_t hz)
{
	return ns / SECOND_NS * hz + ns % SECOND_NS * hz / SECOND_NS;
}

static void forget_few(struct stalled_hart *h)
{
	h->few_ns = h->few_samples = h->few_hz = 0;
}

/* The seconds in which the hart brought few samples, after so much more busy time and n more samples. If
 * the rate changed in between, the lowest rate counts. */
static uint64_t few_seconds(struct stalled_hart *h, uint64_t ns, uint64_t n, uint32_t hz)
{
	h->few_ns += ns;
	h->few_samples += n;
	h->few_hz = h->few_hz && h->few_hz < hz ? h->few_hz : hz;
	uint64_t owed = samples_of(h->few_ns, h->few_hz), seconds = 0;
	if (owed < STALLED_SAMPLES_MIN)
		return 0;
	/* none at all is LOSS_BLIND */
	if (h->few_samples > 0 && h->few_samples * STALLED_FEW < owed)
		seconds = h->few_ns / SECOND_NS;
	forget_few(h);
	return seconds;
}

/* Is the hart to be opened again now? If so, the time of its next reopening is set. */
static bool must_mend(struct stalled_hart *h, uint64_t now_ns)
{
	if (!h->stalled || now_ns < h->mend_ns)
		return false;
	h->wait_ns = h->wait_ns ? 2 * h->wait_ns : STALLED_MEND_NS;
	if (h->wait_ns > STALLED_MEND_NS_MAX)
		h->wait_ns = STALLED_MEND_NS_MAX;
	h->mend_ns = now_ns + h->wait_ns;
	h->n_mends++;
	return true;
}

static void look_at(struct stalled *b, struct sampler *s, int hart, const struct hart_time *time)
{
	struct stalled_hart *h = &b->hart[hart];
	bool user = false, steady = sampler_is_steady(s, hart, &user) && time->known;
	uint64_t n = h->n_samples - h->n_seen, ns = steady ? busy_ns(h, time, user) : 0;
	if (!steady || n > 0)
		see(h);
	else
		h->owed_ns += ns;
	if (steady)
		s->lost[hart][LOSS_SPARSE] +=
			few_seconds(h, ns, n, b->hz && b->hz < s->hz ? b->hz : s->hz);
	else
		forget_few(h);
	h->n_seen = h->n_samples;
	h->time = *time;
	if (samples_of(h->owed_ns, s->hz) < STALLED_SAMPLES_MIN)
		return;
	h->stalled = true;
	s->lost[hart][LOSS_BLIND] += h->owed_ns / SECOND_NS - h->counted_s;
	h->counted_s = h->owed_ns / SECOND_NS;
}

/* Choose harts to reopen in rotation, so that harts that are reopened often do not displace others. */
static void choose(struct stalled *b, uint64_t now_ns, struct hart_set *mend)
{
	int first = b->first_mend, n_mends = 0;
	for (int i = 0; i < b->n_harts && n_mends < STALLED_MENDS_MAX; i++) {
		int hart = (first + i) % b->n_harts;
		if (!must_mend(&b->hart[hart], now_ns))
			continue;
		hart_set_add(mend, hart);
		b->first_mend = hart + 1;
		n_mends++;
	}
}

static void tell(struct stalled *b)
{
	char names[128];
	struct hart_set stalled = {0};
	uint64_t longest_ns = 0;
	unsigned n_mends = 0;
	for (int hart = 0; hart < b->n_harts; hart++) {
		const struct stalled_hart *h = &b->hart[hart];
		if (!h->stalled)
			continue;
		hart_set_add(&stalled, hart);
		longest_ns = h->owed_ns > longest_ns ? h->owed_ns : longest_ns;
		n_mends = h->n_mends > n_mends ? h->n_mends : n_mends;
	}
	*b->trouble = '\0';
	int n = hart_set_count(&stalled);
	if (n > 0)
		snprintf(b->trouble, sizeof(b->trouble),
			"hart%s %s %s busy for %llu s but delivered no samples; reopened %u time%s",
			n > 1 ? "s" : "", hart_set_says(&stalled, names, sizeof(names)),
			n > 1 ? "were" : "was", (unsigned long long)(longest_ns / SECOND_NS),
			n_mends, n_mends == 1 ? "" : "s");
}

void stalled_look(struct stalled *b, struct sampler *s, const struct hart_time *time,
	uint64_t now_ns, struct hart_set *ret_mend)
{
	*ret_mend = (struct hart_set){0};
	b->next_look_ns = now_ns + STALLED_LOOK_NS;
	for (int hart = 0; hart < b->n_harts; hart++)
		look_at(b, s, hart, &time[hart]);
	b->hz = s->hz;
	choose(b, now_ns, ret_mend);
	tell(b);
}

int stalled_read(struct stalled *b, struct sampler *s, uint64_t now_ns, struct hart_set *ret_mend)
{
	_cleanup_(freep) struct hart_time *time = calloc((size_t)b->n_harts + 1, sizeof(*time));
	if (!time)
		return -ENOMEM;
	/* without /proc/stat nothing is known, and no hart is reported */
	(void)hart_time_read(time, b->n_harts);
	stalled_look(b, s, time, now_ns, ret_mend);
	return 0;
}
