/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* Samples with another session's id. If two sessions record the same software event on one hart (a
 * switch, a page fault), one of them gets its samples with the other's id: the kernel shares one
 * perf_sample_data between all listeners and does not fill in a field twice. Everything else in the
 * record is right, and it is in our ring, so the stream is found by other means: a switch by the
 * group whose values it carries, others if this session has only one event of that kind on the
 * hart. Source: do_perf_sw_event in kernel/events/core.c of Linux 6.12, and seen on 6.18. */

#include "daemon/decode/sample_stream.h"

#include <string.h>

/* Offset of the leader's id in a switch record. The leader is the first in the group's read: after
 * header, IDENTIFIER, IP, TID, TIME, CPU and PERIOD, and the read's nr, enabled, running and first
 * value. Source: man perf_event_open, PERF_RECORD_SAMPLE, and attr_switch. */
#define SWITCH_SAMPLE_TYPE                                                                         \
	(STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ)
#define SWITCH_LEADER_AT (sizeof(struct perf_event_header) + 10 * sizeof(uint64_t))

/* NULL: not such a sample. */
static const struct stream *find_switch_stream(
	const uint8_t *bytes, size_t n, const struct stream_table *streams)
{
	uint64_t leader;

	if (n < SWITCH_LEADER_AT + sizeof(leader))
		return NULL;
	memcpy(&leader, bytes + SWITCH_LEADER_AT, sizeof(leader));
	const struct stream *s = stream_table_find(streams, leader);
	const struct stream_table *t = s && s->closed ? streams->closed : streams;
	/* the sibling was opened after its leader, so its id is above */
	for (; s && s < t->stream + t->n_streams; s++)
		if (s->role == STREAM_SWITCH && s->leader == leader)
			return s->sample_type == SWITCH_SAMPLE_TYPE ? s : NULL;
	return NULL;
}

/* Offset of the hart in all other samples: after header, IDENTIFIER, IP, TID and TIME. */
#define SAMPLE_CPU_AT (sizeof(struct perf_event_header) + 4 * sizeof(uint64_t))
#define SAMPLE_UNTIL_CPU                                                                           \
	(STREAM_SAMPLE_ID | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |                   \
		PERF_SAMPLE_STREAM_ID)

/* NULL: there is none, or several that cannot be distinguished. */
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

const struct stream *sample_stream_find(
	const uint8_t *bytes, size_t n, const struct stream_table *streams)
{
	const struct stream *s = find_switch_stream(bytes, n, streams);
	return s ? s : find_software_stream(bytes, n, streams);
}
