/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A record that is no sample is its body and, right behind it, sample_id; the size in its header is
 * that of both. But it may be more. The kernel makes one header for all who listen, and adds the
 * size of each listener's sample_id to it. Most kinds have their size put back for the next
 * listener, KSYMBOL, BPF_EVENT and TEXT_POKE have not: the second listener's record ends with as
 * many bytes as the first one's sample_id has, which nobody wrote. They are what was in the ring
 * before, often an id of ours, and a time that can be anything.
 *
 *      listener 1   | header | body | sample_id |
 *      listener 2   | header | body | sample_id | stale …   |
 *      listener 3   | header | body | sample_id | stale …              |
 *
 * So the end of the body is worked out from the body: each kind has a fixed part, and some a string
 * behind it, which the kernel fills with zeros to a whole word. What no kind's layout tells (READ,
 * kinds that are newer than this file) ends with its sample_id, as documented.
 *
 * Source: perf_event_header__init_id, perf_event_ksymbol_output, perf_event_bpf_output and
 * perf_event_text_poke_output in kernel/events/core.c of Linux 6.12, where perf_event_comm_output
 * and its like keep the size and put it back; seen on 6.18. The layouts: man perf_event_open, "MMAP
 * layout"; include/uapi/linux/perf_event.h of Linux 6.12.
 */

#include "daemon/decode/trailer.h"

#include <string.h>

#include "daemon/decode/record.h"

/* The fields of sample_type that sample_id repeats behind every other record, 8 bytes each. */
#define SAMPLE_ID_FIELDS                                                                           \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
		PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

#define WORD sizeof(uint64_t)
#define HEADER sizeof(struct perf_event_header)
#define SAMPLE_ID_WORDS_MIN 4 /* STREAM_SAMPLE_ID */
#define SAMPLE_ID_WORDS_MAX 6 /* all of SAMPLE_ID_FIELDS */

/* What a body is, behind the header. */
struct body {
	uint16_t words; /* of the fixed part; 0: not known */
	bool text;      /* then a string, filled to a whole word */
};

static const struct body bodies[PERF_RECORD_MAX] = {
	[PERF_RECORD_MMAP] = {4, true},
	[PERF_RECORD_LOST] = {2, false},
	[PERF_RECORD_COMM] = {1, true},
	[PERF_RECORD_EXIT] = {3, false},
	[PERF_RECORD_THROTTLE] = {3, false},
	[PERF_RECORD_UNTHROTTLE] = {3, false},
	[PERF_RECORD_FORK] = {3, false},
	[PERF_RECORD_MMAP2] = {8, true},
	[PERF_RECORD_AUX] = {3, false},
	[PERF_RECORD_ITRACE_START] = {1, false},
	[PERF_RECORD_LOST_SAMPLES] = {1, false},
	[PERF_RECORD_SWITCH_CPU_WIDE] = {1, false},
	[PERF_RECORD_KSYMBOL] = {2, true},
	[PERF_RECORD_BPF_EVENT] = {2, false},
	[PERF_RECORD_CGROUP] = {1, true},
	[PERF_RECORD_AUX_OUTPUT_HW_ID] = {1, false},
};

static size_t whole_words(size_t n)
{
	return (n + WORD - 1) / WORD * WORD;
}

/* A TEXT_POKE has an address, two lengths of 16 bits, and the code before and after. */
static size_t text_poke_end(const uint8_t *bytes, size_t n)
{
	uint16_t length[2];

	if (n < HEADER + WORD + sizeof(length))
		return 0;
	memcpy(length, bytes + HEADER + WORD, sizeof(length));
	return HEADER + WORD + whole_words(sizeof(length) + length[0] + length[1]);
}

/* Where the body ends; 0 if it does not say. It may be beyond n. */
static size_t body_end(const uint8_t *bytes, size_t n, uint32_t type)
{
	if (type == PERF_RECORD_SWITCH)
		return HEADER;
	if (type == PERF_RECORD_TEXT_POKE)
		return text_poke_end(bytes, n);
	if (type >= PERF_RECORD_MAX || !bodies[type].words)
		return 0;

	size_t end = HEADER + bodies[type].words * WORD;
	if (!bodies[type].text || end >= n)
		return end;
	return end + whole_words(strnlen((const char *)bytes + end, n - end) + 1);
}

size_t trailer_bytes(const struct stream *s)
{
	return WORD * (size_t)__builtin_popcountll(s->sample_type & SAMPLE_ID_FIELDS);
}

/* The stream whose sample_id ends, with its identifier, at that place; NULL: none. */
static const struct stream *stream_before(
	const uint8_t *bytes, size_t end, const struct stream_table *streams)
{
	uint64_t id;

	memcpy(&id, bytes + end - sizeof(id), sizeof(id));
	return stream_table_find(streams, id);
}

int trailer_find(const uint8_t *bytes, size_t n, const struct stream_table *streams,
	struct trailer *ret_trailer)
{
	struct perf_event_header h;

	if (n < HEADER + WORD)
		return RECORD_TRUNCATED;
	memcpy(&h, bytes, sizeof(h));
	const struct stream *s = stream_before(bytes, n, streams);
	size_t n_tail = s ? trailer_bytes(s) : 0;
	size_t body = body_end(bytes, n, h.type);

	if (s && (s->sample_type & STREAM_SAMPLE_ID) != STREAM_SAMPLE_ID)
		return RECORD_HOSTILE;
	/* As it should be, or it says nothing of where it ends, or contradicts itself, which is
	 * found when it is decoded. */
	if (s && (!body || body + n_tail >= n)) {
		if (n < HEADER + n_tail)
			return RECORD_TRUNCATED;
		*ret_trailer = (struct trailer){s, n - n_tail, n_tail};
		return 0;
	}
	if (!body)
		return RECORD_STRANGER;
	for (size_t words = SAMPLE_ID_WORDS_MIN; words <= SAMPLE_ID_WORDS_MAX; words++) {
		size_t end = body + words * WORD;
		if (end > n)
			break;
		s = stream_before(bytes, end, streams);
		if (s && trailer_bytes(s) == words * WORD) {
			*ret_trailer = (struct trailer){s, body, words * WORD};
			return 0;
		}
	}
	return RECORD_STRANGER;
}
