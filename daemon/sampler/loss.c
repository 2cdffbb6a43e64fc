/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* When a ring is full, the kernel counts dropped records, and reports them by a LOST record before
 * the next record that fits. As long as none fits, nothing is reported. But each event has its own
 * count of losses, which can be read (Linux 6.0). The sum over all events of a ring is the reported
 * losses plus those not reported yet. The unreported part is counted in advance, and subtracted
 * from later reports. Source: __perf_output_begin in kernel/events/ring_buffer.c of Linux 6.12,
 * which increments rb->lost and event->lost_samples together; an inherited event counts in its
 * parent event.
 */

#include <errno.h>

#include "daemon/sampler/sampler_private.h"

/* Words of a group's read: nr, two times, and value, id and lost of each member: the switch event and
 * the requested ones. */
#define READ_WORDS_MAX (3 + 3 * (EVENT_GROUP_MAX + 1))

/* Source: man perf_event_open, "Reading results". */
int stream_read(const struct sampler *s, const struct stream *stream, struct reading *ret_reading)
{
	const uint64_t format = stream->read_format;
	uint64_t word[READ_WORDS_MAX] = {0};
	ssize_t n = s->kernel->event_read(s->kernel->userdata, stream->fd, word, sizeof(word));
	if (n < 0)
		return (int)n;
	if (n == 0)
		return STREAM_DISPLACED;

	/* The first word is a value, or the number of members. */
	size_t n_words = (size_t)n / sizeof(*word), at = 1;
	struct reading r = {0};
	if (format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		r.enabled_ns = word[at++];
	if (format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		r.running_ns = word[at++];

	/* Then the members follow, or the other words of a single event; lost is the last. */
	size_t width =
		(format & PERF_FORMAT_GROUP ? 1u : 0) + (format & PERF_FORMAT_ID ? 1u : 0) + 1;
	for (; format & PERF_FORMAT_LOST && at + width <= n_words; at += width)
		r.n_lost += word[at + width - 1];
	*ret_reading = r;
	return 0;
}

/* Add the unreported losses of the harts' rings. */
static void count_untold(struct sampler *s, const uint64_t *n_lost, int first, int end)
{
	for (int hart = first; hart < end; hart++) {
		uint64_t told = s->lost[hart][LOSS_RING] - s->losses[hart].before;
		if (n_lost[hart - first] <= told)
			continue;
		s->lost[hart][LOSS_RING] += n_lost[hart - first] - told;
		s->lost_ahead[hart] += n_lost[hart - first] - told;
	}
}

/* Sum the counts of all events that write into a hart's own ring. An event that cannot be read (a
 * task's group that lost a member in a child) is left out. */
static void add_lost(const struct sampler *s, int first, int end, uint64_t *n_lost)
{
	for (size_t i = 0; i < s->streams.n_streams; i++) {
		const struct stream *t = &s->streams.stream[i];
		struct reading r;
		/* records of a side band with a ring of its own are no samples, and its LOST
		 * records come soon */
		bool leads = (t->role == STREAM_SIDEBAND && !s->options.always) ||
			     t->role == STREAM_SAMPLER || t->role == STREAM_SWITCH_BPF ||
			     t->role == STREAM_SWITCH_SUMS;
		if (leads && t->hart >= first && t->hart < end && stream_read(s, t, &r) == 0)
			n_lost[t->hart - first] += r.n_lost;
	}
}

uint64_t sampler_execs_lost(const struct sampler *s, bool apart)
{
	const enum stream_role role = apart ? STREAM_EXEC_BPF : STREAM_SIDEBAND;
	uint64_t n_lost = 0;

	for (size_t i = 0; i < s->streams.n_streams; i++) {
		struct reading r;
		if (s->streams.stream[i].role == role &&
			stream_read(s, &s->streams.stream[i], &r) == 0)
			n_lost += r.n_lost;
	}
	return n_lost;
}

void hart_begin_losses(struct sampler *s, int hart)
{
	s->losses[hart].before = s->lost[hart][LOSS_RING];
	s->lost_ahead[hart] = 0; /* its ring is closed */
}

void hart_count_losses(struct sampler *s, int hart)
{
	uint64_t n_lost = 0;
	add_lost(s, hart, hart + 1, &n_lost);
	count_untold(s, &n_lost, hart, hart + 1);
}

void hart_forget_losses(struct sampler *s, int hart)
{
	uint64_t n_lost = 0, told = s->lost[hart][LOSS_RING];
	add_lost(s, hart, hart + 1, &n_lost);
	s->losses[hart].before = told > n_lost ? told - n_lost : 0;
}

void sampler_count_losses(struct sampler *s)
{
	uint64_t n_lost[HARTS_MAX] = {0};
	add_lost(s, 0, s->machine.n_harts, n_lost);
	count_untold(s, n_lost, 0, s->machine.n_harts);
}
