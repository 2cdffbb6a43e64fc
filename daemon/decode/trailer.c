/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* A non-sample record is its body followed by sample_id; the size in its header should cover both,
 * but it may be larger. The kernel makes one header for all listeners and adds the size of each
 * listener's sample_id to it. For most kinds it restores the size for the next listener, but not
 * for KSYMBOL, BPF_EVENT and TEXT_POKE: the second listener's record ends with unwritten bytes, as
 * many as the first one's sample_id has. They hold old ring contents, often one of our ids with an
 * arbitrary time.
 *
 *      listener 1   | header | body | sample_id |
 *      listener 2   | header | body | sample_id | stale …   |
 *      listener 3   | header | body | sample_id | stale …              |
 *
 * So the end of the body is computed from the body: each kind has a fixed part, and some a string
 * after it, which the kernel pads with zeros to a whole word. Records whose layout does not give
 * their size (READ, kinds newer than this file) end with their sample_id, as documented.
 *
 * Source: perf_event_header__init_id, perf_event_ksymbol_output, perf_event_bpf_output and
 * perf_event_text_poke_output in kernel/events/core.c of Linux 6.12, where perf_event_comm_output
 * and similar functions save and restore the size; seen on 6.18. The layouts: man perf_event_open,
 * "MMAP layout"; include/uapi/linux/perf_event.h of Linux 6.12.
 */

#include "daemon/decode/trailer.h"

#include <string.h>

#include "daemon/decode/record.h"

/* The fields of sample_type that sample_id repeats after every non-sample record, 8 bytes each. */
#define SAMPLE_ID_FIELDS                                                                           \
	(PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID |             \
		PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER)

#define WORD sizeof(uint64_t)
#define HEADER sizeof(struct perf_event_header)
#define SAMPLE_ID_WORDS_MIN 4 /* STREAM_SAMPLE_ID */
#define SAMPLE_ID_WORDS_MAX 6 /* all of SAMPLE_ID_FIELDS */

/* Layout of a body, after the header. */
struct body {
	uint16_t words; /* of the fixed part; 0: not known */
	bool text;      /* followed by a string, padded to a whole word */
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

/* A cookie, the number of addresses, and these. 0: more than the record has. */
static size_t deferred_end(const uint8_t *bytes, size_t n)
{
	uint64_t n_addresses;

	if (n < HEADER + 2 * WORD)
		return 0;
	memcpy(&n_addresses, bytes + HEADER + WORD, sizeof(n_addresses));
	return n_addresses > n / WORD ? 0 : HEADER + (2 + (size_t)n_addresses) * WORD;
}

/* The end of the body; 0 if it cannot be computed. It may be beyond n. */
static size_t body_end(const uint8_t *bytes, size_t n, uint32_t type)
{
	if (type == PERF_RECORD_SWITCH)
		return HEADER;
	if (type == PERF_RECORD_TEXT_POKE)
		return text_poke_end(bytes, n);
	if (type == RECORD_TYPE_CALLCHAIN_DEFERRED)
		return deferred_end(bytes, n);
	if (type >= PERF_RECORD_MAX || !bodies[type].words)
		return 0;

	size_t end = HEADER + bodies[type].words * WORD;
	if (!bodies[type].text || end >= n)
		return end;
	return end + whole_words(strnlen((const char *)bytes + end, n - end) + 1);
}

/* Size of sample_id in records of that stream, in bytes. */
static size_t trailer_bytes(const struct stream *s)
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
	/* The size is right, or the body does not give its end, or it contradicts itself, which
	 * decoding will find. */
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
