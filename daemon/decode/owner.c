/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Whose a sample is that bears another session's id. Where two sessions hear of the same software
 * event on one hart (a switch, a page fault), one of them gets its samples with the other's id: the
 * kernel fills in one perf_sample_data for all who listen, and what is filled in once it takes for
 * known. All else in the record is right, and the ring that it lies in is ours, so the record is
 * found by that: a switch by the group whose values it brings, others by being the only event of
 * that kind that this session has on the hart.
 * Source: do_perf_sw_event in kernel/events/core.c of Linux 6.12, and seen on 6.18. */

#include "daemon/decode/owner.h"

#include <string.h>

/* Where a record of a switch has the id of its group's leader, which is the first that the group's
 * read lists: behind header, IDENTIFIER, IP, TID, TIME, CPU and PERIOD, and the read's nr, enabled,
 * running and first value. Source: man perf_event_open, PERF_RECORD_SAMPLE, and attr_switch. */
#define SWITCH_SAMPLE_TYPE                                                                         \
	(STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ)
#define SWITCH_LEADER_AT (sizeof(struct perf_event_header) + 10 * sizeof(uint64_t))

/* NULL: it is no such sample. */
static const struct stream *find_switch_stream(
	const uint8_t *bytes, size_t n, const struct stream_table *streams)
{
	uint64_t leader;

	if (n < SWITCH_LEADER_AT + sizeof(leader))
		return NULL;
	memcpy(&leader, bytes + SWITCH_LEADER_AT, sizeof(leader));
	const struct stream *s = stream_table_find(streams, leader);
	/* the sibling was opened after its leader, so its id is above */
	for (; s && s < streams->stream + streams->n_streams; s++)
		if (s->role == STREAM_SWITCH && s->leader == leader)
			return s->sample_type == SWITCH_SAMPLE_TYPE ? s : NULL;
	return NULL;
}

/* Where all others have their hart: behind header, IDENTIFIER, IP, TID and TIME. */
#define SAMPLE_CPU_AT (sizeof(struct perf_event_header) + 4 * sizeof(uint64_t))
#define SAMPLE_UNTIL_CPU                                                                           \
	(STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |                   \
		PERF_SAMPLE_STREAM_ID)

/* NULL: there is none, or there are several, which cannot be told apart. */
static const struct stream *find_software_stream(
	const uint8_t *bytes, size_t n, const struct stream_table *streams)
{
	const struct stream *found = NULL;
	uint32_t cpu;

	if (n < SAMPLE_CPU_AT + sizeof(cpu))
		return NULL;
	memcpy(&cpu, bytes + SAMPLE_CPU_AT, sizeof(cpu));
	for (size_t i = 0; i < streams->n_streams; i++) {
		const struct stream *s = &streams->stream[i];
		if (!s->software || s->hart < 0 || (uint32_t)s->hart != cpu)
			continue;
		if ((s->sample_type & SAMPLE_UNTIL_CPU) != (STREAM_SAMPLE_ID | PERF_SAMPLE_IP))
			return NULL;
		if (found && found->event != s->event)
			return NULL;
		if (!found)
			found = s;
	}
	return found;
}

const struct stream *owner_find(const uint8_t *bytes, size_t n, const struct stream_table *streams)
{
	const struct stream *s = find_switch_stream(bytes, n, streams);
	return s ? s : find_software_stream(bytes, n, streams);
}
