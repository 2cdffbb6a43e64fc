/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

/* The station's own decoder reads what the rings hold, so that the layouts which the sampler asked
 * for and the streams that it described are checked against one another in every test.
 */

#include "tests/unit/sampler_case.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "daemon/decode/record.h"

struct replay *case_load(const char *name)
{
	char path[128];
	struct replay *r = NULL;
	struct replay_error error = {""};
	snprintf(path, sizeof(path), "tests/platforms/%s.json", name);
	ck_assert_msg(replay_load(path, &r, &error) == 0, "%s", error.text);
	return r;
}

struct sampler *case_sampler(struct replay *r, const struct sampler_options *o)
{
	struct sampler *s = NULL;
	struct event_error error = {""};
	int outcome = sampler_new(replay_kernel(r), o, &s, &error);
	ck_assert_msg(outcome == 0, "outcome %d: %s", outcome, error.text);
	ck_assert_str_eq(error.text, "");
	return s;
}

void case_end(struct replay *r, struct sampler *s)
{
	ck_assert_ptr_null(sampler_free(s));
	ck_assert_uint_eq(replay_n_events(r), 0);
	ck_assert_uint_eq(replay_n_maps(r), 0);
	ck_assert_uint_eq(replay_n_stray(r), 0);
	replay_free(r);
}

const struct stream *case_stream(const struct sampler *s, int hart, enum stream_role role)
{
	for (size_t i = 0; i < s->streams.n_streams; i++)
		if (s->streams.stream[i].hart == hart && s->streams.stream[i].role == role)
			return &s->streams.stream[i];
	return NULL;
}

unsigned case_n_streams(const struct sampler *s, enum stream_role role)
{
	unsigned n = 0;
	for (size_t i = 0; i < s->streams.n_streams; i++)
		n += s->streams.stream[i].role == role;
	return n;
}

struct event_list case_events(struct replay *r, const char *text)
{
	struct event_list l = {0};
	struct event_error error = {""};
	ck_assert_msg(event_parse(r ? replay_kernel(r) : &kernel_real, text, &l, &error) == 0, "%s",
		error.text);
	return l;
}

struct case_tally case_drain(struct sampler *s)
{
	struct case_tally t = {0};
	const uint8_t *bytes;
	size_t n;
	for (size_t i = 0; i < s->n_rings; i++) {
		struct ring *ring = &s->ring[i];
		ring_snapshot(ring);
		for (; ring_peek(ring, &bytes, &n) == 0; ring_advance(ring)) {
			struct record record;
			ck_assert_int_eq(record_decode(bytes, n, &s->streams, &record), 0);
			ck_assert_ptr_nonnull(record.stream);
			ck_assert_int_eq(record.stream->hart, ring->hart);
			t.n_lost += record.kind == RECORD_LOST;
			t.n_throttles += record.kind == RECORD_THROTTLE;
			t.lost += record.kind == RECORD_LOST ? record.lost.n : 0;
			t.n_side += record.kind != RECORD_SAMPLE;
			if (record.kind != RECORD_SAMPLE)
				continue;
			t.n_switches += record.stream->role == STREAM_SWITCH;
			t.n_samples += record.stream->role == STREAM_SAMPLER;
			t.n_reads += record.sample.n_read;
			for (uint32_t j = 0; j < record.sample.n_read; j++) {
				const struct stream *member =
					stream_table_find(&s->streams, record.sample.read[j].id);
				ck_assert_ptr_nonnull(member);
				if (member->event >= 0)
					t.last_value[member->event] = record.sample.read[j].value;
			}
		}
		ring_release(ring);
	}
	return t;
}
