/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A comparison needs counts and switches: so we alternately touch pages and keep a hart busy, and
 * sleep. Page faults are counted on every machine, instructions if there is a PMU. Other tasks of
 * that time are compared as well.
 */

#include "daemon/doctor/switch_compare.h"

#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/memory.h"

#define EVENTS "{cpu-clock,page-faults,instructions}"
#define TURNS 40
#define TURN_NS 500000u /* busy, and then asleep */
#define TURN_PAGES 32
#define COMPARE_HZ 99u

DEFINE_CLEANUP(struct sampler *, sampler_free)
DEFINE_CLEANUP(struct switch_check *, switch_check_free)

static void touch_pages(void)
{
	size_t page_bytes = (size_t)getpagesize(), n = TURN_PAGES * page_bytes;
	char *pages = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED)
		return;
	for (size_t i = 0; i < n; i += page_bytes)
		((volatile char *)pages)[i] = 1;
	munmap(pages, n);
}

/* Cause switches on a hart whose counts are cut: spin and sleep alternately. If we may not run
 * there, other tasks do. */
static void take_turns(const struct sampler *s)
{
	const struct timespec nap = {.tv_nsec = TURN_NS};
	int hart = 0;
	while (hart + 1 < s->machine.n_harts && s->plan[hart].cut == 0)
		hart++;
	for (int i = 0; i < TURNS; i++) {
		touch_pages();
		(void)s->kernel->spin(s->kernel->userdata, hart, TURN_NS);
		nanosleep(&nap, NULL);
	}
}

static int take_ring(struct ring *ring, const struct stream_table *streams, struct switch_check *c)
{
	const uint8_t *bytes;
	size_t n;
	int r;
	ring_snapshot(ring);
	while ((r = ring_peek(ring, &bytes, &n)) == 0) {
		struct record record;
		if (record_decode(bytes, n, streams, &record) == 0)
			r = switch_check_record(c, &record, ring->hart);
		if (r < 0)
			break;
		ring_advance(ring);
	}
	ring_release(ring);
	return r < 0 ? r : 0;
}

static int compare(struct sampler *s, struct switch_comparison *ret_comparison)
{
	_cleanup_(switch_check_freep) struct switch_check *c = NULL;
	int r = switch_check_new(&s->streams, &s->events, &c);
	if (r == 0)
		r = sampler_start(s);
	if (r < 0)
		return r;
	take_turns(s);
	r = sampler_stop(s);
	for (size_t i = 0; r == 0 && i < s->n_rings; i++)
		r = take_ring(&s->ring[i], &s->streams, c);
	if (r < 0)
		return r;
	switch_check_judge(c, &ret_comparison->verdict);
	snprintf(ret_comparison->worst_event, sizeof(ret_comparison->worst_event), "%s",
		s->events.event[ret_comparison->verdict.worst.event].name);
	return 0;
}

int switch_compare(const struct kernel *k, struct switch_comparison *ret_comparison)
{
	_cleanup_(sampler_freep) struct sampler *s = NULL;
	struct switch_comparison c = {0};
	struct event_list events = {0};
	const struct sampler_options o = {
		.hz = COMPARE_HZ,
		.events = &events,
		.switches = SAMPLER_SWITCHES_BOTH,
	};
	int r = event_parse(k, EVENTS, &events, &c.why);
	if (r == 0)
		r = sampler_new(k, &o, &s, &c.why);
	if (r < 0)
		return r;
	if (r == 0) {
		c.cut = sampler_cut(s);
		c.error = sampler_switch_error(s, SWITCH_RECORDS);
		if ((c.cut & CUT_SIBLING) && (c.cut & CUT_BPF))
			r = compare(s, &c);
	}
	if (r < 0)
		return r;
	*ret_comparison = c;
	return r > 0 ? SWITCH_COMPARE_REFUSED : 0;
}
