/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The replayed kernel: a `struct kernel` that answers from data
 *
 * A machine of tests/platforms (grammar in its README.md) says what each event does there; the
 * replay keeps what a kernel keeps (open events, groups, rings, time) and checks what a kernel
 * checks (limits, targets, clocks). Time passes only in spin and replay_run, in which enabled
 * events count, and fire well-formed samples into real memory.
 */

#include <linux/perf_event.h>
#include <stdbool.h>

#include "daemon/kernel/kernel.h"

struct replay;

struct replay_error {
	char text[256]; /* file, line or key, and what is wrong */
};

/* Read a machine. 0, -EINVAL with *ret_error, -errno. */
int replay_load(const char *path, struct replay **ret_replay, struct replay_error *ret_error);
int replay_parse(const char *json, struct replay **ret_replay, struct replay_error *ret_error);
struct replay *replay_free(struct replay *r);

/* Borrowed; lives as long as the replay. */
/* Memory that the process may lock; no limit unless this is called. */
void replay_limit_locked(struct replay *r, uint64_t bytes);
const struct kernel *replay_kernel(struct replay *r);

/* Scripts: what happens to the machine under the code. */

/* Replace a text file, or with NULL remove it. Harts online, sysctls and tasks are such files. */
void replay_set_text(struct replay *r, const char *path, const char *text);
/* The nth open (ring map, ioctl) from now fails with -error; 0 takes it back. */
void replay_fail_open(struct replay *r, unsigned nth, int error);
void replay_fail_map(struct replay *r, unsigned nth, int error);
void replay_fail_ioctl(struct replay *r, unsigned nth, int error);
/* ns pass on that hart, on which pid runs. */
void replay_run(struct replay *r, int hart, pid_t pid, uint64_t ns);
/* From now on somebody else has all hardware counters for so much of the time, but for pinned groups. */
void replay_take_counters(struct replay *r, unsigned percent);
/* From now on somebody else pins all hardware counters, or no longer. A pinned group that finds none counts
 * nothing until it is enabled again. */
void replay_pin_counters(struct replay *r, bool pinned);
/* From now on the timer ticks so often per second; 250 at first. */
void replay_set_tick(struct replay *r, uint32_t hz);
/* How the kernel throttles an event until the next tick, m being the machine's
 * perf_event_max_sample_rate over the tick rate, rounded up. */
enum replay_throttling {
	REPLAY_THROTTLING_BY_RELEASE, /* the last if osrelease is since 6.16, else the one before */
	REPLAY_THROTTLING_NOT_FIRST,  /* up to 6.2: at its m-th sample of a tick, unless m is 1 */
	REPLAY_THROTTLING_BEYOND,     /* 6.3 to 6.15: after the m-th */
	REPLAY_THROTTLING_EVENTS,     /* and their stable updates: at the m-th */
	REPLAY_THROTTLING_GROUPS,     /* since 6.16: at the m-th, with its whole group */
};
void replay_set_throttling(struct replay *r, enum replay_throttling how);
/* From now on a sample, a record of a switch, and a hardware counter read at either take so long. */
void replay_set_costs(
	struct replay *r, uint64_t sample_ns, uint64_t record_ns, uint64_t counter_ns);
/* From now on a read of an event takes so long, in which all harts are idle; 0 at first. */
void replay_set_read_cost(struct replay *r, uint64_t read_ns);
/* Put bytes into the ring that is mapped on that hart, as they are. 0, -ENOSPC, -ENOENT. */
int replay_queue(struct replay *r, int hart, const void *bytes, size_t n);

/* What the code did. */
unsigned replay_n_opens(const struct replay *r);  /* calls of event_open, failed ones too */
unsigned replay_n_events(const struct replay *r); /* open now */
unsigned replay_n_maps(const struct replay *r);   /* mapped now */
unsigned replay_n_stray(const struct replay *r); /* closes, ioctls and unmaps of what is not open */
/* The attributes that an open descriptor was opened with (period as ioctl left it), or NULL. */
const struct perf_event_attr *replay_attr(const struct replay *r, int fd);
/* NULL, or the machine's own words. */
const char *replay_source(const struct replay *r);
const char *replay_verified(const struct replay *r);
