/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

/* Segments: one SQLite file that holds everything it needs to be understood
 *
 * Written by one writer in WAL mode, one transaction per flush; sealed into a single file by
 * checkpoint(TRUNCATE) and journal_mode=DELETE with meta.sealed = 1. Opened by readers immutable,
 * read-only, trusted_schema off, defensive. The schema and its meaning: schema.sql.
 */

#include <sqlite3.h>

#include "daemon/aggregate/window.h"
#include "daemon/pmu/sampler.h"

#define SEGMENT_APPLICATION_ID 0x6d507266 /* "mPrf" */
#define SEGMENT_VERSION 1

enum {
	SEGMENT_NOT_OURS = 1,   /* no SQLite file, or of another application */
	SEGMENT_NEWER,          /* user_version above ours */
	SEGMENT_UNSEALED,       /* still being written, or its writer died */
	SEGMENT_CORRUPT,        /* damaged or cut off */
	SEGMENT_ABSENT,         /* no such file */
	SEGMENT_REFUSED,        /* may not be read */
	SEGMENT_NO_SPACE,       /* writing: the disc is full */
};

/* A sentence about an outcome above, for the file of that name (static format, no newline). */
struct segment_error {
	char text[512];
	char remedy[256];
};

struct segment_meta {
	const char *boot_id;        /* /proc/sys/kernel/random/boot_id */
	uint64_t monotonic_ns, realtime_ns; /* one instant on both clocks */
	const char *host, *release, *arch;
	uint32_t hz;
	const char *command;        /* what was recorded, for people; may be NULL */
	bool all;
};

struct segment;

/* Create (must not exist) and write meta, events and harts. 0, SEGMENT_NO_SPACE, -errno. */
int segment_create(const char *path, const struct segment_meta *meta, const struct sampler *s,
	struct segment **ret_segment);

/* One transaction: the window's rows and all tasks, cgroups, files, frames, stack nodes they need
 * that are not stored yet; losses (n_harts rows, cumulative) as what they grew by.
 * 0, SEGMENT_NO_SPACE (nothing of this window was stored), -errno. */
struct segment_flush {
	struct window *window;
	struct stack_tree *stacks;
	struct task_table *tasks;
	struct file_table *files;
	uint64_t (*lost)[N_LOSSES];
	int n_harts;
	uint64_t realtime_ns;       /* of the window's start */
};
int segment_flush(struct segment *g, const struct segment_flush *f);

/* Write names that came since, end times and argv of tasks, file states. Same outcomes. */
int segment_update(struct segment *g, const struct segment_flush *f);

/* Make it one file and mark it sealed; the segment is closed afterwards, whatever comes back. */
int segment_seal(struct segment *g, uint64_t end_monotonic_ns);

/* Close without sealing and, with remove, unlink the file and its -wal and -shm. */
struct segment *segment_abandon(struct segment *g, bool remove);

/* Open a sealed segment for reading. 0 or SEGMENT_* with *ret_error, or -errno. */
int segment_open(const char *path, sqlite3 **ret_db, struct segment_error *ret_error);
