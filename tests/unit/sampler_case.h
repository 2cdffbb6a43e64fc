/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* What the sampler's tests share: a sampler on a replayed machine, checked as it goes */

#include "daemon/sampler/sampler.h"
#include "tests/unit/replay.h"

/* A machine of tests/platforms by name. */
struct replay *case_load(const char *name);

/* A sampler that must open. */
struct sampler *case_sampler(struct replay *r, const struct sampler_options *o);

/* Free both; all that was opened must be closed. */
void case_end(struct replay *r, struct sampler *s);

/* The first stream of that role on that hart, or NULL; how many of that role there are. */
const struct stream *case_stream(const struct sampler *s, int hart, enum stream_role role);
unsigned case_n_streams(const struct sampler *s, enum stream_role role);

/* What -e with that text means on the replayed machine, or with NULL on this one. */
struct event_list case_events(struct replay *r, const char *text);

struct case_tally {
	unsigned n_samples, n_switches, n_reads, n_side, n_lost, n_throttles;
	uint64_t lost;                   /* what the n_lost records told */
	uint64_t last_value[EVENTS_MAX]; /* by the session's events */
};

/* Decode all that lies in the rings; every record must decode. */
struct case_tally case_drain(struct sampler *s);
