/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * The runtime begins with the first object that registers, or with its own constructor where
 * regions are all there is. Each library that was linked with the archive holds a copy, whose
 * constructor starts the one that serves (copies.c).
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/copies.h"
#include "runtime/process.h"
#include "runtime/segment.h"
#include "runtime/state.h"
#include "runtime/vscale.h"

#define CLOCK_LOOKS 16u /* the least of so many is not disturbed */

struct state mperf_state = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t mperf_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void mperf_lock(struct state *s, sigset_t *ret_mask)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, ret_mask);
	pthread_mutex_lock(&s->lock);
}

void mperf_unlock(struct state *s, const sigset_t *mask)
{
	pthread_mutex_unlock(&s->lock);
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

static uint32_t clock_cost_ns(void)
{
	uint64_t least = UINT32_MAX;
	uint64_t before = mperf_now_ns();
	for (unsigned i = 0; i < CLOCK_LOOKS; i++) {
		uint64_t now = mperf_now_ns();
		if (now - before < least)
			least = now - before;
		before = now;
	}
	return (uint32_t)least;
}

/* MPERF_PERIOD=, in ms; what is no such number changes nothing. */
static uint32_t period_ms(void)
{
	const char *text = secure_getenv("MPERF_PERIOD");
	char *end;
	unsigned long ms = text && *text ? strtoul(text, &end, 10) : MPERF_PERIOD_MS;
	if (text && *text && *end != '\0')
		return MPERF_PERIOD_MS;
	if (ms < MPERF_PERIOD_MS_MIN)
		return MPERF_PERIOD_MS_MIN;
	return ms > MPERF_PERIOD_MS_MAX ? MPERF_PERIOD_MS_MAX : (uint32_t)ms;
}

void __mperf_start(void)
{
	mperf_copies_look();
	if (mperf_elsewhere) {
		mperf_elsewhere->start();
		return;
	}
	struct state *s = &mperf_state;
	sigset_t mask;
	mperf_lock(s, &mask);
	if (!s->started) {
		s->pid = getpid();
		s->areas.bytes_max = MPERF_AREA_BYTES_MAX;
		s->begin_ns = mperf_now_ns();
		s->clock_ns = clock_cost_ns();
		s->vscale = mperf_vscale();
		s->may_write_segment = mperf_segment_writable();
		s->period_ms = period_ms();
		mperf_select_init(&s->selection);
		mperf_sink_init(&s->sink);
		__atomic_store_n(&s->started, true, __ATOMIC_RELEASE);
		mperf_process_begin(s);
	}
	mperf_unlock(s, &mask);
}
