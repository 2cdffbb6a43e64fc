/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The rings of a session's harts: mapped through an event, found by hart and raise, unmapped */

#include <errno.h>
#include <unistd.h>

#include "daemon/sampler/attr.h"
#include "daemon/sampler/sampler_private.h"

/* Samples for which a ring has room at any rate: it wakes its owner at a quarter of it. */
#define RING_SAMPLES_MIN 4u

/* Has the ring room for the samples of a quarter of a second? It wakes its owner before it is full. */
static bool has_room(size_t ring_bytes, uint32_t copy_bytes, uint32_t hz)
{
	const uint64_t each = copy_bytes + SAMPLE_BESIDE_STACK_BYTES;

	return 4 * (uint64_t)ring_bytes / hz >= each && ring_bytes / RING_SAMPLES_MIN >= each;
}

/* When a recording begins, its rings have room for the samples of a second, or for this many if that is less. Programs
 * with a real-time priority may keep us from reading for 0.95 s of each second. Source: Linux,
 * Documentation/scheduler/sched-rt-group.rst. With 250 it is a quarter of a second at 1,000 Hz, as has_room() asks. */
#define BEGIN_SAMPLES 250u

uint32_t ring_begin_hz(const struct sampler *s)
{
	const uint32_t of_a_second = 4 * (s->hz < BEGIN_SAMPLES ? s->hz : BEGIN_SAMPLES);

	return s->options.always || s->hz > of_a_second ? s->hz : of_a_second;
}

uint32_t ring_copy_most(size_t ring_bytes, uint32_t least, uint32_t hz)
{
	uint32_t bytes = SAMPLER_STACK_BYTES_MAX;

	while (bytes > least && !has_room(ring_bytes, bytes, hz))
		bytes = (bytes / 2 + 7) & ~UINT32_C(7);
	return bytes > least ? bytes : least;
}

/* Those of raises come last, since they may be left unread (session/walk_drain.c). */
static int rank(const struct ring *r)
{
	return r->raise == 0 ? 0 : r->raise == RAISE_OF_WAITS ? 1 : 2;
}

/* An unprivileged user's budget of locked memory may be partly used by other processes: halve the size
 * until it fits. */
int hart_map_ring(struct sampler *s, const struct ring *of, size_t n, struct event_error *to)
{
	const struct kernel *k = s->kernel;
	int error = 0;
	void *map = NULL;
	for (; n >= (size_t)getpagesize(); n /= 2) {
		map = k->ring_map(k->userdata, of->fd, n, &error);
		if (map || (error != -EPERM && error != EPERM))
			break;
	}
	if (map) {
		size_t at = s->n_rings++;
		for (; at > 0 && rank(of) < rank(&s->ring[at - 1]); at--)
			s->ring[at] = s->ring[at - 1];
		s->ring[at] = *of;
		s->ring[at].map = map;
		s->ring[at].data_bytes = n;
		if (!s->started && !of->sideband && !of->raise) {
			const uint32_t most =
				ring_copy_most(n, s->options.stack_bytes, ring_begin_hz(s));
			s->copy_bytes = s->copy_bytes < most ? s->copy_bytes : most;
		}
		return 0;
	}
	error = error < 0 ? -error : error;
	if (error != EPERM)
		return -error;
	opening_explain(to,
		"no locked memory is left for the ring of hart %d; raise "
		"kernel.perf_event_mlock_kb (%u) or end this user's other profilers",
		of->hart, s->machine.mlock_kb);
	return HART_REFUSED;
}

int exec_ring_map(struct sampler *s, const struct ring *of, size_t n)
{
	const struct kernel *k = s->kernel;
	int error = 0;
	void *map = k->ring_map(k->userdata, of->fd, n, &error);

	if (!map)
		return error < 0 ? error : -error;
	s->exec_ring[s->n_exec_rings] = *of;
	s->exec_ring[s->n_exec_rings].map = map;
	s->exec_ring[s->n_exec_rings++].data_bytes = n;
	return 0;
}

size_t rings_least(const struct sampler *s)
{
	size_t least = 0;

	for (size_t i = 0; i < s->n_rings; i++) {
		const struct ring *r = &s->ring[i];
		if (r->map && !r->raise && !r->sideband && (least == 0 || r->data_bytes < least))
			least = r->data_bytes;
	}
	return least;
}

/* Unmap that hart's rings of that use and remove them from the n rings. */
static void close_some(
	const struct kernel *k, struct ring *ring, size_t *n, int hart, unsigned raise)
{
	size_t n_kept = 0;
	for (size_t i = 0; i < *n; i++) {
		bool is = raise == RINGS_OF_ALL || (ring[i].raise == raise && !ring[i].sideband);
		if (!is || (hart >= 0 && ring[i].hart != hart)) {
			ring[n_kept++] = ring[i];
			continue;
		}
		k->ring_unmap(k->userdata, ring[i].map, ring[i].data_bytes);
		ring_clear(&ring[i]);
	}
	*n = n_kept;
}

void rings_close(struct sampler *s, int hart, unsigned raise)
{
	close_some(s->kernel, s->ring, &s->n_rings, hart, raise);
	if (raise == RINGS_OF_ALL)
		close_some(s->kernel, s->exec_ring, &s->n_exec_rings, hart, raise);
}
