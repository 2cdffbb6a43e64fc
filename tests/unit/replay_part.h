/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* The parts of the replayed kernel, for one another
 *
 * replay.c is the kernel, replay_load.c reads the machine, replay_sample.c writes records and says
 * who has counters, replay_throttle.c stops what samples too often.
 */

#include "daemon/kernel/machine.h"
#include "tests/unit/replay.h"

#define REPLAY_RULES_MAX 64 /* a machine is a page of JSON */
#define REPLAY_FILES_MAX 128
#define REPLAY_HWPROBES_MAX 4  /* kinds of hart */
#define REPLAY_FD_FIRST 100000 /* beyond any real descriptor, so that a stray close(2) hits none */

/* -1: any; else the value that the open must have. */
struct replay_rule {
	int64_t type;
	bool any_config;
	uint64_t config;
	bool any_hart;
	struct hart_set harts;
	int sampling, exclude_kernel, leader, inherit, sample_read, system_wide;
	int cgroup, build_id, ksymbol, read_lost;
	/* what then happens */
	int error;     /* positive errno, or 0: it opens */
	bool fires;    /* a sampling event gives samples */
	bool starves;  /* a group with it is never scheduled */
	double per_us; /* counts per microsecond */
};

struct replay_event {
	bool starved, needs_counter; /* its group; as of the last replay_run */
	bool open;
	struct perf_event_attr attr;
	pid_t pid;
	int hart, fd, leader_fd, output_fd;
	struct replay_rule rule;
	bool enabled;
	bool displaced; /* pinned, found no counter, and was not enabled since */
	bool dead;      /* its hart went offline: it counts no more */
	uint64_t id, enabled_ns, running_ns;
	uint64_t busy_ns;       /* of that, with replay_run on its hart */
	double value, fired_at; /* value (or in frequency mode busy_ns) at the last sample */
	void *map;
	size_t data_bytes;
	uint64_t n_lost;     /* records that found the ring full, not yet told */
	uint64_t n_lost_own; /* its own records that found a ring full, ever */
	uint64_t tick;       /* of its last sample, */
	unsigned in_tick;    /* and samples in that tick */
	bool throttled;      /* until that tick ends */
};

/* What riscv_hwprobe answers on these harts; the values of keys 0, 1 and 2. */
struct replay_hwprobe {
	struct hart_set harts;
	uint64_t mvendorid, marchid, mimpid;
};

struct replay {
	struct kernel kernel;
	char *source, *verified;
	struct {
		char *path, *text;
	} file[REPLAY_FILES_MAX];
	int n_files;
	struct replay_rule rule[REPLAY_RULES_MAX];
	int n_rules;
	struct replay_hwprobe hwprobe[REPLAY_HWPROBES_MAX];
	int n_hwprobes;        /* 0: the machine has no such call */
	unsigned descriptors;  /* how many events may be open at once */
	uint64_t locked_bytes; /* how much may be mapped at once, control pages included */
	struct replay_event *event;
	unsigned n_events; /* ever opened; descriptors are never used again */
	unsigned *live;    /* places of those that are open, as of the last replay_run */
	unsigned n_live;
	unsigned n_opens, n_stray;
	unsigned fail_open, fail_map, fail_ioctl;
	int fail_open_error, fail_map_error, fail_ioctl_error;
	uint64_t now_ns;
	unsigned taken_percent; /* of the time somebody else has all counters, */
	bool taken_pinned;      /* or all of the time */
	uint32_t tick_hz;
	bool limits_locked;
	uint64_t memlock_bytes;
	enum replay_throttling throttling;
	struct {
		uint64_t switch_ns;                        /* without events */
		uint64_t sample_ns, record_ns, counter_ns; /* what events add */
		uint64_t read_ns;
	} cost;
	struct kernel_gaps *gaps; /* of who reads the clock now; or NULL */
};

/* Something took the hart since from_ns: who reads the clock sees it. */
void replay_interrupt(struct replay *r, uint64_t from_ns);
/* What e's sample takes: now_ns moves. */
void replay_charge(struct replay *r, const struct replay_event *e);
/* What a read of an event takes: time passes, and all harts are idle. */
void replay_charge_read(struct replay *r);
/* struct kernel's calls of these names. */
uint64_t replay_locked_bytes(void *u);
int replay_clock_gaps(void *u, int hart, uint64_t ns, struct kernel_gaps *ret_gaps);
int replay_switch_work(void *u, int hart, unsigned n, uint64_t *ret_ns);

struct replay_event *replay_event(const struct replay *r, int fd);
const char *replay_text(const struct replay *r, const char *path);

/* Time passes in steps of this. */
#define REPLAY_STEP_NS 50000u
/* Does e's group have all counters that it needs, in this step of time? */
bool replay_has_counters(const struct replay *r, const struct replay_event *e);
/* Before it, when events were opened or closed or rules changed: what each group needs. */
void replay_learn_counters(struct replay *r);

/* e is about to fire: is it throttled by this sample? Then the kernel says so first. */
bool replay_throttle(struct replay *r, struct replay_event *e, pid_t pid);
/* Is e stopped until the next tick, itself or with its group? */
bool replay_is_stopped(const struct replay *r, const struct replay_event *e);
/* After each step of time, in which pid ran on that hart: at a tick nothing stays throttled. */
void replay_unthrottle(struct replay *r, int hart, pid_t pid);

/* Write a THROTTLE record of e, or UNTHROTTLE. */
void replay_tell_throttled(struct replay *r, struct replay_event *e, pid_t pid, bool begins);
/* Write the sample that e fires now, for pid, into the ring it goes to. */
void replay_sample(struct replay *r, struct replay_event *e, pid_t pid);
/* The words that a read of e gives; the number written. */
#define REPLAY_READ_WORDS_MAX (3 + 3 * 64) /* members with value, id and lost */
size_t replay_read_values(const struct replay *r, const struct replay_event *e, uint64_t *words);
/* Append to e's ring. False if there is no room. */
bool replay_put(struct replay_event *e, const void *bytes, size_t n);
