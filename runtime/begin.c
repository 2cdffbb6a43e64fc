/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * What a process needs to know before it counts: where to send, how often, what the clock costs.
 */
#include <stdlib.h>
#include <unistd.h>

#include "runtime/begin.h"
#include "runtime/gs_base.h"
#include "runtime/process.h"
#include "runtime/state.h"
#include "runtime/timed_loop.h"
#include "runtime/vscale.h"

#define CLOCK_LOOKS 16u /* the minimum of these is undisturbed */

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

/* MPERF_PERIOD=, in ms; an invalid value changes nothing. */
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

void mperf_begin(struct state *s)
{
	if (s->started)
		return;
	s->pid = getpid();
	s->areas.bytes_max = MPERF_AREA_BYTES_MAX;
	s->begin_ns = mperf_now_ns();
	s->clock_ns = clock_cost_ns();
	s->vscale = mperf_vscale();
	s->may_write_segment = mperf_segment_writable();
	s->period_ms = period_ms();
	s->regions_one_in = mperf_select_one_in("MPERF_REGION_SAMPLE");
	mperf_select_init(&s->selection);
	mperf_sink_init(&s->sink);
	s->silent = !mperf_sink_wanted(&s->sink);
	s->timing_ns = s->silent ? 0 : mperf_timed_cost_ns(s->clock_ns);
	__atomic_store_n(&s->started, true, __ATOMIC_RELEASE);
	mperf_process_begin(s);
}
