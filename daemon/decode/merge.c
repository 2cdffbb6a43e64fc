/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Each ring is already in order of time (but for records that an interrupt slipped in between), so
 * merging needs only the time of every ring's first record. That time is read once, when the
 * previous record is released. The smallest is found by a pass over a small array of numbers, which
 * is faster than a heap for any realistic number of harts.
 *
 *      ring 0   [12]…        head_ns   12
 *      ring 1   [ 9] 14 …               9   ◀ next
 *      ring 2   empty below the cut    NEVER
 *
 * A record is returned in place, and released only by the next call.
 *
 * A wrong time must not stop its ring: a record stamped in the future would block itself and all
 * records behind it until the ring is full and the hart blind. So such a record gets the time of
 * its neighbour.
 */

#include "daemon/decode/merge.h"

#include <errno.h>
#include <stdlib.h>

#define NEVER UINT64_MAX

static void count_loss(struct merge *m, size_t i, enum loss cause)
{
	if (m->lost)
		m->lost[m->ring[i].hart][cause]++;
}

/* The loss that an undecodable record counts as. An unknown type is not a loss: we never requested
 * it. */
static void count_outcome(struct merge *m, size_t i, int outcome)
{
	switch (outcome) {
	case RECORD_TRUNCATED:
	case RECORD_HOSTILE:
		return count_loss(m, i, LOSS_RECORD);
	case RECORD_STRANGER:
		return count_loss(m, i, LOSS_STREAM);
	}
}

/* Is this time plausible? The clock is read only for a record that would have to wait. */
static bool is_plausible(const struct merge *m, uint64_t time_ns)
{
	if (m->floor_ns > MERGE_BEHIND_NS && time_ns < m->floor_ns - MERGE_BEHIND_NS)
		return false;
	if (time_ns < m->cut_ns && m->cut_ns != NEVER)
		return true;
	return !m->now_ns || time_ns <= m->now_ns() + MERGE_SLACK_NS;
}

/* The time of a record whose own time is not plausible. */
static uint64_t neighbour_ns(struct merge *m, size_t i)
{
	uint64_t time_ns = m->ring[i].merged_ns ? m->ring[i].merged_ns : m->last_ns;

	count_loss(m, i, LOSS_LATE);
	return time_ns < m->cut_ns ? time_ns : m->cut_ns - 1;
}

/* Find the first record of ring i that can be returned, and note its time. */
static int refresh_head(struct merge *m, size_t i)
{
	struct ring *ring = &m->ring[i];

	m->head_ns[i] = NEVER;
	if (!ring->map)
		return 0;

	for (;;) { /* each turn steps over a record, or ends */
		const uint8_t *bytes;
		size_t n;
		int r = ring_peek(ring, &bytes, &n);
		if (r < 0)
			return r;
		if (r == RING_BROKEN)
			count_loss(m, i, LOSS_RECORD);
		if (r)
			return 0;

		uint64_t time_ns;
		r = record_time(bytes, n, m->streams, &time_ns);
		if (r == RECORD_UNTIMED || (r == 0 && !is_plausible(m, time_ns))) {
			time_ns = neighbour_ns(m, i);
			r = 0;
		}
		if (r == 0) {
			/* The last drain takes every record, regardless of its time. */
			bool last = m->cut_ns == NEVER;
			if (last && time_ns == NEVER)
				time_ns = NEVER - 1;
			if (last || time_ns < m->cut_ns)
				m->head_ns[i] = time_ns;
			return 0;
		}
		count_outcome(m, i, r);
		ring_advance(ring);
	}
}

/* Release the record that was returned last. */
static int release_held(struct merge *m)
{
	size_t i = m->held;

	if (i >= m->n_heads)
		return 0;
	m->held = SIZE_MAX;
	ring_advance(&m->ring[i]);
	return refresh_head(m, i);
}

int merge_begin(struct merge *m, uint64_t cut_ns)
{
	if (m->n_heads != m->n_rings) {
		uint64_t *head_ns = reallocarray(m->head_ns, m->n_rings ?: 1, sizeof(*head_ns));
		if (!head_ns)
			return -ENOMEM;
		m->head_ns = head_ns;
		m->n_heads = m->n_rings;
	}
	m->cut_ns = cut_ns;
	m->ended = false;
	m->held = SIZE_MAX;
	for (size_t i = 0; i < m->n_rings; i++)
		m->head_ns[i] = NEVER;

	/* Take all snapshots first, so that they are close together in time. */
	for (size_t i = 0; i < m->n_rings; i++)
		if (m->ring[i].map)
			ring_snapshot(&m->ring[i]);
	for (size_t i = 0; i < m->n_rings; i++) {
		int r = refresh_head(m, i);
		if (r)
			return r;
	}
	return 0;
}

static size_t find_oldest(const struct merge *m)
{
	size_t oldest = 0;

	for (size_t i = 1; i < m->n_heads; i++)
		if (m->head_ns[i] < m->head_ns[oldest])
			oldest = i;
	return oldest;
}

/* Return the first record of ring i. 0, RECORD_*, -errno. */
static int decode_head(struct merge *m, size_t i, struct record *ret_record)
{
	const uint8_t *bytes;
	size_t n;
	int r = ring_peek(&m->ring[i], &bytes, &n); /* the same as when its time was read */
	if (r)
		return r < 0 ? r : -EBADMSG;

	m->held = i;
	return record_decode(bytes, n, m->streams, ret_record);
}

/* Its sample follows, and may have the time of just before: the kernel takes a
 * sample's time before it runs the BPF program. Source: bpf_overflow_handler in
 * kernel/events/core.c of Linux 6.12. */
static bool is_sums(const struct record *r)
{
	return r->kind == RECORD_SAMPLE && r->stream && r->stream->role == STREAM_SWITCH_SUMS;
}

int merge_next(struct merge *m, struct record *ret_record, int *ret_hart)
{
	for (;;) { /* each turn steps over a record, or ends */
		int r = release_held(m);
		if (r)
			return r;

		size_t i = find_oldest(m);
		if (m->n_heads == 0 || m->head_ns[i] == NEVER) {
			m->ended = true;
			return MERGE_END;
		}

		r = decode_head(m, i, ret_record);
		if (r < 0)
			return r;
		if (r > 0) {
			count_outcome(m, i, r);
			continue;
		}

		ret_record->time_ns = m->ring[i].merged_ns = m->head_ns[i];
		if (ret_record->time_ns >= m->last_ns)
			m->last_ns = ret_record->time_ns;
		else if (!m->ring[i].merged_sums && !m->ring[i].raise)
			count_loss(m, i, LOSS_LATE); /* rings of raises may be left unread */
		m->ring[i].merged_sums = is_sums(ret_record);
		*ret_hart = m->ring[i].hart;
		return 0;
	}
}

void merge_end(struct merge *m)
{
	if (m->ended && m->cut_ns != NEVER && m->cut_ns > m->floor_ns)
		m->floor_ns = m->cut_ns;
	/* The next drain starts afresh, so an error while looking ahead does not matter here. */
	(void)release_held(m);
	for (size_t i = 0; i < m->n_rings; i++)
		if (m->ring[i].map)
			ring_release(&m->ring[i]);
}

void merge_clear(struct merge *m)
{
	free(m->head_ns);
	*m = (struct merge){};
}
