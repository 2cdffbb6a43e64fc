/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* A recording: one walk through all stations, into one segment
 *
 *      sampler ─▶ merge ─▶ attribute ─▶ window ─▶ segment
 *                             │  ▲
 *                             ▼  │ names, unwound stacks
 *                            namer
 *
 * It drains a few times a second, flushes a window when its time is over, and, once told to finish,
 * waits a bounded time for names before it seals.
 */

#include <poll.h>

#include "daemon/attribute/attribute.h"
#include "daemon/pmu/sampler.h"
#include "daemon/store/segment.h"
#include "proto/mperf.pb-c.h"

/* Four drains a second keep a ring of one second of samples three quarters empty, and cost one
 * wakeup each. */
#define RECORDING_DRAIN_NS 250000000u
#define RECORDING_WINDOW_NS 1000000000u
/* Names that have not come this long after the end will not be waited for. */
#define RECORDING_NAMES_NS 60000000000u
#define RECORDING_TARGETS_MAX 64
/* Windows written before the loop goes on with its other work, after a stall; a second or so. */
#define RECORDING_WINDOWS_DUE_MAX 64

struct recording_options {
	struct sampler_options sampler;  /* pids and events are borrowed for the call */
	bool all;
	bool after_exec;                 /* the pids count from their next exec on */
	uint64_t window_ns;              /* 0: RECORDING_WINDOW_NS */
	const char *namer;               /* path of mperf-namer or NULL */
	const char *command;             /* for meta */
	const char *path;                /* of the segment to make */
};

struct recording;

enum {
	RECORDING_REFUSED = 1, /* *ret_error says by whom */
	RECORDING_GONE,        /* no target lives */
	RECORDING_FULL,        /* descriptors or disc */
};

/* Plan, open, start; /proc has been scanned when it returns. 0, RECORDING_*, -errno. */
int recording_new(const struct recording_options *o, struct recording **ret_recording,
	struct event_error *ret_error);

size_t recording_fds(const struct recording *g, struct pollfd *fds, size_t n);
uint64_t recording_deadline_ns(const struct recording *g);

/* Drain, flush and name as is due. 0; RECORDING_SEALED once the segment is complete (after
 * recording_finish); RECORDING_LOST_STORE when nothing more can be stored (then the recording can
 * only be freed); -errno. */
enum { RECORDING_SEALED = 8, RECORDING_LOST_STORE };
int recording_dispatch(struct recording *g, uint64_t now_ns);

/* Stop sampling and take what is left in the rings; sealing follows in recording_dispatch. */
int recording_finish(struct recording *g, uint64_t now_ns);

/* True when every target has exited (never with `all`). */
bool recording_targets_gone(struct recording *g);

struct recording_state {
	uint64_t n_samples;
	size_t waiting;              /* names and stacks that are still to come */
	uint64_t lost_samples;
	const char *path;
};
void recording_state(const struct recording *g, struct recording_state *ret_state);
const struct sampler *recording_sampler(const struct recording *g);

struct recording *recording_free(struct recording *g);
