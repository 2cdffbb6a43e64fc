/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * A hart is reopened if it delivers no samples, not if it delivers few: throttling, a limit that the
 * kernel lowered and counters that rotate reduce the samples, but let some pass, and each of these
 * causes is counted elsewhere. If less than a tenth of the samples comes, that is only counted, so that
 * users do not take a few samples for all of them. A hart owes samples only for time in which its events
 * count (sampler_is_steady). It is judged only once it owes enough of them to exclude chance, however
 * low the rate.
 */
#include "daemon/session/blind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/memory.h"

#define SECOND_NS 1000000000u

int blind_init(struct blind *b, int n_harts)
{
	*b = (struct blind){.n_harts = n_harts};
	b->hart = calloc((size_t)(n_harts > 0 ? n_harts : 1), sizeof(*b->hart));
	return b->hart ? 0 : -ENOMEM;
}

void blind_clear(struct blind *b)
{
	free(b->hart);
	*b = (struct blind){.hart = NULL};
}

static uint64_t ticks_ns(uint64_t ticks)
{
	long hz = sysconf(_SC_CLK_TCK);
	return ticks * (SECOND_NS / (uint64_t)(hz > 0 ? hz : 100));
}

/* The hart delivers samples: it owes none for the past. */
static void see(struct blind_hart *h)
{
	h->owed_ns = h->told_s = h->mend_ns = h->wait_ns = 0;
	h->n_mends = 0;
	h->blind = false;
}

/* The time since the last check for which the hart owes samples. After its events were reopened,
 * only the time since then counts. */
static uint64_t busy_ns(const struct blind_hart *h, const struct hart_time *time, bool user)
{
	struct hart_time did = hart_time_since(time, &h->time);
	return did.known ? ticks_ns(did.user + (user ? 0 : did.kernel)) : 0;
}

static uint64_t samples_of(uint64_t ns, uint32_t hz)
{
	return ns / SECOND_NS * hz + ns % SECOND_NS * hz / SECOND_NS;
}

static void forget_few(struct blind_hart *h)
{
	h->few_ns = h->few_samples = h->few_hz = 0;
}

/* The seconds in which the hart delivered too few samples, given this additional busy time and n
 * more samples. If the rate changed in between, the lowest rate counts. */
static uint64_t few_seconds(struct blind_hart *h, uint64_t ns, uint64_t n, uint32_t hz)
{
	h->few_ns += ns;
	h->few_samples += n;
	h->few_hz = h->few_hz && h->few_hz < hz ? h->few_hz : hz;
	uint64_t owed = samples_of(h->few_ns, h->few_hz), seconds = 0;
	if (owed < BLIND_SAMPLES_MIN)
		return 0;
	/* none at all is LOSS_BLIND */
	if (h->few_samples > 0 && h->few_samples * BLIND_FEW < owed)
		seconds = h->few_ns / SECOND_NS;
	forget_few(h);
	return seconds;
}

/* Should the hart be reopened now? If so, set the time of its next reopening. */
static bool must_mend(struct blind_hart *h, uint64_t now_ns)
{
	if (!h->blind || now_ns < h->mend_ns)
		return false;
	h->wait_ns = h->wait_ns ? 2 * h->wait_ns : BLIND_MEND_NS;
	if (h->wait_ns > BLIND_MEND_NS_MAX)
		h->wait_ns = BLIND_MEND_NS_MAX;
	h->mend_ns = now_ns + h->wait_ns;
	h->n_mends++;
	return true;
}

static void look_at(struct blind *b, struct sampler *s, int hart, const struct hart_time *time)
{
	struct blind_hart *h = &b->hart[hart];
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
	if (samples_of(h->owed_ns, s->hz) < BLIND_SAMPLES_MIN)
		return;
	h->blind = true;
	s->lost[hart][LOSS_BLIND] += h->owed_ns / SECOND_NS - h->told_s;
	h->told_s = h->owed_ns / SECOND_NS;
}

/* Choose harts to reopen in rotation, so that harts that are reopened often do not displace others. */
static void choose(struct blind *b, uint64_t now_ns, struct hart_set *mend)
{
	int first = b->first_mend, n_mends = 0;
	for (int i = 0; i < b->n_harts && n_mends < BLIND_MENDS_MAX; i++) {
		int hart = (first + i) % b->n_harts;
		if (!must_mend(&b->hart[hart], now_ns))
			continue;
		hart_set_add(mend, hart);
		b->first_mend = hart + 1;
		n_mends++;
	}
}

static void tell(struct blind *b)
{
	char names[128];
	struct hart_set blind = {0};
	uint64_t longest_ns = 0;
	unsigned n_mends = 0;
	for (int hart = 0; hart < b->n_harts; hart++) {
		const struct blind_hart *h = &b->hart[hart];
		if (!h->blind)
			continue;
		hart_set_add(&blind, hart);
		longest_ns = h->owed_ns > longest_ns ? h->owed_ns : longest_ns;
		n_mends = h->n_mends > n_mends ? h->n_mends : n_mends;
	}
	*b->trouble = '\0';
	int n = hart_set_count(&blind);
	if (n > 0)
		snprintf(b->trouble, sizeof(b->trouble),
			"hart%s %s %s busy for %llu s but delivered no samples; reopened %u time%s",
			n > 1 ? "s" : "", hart_set_says(&blind, names, sizeof(names)),
			n > 1 ? "were" : "was", (unsigned long long)(longest_ns / SECOND_NS),
			n_mends, n_mends == 1 ? "" : "s");
}

void blind_look(struct blind *b, struct sampler *s, const struct hart_time *time, uint64_t now_ns,
	struct hart_set *ret_mend)
{
	*ret_mend = (struct hart_set){0};
	b->next_look_ns = now_ns + BLIND_LOOK_NS;
	for (int hart = 0; hart < b->n_harts; hart++)
		look_at(b, s, hart, &time[hart]);
	b->hz = s->hz;
	choose(b, now_ns, ret_mend);
	tell(b);
}

int blind_read(struct blind *b, struct sampler *s, uint64_t now_ns, struct hart_set *ret_mend)
{
	_cleanup_(freep) struct hart_time *time = calloc((size_t)b->n_harts + 1, sizeof(*time));
	if (!time)
		return -ENOMEM;
	/* without /proc/stat nothing is known, and no hart is reported */
	(void)hart_time_read(time, b->n_harts);
	blind_look(b, s, time, now_ns, ret_mend);
	return 0;
}
